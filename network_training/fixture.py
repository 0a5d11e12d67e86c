"""A tiny random network and its answers, for tests without torch: ``python -m ... FOLDER``."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from network_training.export import read_weights, write_weights
from network_training.model import PriorNetwork, Size
from network_training.prior import draw_tasks

SIZE = Size(width=32, layers=2, heads=2, hidden=64)


def write_fixture(folder: Path) -> None:
    """Write ``tiny_network.npz`` and ``tiny_answers.npz``."""
    torch.manual_seed(0)
    network = PriorNetwork(SIZE)
    for parameter in network.parameters():  # no layer may be the identity
        torch.nn.init.normal_(parameter, std=0.3)
    path = folder / "tiny_network.npz"
    write_weights(network.state_dict(), SIZE, path)
    network.load_state_dict(read_weights(path)[0])
    tasks = draw_tasks(0, 3, 24, "cpu")
    with torch.no_grad():
        logits = network(tasks.x, tasks.present, tasks.y, tasks.given)
    np.savez_compressed(
        folder / "tiny_answers.npz",
        x=tasks.x.numpy(),
        present=tasks.present.numpy(),
        slots=torch.where(tasks.given, tasks.y, -1).numpy(),
        proba=logits.softmax(-1).numpy(),
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    write_fixture(parser.parse_args().folder)


if __name__ == "__main__":
    main()
