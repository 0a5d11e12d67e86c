"""The weights as one file that NumPy reads: half precision, no pickled objects."""

from __future__ import annotations

import argparse
import hashlib
import io
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from network_training.model import Size

MOST_BYTES = 16_000_000


def write_weights(
    state: dict[str, Tensor], size: Size, path: Path, *, supervised: bool = False
) -> str:
    """Write weights in half precision; the SHA-256 of the file."""
    arrays = {name: _half(name, value) for name, value in state.items()}
    arrays |= {f"size.{name}": np.array(value) for name, value in size.as_dict().items()}
    arrays["supervised"] = np.array(supervised)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    data = buffer.getvalue()
    if len(data) > MOST_BYTES:
        raise ValueError(
            f"The weights take {len(data):,} bytes, more than the {MOST_BYTES:,} allowed. "
            f"Use a smaller width or fewer layers."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def _half(name: str, value: Tensor) -> np.ndarray:
    array = value.detach().float().cpu().numpy()
    half = array.astype(np.float16)
    if not np.isfinite(half).all():
        raise ValueError(f"{name} has values that half precision cannot hold.")
    return half


def read_weights(path: Path) -> tuple[dict[str, Tensor], Size]:
    """Weights for :class:`~network_training.model.PriorNetwork`, in single precision."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    arrays.pop("supervised")
    size = Size(**{name: int(arrays.pop(f"size.{name}")) for name in Size().as_dict()})
    return {name: torch.from_numpy(a.astype(np.float32)) for name, a in arrays.items()}, size


def main() -> None:
    """``python -m network_training.export CHECKPOINT.pt WEIGHTS.npz``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("weights", type=Path)
    options = parser.parse_args()
    saved = torch.load(options.checkpoint, map_location="cpu", weights_only=True)
    size = Size(**saved["size"])
    checksum = write_weights(
        saved["average"], size, options.weights, supervised=saved["supervised"]
    )
    sys.stdout.write(f"{checksum}\n")


if __name__ == "__main__":
    main()
