"""The file of weights: half precision in an npz archive, verified before it is read."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

PACKAGED = Path(__file__).with_name("prior_network.npz")
CHECKSUM = "69d178581036e51d7e4c34e6ba76940c928f9eb431ac31aa2339033b3ef448e1"
"""SHA-256 of the packaged file; ``python -m network_training.export`` prints it."""

_SIZES = ("features", "classes", "width", "layers", "heads", "hidden")


@dataclass(frozen=True, eq=False)
class Block:
    """Weights of one layer; matrices map row vectors: ``z @ matrix``."""

    norm1: Array
    qkv: Array
    out: Array
    norm2: Array
    up: Array
    down: Array


@dataclass(frozen=True, eq=False)
class Weights:
    """All weights of a network, in single precision.

    Attributes
    ----------
    features, classes, heads : int
        Slots for columns and classes; attention heads.
    embed1, embed2 : tuple of ndarray
        Matrix and offset.
    label : ndarray of shape (classes + 1, width)
        The last row stands for "no label".
    slot : tuple of ndarray
        Matrix and offset.
    supervised : bool
        Whether rows attend to labelled rows only: the ablation, not the packaged network.
    """

    features: int
    classes: int
    heads: int
    embed1: tuple[Array, Array]
    embed2: tuple[Array, Array]
    label: Array
    blocks: tuple[Block, ...]
    norm: Array
    slot: tuple[Array, Array]
    query: Array
    key: Array
    supervised: bool

    @property
    def width(self) -> int:
        """Length of a row's vector."""
        return int(self.label.shape[1])


def load_weights(path: str | Path | None = None) -> Weights:
    """Read weights: the packaged ones, whose checksum is verified, or those of another file.

    Parameters
    ----------
    path : str, Path or None
        An npz file as ``network_training`` exports it; None: the packaged one.
    """
    if path is None:
        return _load(PACKAGED, CHECKSUM)
    return _load(Path(path), None)


def converted(value: Any, convert: Callable[[Any], Any]) -> Any:
    """The same dataclass, list or tuple with other arrays in it."""
    if isinstance(value, np.ndarray):
        return convert(value)
    if isinstance(value, (tuple, list)):
        return type(value)(converted(part, convert) for part in value)
    if is_dataclass(value):
        parts = {f.name: converted(getattr(value, f.name), convert) for f in fields(value)}
        return type(value)(**parts)  # type: ignore[misc]
    return value


@lru_cache(maxsize=2)
def _load(path: Path, checksum: str | None) -> Weights:
    if not path.exists():
        raise FileNotFoundError(
            f"There are no weights at {path}. Reinstall fewlabel, or give the path of a file that "
            f"network_training exported."
        )
    data = path.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if checksum is not None and found != checksum:
        raise ValueError(
            f"The weights at {path} are not those of this version: SHA-256 {found} instead of "
            f"{checksum}. Reinstall fewlabel."
        )
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        return _assemble({name: file[name] for name in file.files})


def _assemble(arrays: dict[str, NDArray[np.generic]]) -> Weights:
    supervised = bool(arrays.pop("supervised"))
    size = {name: int(arrays.pop(f"size.{name}")) for name in _SIZES}
    single = {name: np.asarray(value, dtype=np.float32) for name, value in arrays.items()}

    def matrix(name: str) -> Array:
        # torch keeps a matrix as (out, in).
        return np.ascontiguousarray(single[f"{name}.weight"].T)

    def affine(name: str) -> tuple[Array, Array]:
        return matrix(name), single[f"{name}.bias"]

    def block(prefix: str) -> Block:
        return Block(
            norm1=single[f"{prefix}.norm1.scale"],
            qkv=matrix(f"{prefix}.qkv"),
            out=matrix(f"{prefix}.out"),
            norm2=single[f"{prefix}.norm2.scale"],
            up=matrix(f"{prefix}.up"),
            down=matrix(f"{prefix}.down"),
        )

    return Weights(
        features=size["features"],
        classes=size["classes"],
        heads=size["heads"],
        embed1=affine("embed1"),
        embed2=affine("embed2"),
        label=single["label.weight"],
        blocks=tuple(block(f"blocks.{i}") for i in range(size["layers"])),
        norm=single["norm.scale"],
        slot=affine("slot"),
        query=matrix("query"),
        key=matrix("key"),
        supervised=supervised,
    )
