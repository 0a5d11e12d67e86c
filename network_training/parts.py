"""A checkpoint in small files, for machines that only exchange such: ``pack`` and ``unpack``.

Momenta are kept in bfloat16, and the running average is left out: it starts from the weights again.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Any

import torch

PART_BYTES = 15 * 2**20


def pack(checkpoint: Path, folder: Path) -> list[Path]:
    """Write the parts of a checkpoint into a folder."""
    saved = torch.load(checkpoint, map_location="cpu", weights_only=True)
    del saved["average"]
    saved["optimisers"] = _cast(saved["optimisers"], torch.bfloat16)
    buffer = io.BytesIO()
    torch.save(saved, buffer)
    data = buffer.getvalue()
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, start in enumerate(range(0, len(data), PART_BYTES)):
        paths.append(folder / f"part{number}.bin")
        paths[-1].write_bytes(data[start : start + PART_BYTES])
    return paths


def unpack(folder: Path, checkpoint: Path) -> None:
    """Make a checkpoint from which training can go on."""
    parts = sorted(folder.glob("part*.bin"))
    buffer = io.BytesIO(b"".join(part.read_bytes() for part in parts))
    saved = torch.load(buffer, map_location="cpu", weights_only=True)
    saved["optimisers"] = _cast(saved["optimisers"], torch.float32)
    saved["average"] = {name: value.clone() for name, value in saved["model"].items()}
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    torch.save(saved, checkpoint)


def _cast(value: Any, dtype: torch.dtype) -> Any:
    """Matrices and vectors of a nested state in another precision; counts stay as they are."""
    if isinstance(value, dict):
        return {key: _cast(item, dtype) for key, item in value.items()}
    if isinstance(value, list):
        return [_cast(item, dtype) for item in value]
    whole = isinstance(value, torch.Tensor) and value.is_floating_point() and value.ndim > 0
    return value.to(dtype) if whole else value


def main() -> None:
    """``python -m network_training.parts pack|unpack CHECKPOINT FOLDER``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("pack", "unpack"))
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.command == "pack":
        pack(options.checkpoint, options.folder)
    else:
        unpack(options.folder, options.checkpoint)


if __name__ == "__main__":
    main()
