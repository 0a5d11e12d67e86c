"""pyarrow, pandas and skrub, imported when they are first used: rows of numbers need none."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["pa", "pc", "pd", "skrub"]


class _Module:
    """A module whose names are looked up when they are asked for, once each."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # what Python itself asks of objects
            raise AttributeError(attribute)
        try:
            found = getattr(import_module(self._name), attribute)
        except ImportError as error:
            package = self._name.partition(".")[0]
            raise ImportError(
                f"Tables that are not all numbers need {package}: pip install 'fewlabel[cli]'",
                name=package,
            ) from error
        setattr(self, attribute, found)
        return found


if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    import skrub
else:
    pa, pc = _Module("pyarrow"), _Module("pyarrow.compute")
    pd, skrub = _Module("pandas"), _Module("skrub")
