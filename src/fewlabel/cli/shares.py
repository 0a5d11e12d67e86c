"""Shares as people write them on a command line."""

from __future__ import annotations

from fewlabel._core.errors import UserError, shorten


def share(text: str, option: str) -> float:
    """A share as people write it: 5%, 5 % or 0.05.

    Parameters
    ----------
    text : str
    option : str
        Its name, for the message of a :class:`UserError`.

    Examples
    --------
    >>> share("5%", "--goal"), share("5 %", "--goal"), share("0.05", "--goal")
    (0.05, 0.05, 0.05)
    """
    plain = text.strip()
    number = plain.removesuffix("%").strip()
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    value = value / 100 if plain.endswith("%") else value
    if not 0.0 < value < 1.0:
        raise UserError(
            f"{option} must be a share above 0 and below 100 %. Got '{shorten(text)}'.",
            "Write it as 5% or as 0.05.",
        )
    return value


def class_shares(text: str, option: str) -> dict[str, float]:
    """Shares of classes as people write them: ``a=0.95,b=0.05``.

    A comma or an equals sign in a class's name may stand there as it is: the last = of a part
    ends the name, and a part without one belongs to the next.

    Examples
    --------
    >>> class_shares("sky=95%, cloud, dark=0.05", "--priors")
    {'sky': 0.95, 'cloud, dark': 0.05}
    """
    found: dict[str, float] = {}
    before = ""
    for part in text.split(","):
        name, equals, value = (before + part).rpartition("=")
        before = "" if equals else f"{before}{part},"
        if equals:
            found[name.strip()] = share(value, option)
    if before or not found or "" in found:
        raise UserError(
            f"{option} must give each class its share. Got '{shorten(text)}'.",
            "Write it as a=0.95,b=0.05.",
        )
    return found


def as_option(value: float) -> str:
    """A share as it is typed: 5%.

    Examples
    --------
    >>> as_option(0.05), as_option(0.125)
    ('5%', '12.5%')
    """
    return f"{100 * value:.4g}%"
