"""The one exception that the command line shows as a message instead of a traceback."""

from __future__ import annotations


class UserError(ValueError):
    """Something in the user's input or surroundings is wrong, and the user can mend it.

    Parameters
    ----------
    message : str
        What was wrong and what was got.
    remedy : str, optional
        What to do about it.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message} {remedy}".strip())
        self.message, self.remedy = message, remedy


def shorten(text: object, width: int = 60) -> str:
    """Untrusted text for a message: on one line, without control characters, not too long."""
    plain = "".join(c if c.isprintable() else "·" for c in str(text))
    return plain if len(plain) <= width else plain[: width - 1] + "…"


def listing(names: list[str], most: int = 5) -> str:
    """The first few of many names, for a message."""
    shown = ", ".join(f"'{shorten(name)}'" for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
