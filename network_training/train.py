"""Train the network: ``python -m network_training.train --help``.

A run stops after ``--seconds`` or when its schedule of ``--steps`` is done, and leaves a checkpoint
from which the same command goes on. The tasks of step t depend on the seed and t alone, so an
interrupted run sees the same tasks as one that was not. ``--log`` gets one JSON line at every
evaluation: loss and accuracy on tasks that are the same for all runs and never trained on.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from network_training.export import read_weights, write_weights
from network_training.model import PriorNetwork, Size, more_slots
from network_training.optim import optimisers
from network_training.prior import KINDS, NARROW, VERSION, WIDE, Tasks, draw_tasks

HELD_OUT_SEED = 10**9  # of the tasks for evaluation; training seeds stay far below
IGNORED = -100  # target of rows that the loss leaves out


@dataclass(frozen=True)
class Plan:
    """How much a step and an evaluation hold."""

    size: Size
    contexts: tuple[tuple[int, int], ...]  # rows and columns of the tables, in turn
    step_rows: int  # rows of all tasks in a step
    chunk_steps: int  # steps whose tasks are drawn at once
    held_out_tasks: int  # for each context size
    evaluate_every: int
    warm_up: int


CONTEXTS = (
    (512, NARROW), (256, WIDE), (512, WIDE), (1024, NARROW),
    (512, NARROW), (256, NARROW), (512, WIDE), (1024, WIDE),
)  # fmt: skip
FULL = Plan(Size(), CONTEXTS, 2**17, 8, 256, 800, 200)
TINY = Plan(
    Size(width=32, layers=2, heads=2, hidden=64), ((48, NARROW), (32, WIDE)), 384, 4, 8, 8, 4
)  # for tests, on a CPU


def chunk_of(plan: Plan, seed: int, chunk: int, device: str) -> Iterator[Tasks]:
    """Tasks for each step of a chunk; chunks take the context sizes in turn."""
    n_rows, n_columns = plan.contexts[chunk % len(plan.contexts)]
    n_tasks = plan.step_rows // n_rows
    n_drawn = n_tasks * plan.chunk_steps
    tasks = draw_tasks(seed * 10**6 + chunk, n_drawn, n_rows, device, n_columns)
    for step in range(plan.chunk_steps):
        yield tasks.part(slice(step * n_tasks, (step + 1) * n_tasks))


def targets(tasks: Tasks, n_slots: int) -> Tensor:
    """Classes of unlabelled rows; ``IGNORED`` for labelled rows and for classes without label."""
    shown = F.one_hot(torch.where(tasks.given, tasks.y, n_slots), n_slots + 1)
    known = shown.any(1).gather(1, tasks.y)
    return torch.where(known & ~tasks.given, tasks.y, IGNORED)


def loss_of(model: PriorNetwork, tasks: Tasks) -> tuple[Tensor, Tensor, Tensor]:
    """Cross-entropy over the unlabelled rows; logits and targets."""
    device = tasks.x.device.type
    with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
        logits = model(tasks.x, tasks.present, tasks.y, tasks.given)
    target = targets(tasks, model.size.classes)
    return (
        F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=IGNORED),
        logits,
        target,
    )


def learning_rate(plan: Plan, step: int, done: float) -> float:
    """Factor of the learning rate: warm-up, constant, linear decay in the last half."""
    return min(1.0, (step + 1) / plan.warm_up, max(2 * (1 - done), 0.01))


class Trainer:
    """The state of a run: network, running average of its weights, optimisers, step.

    Parameters
    ----------
    options : argparse.Namespace
        As :func:`main` reads them.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.plan = TINY if options.tiny else FULL
        self.device = "cuda" if torch.cuda.is_available() and not options.tiny else "cpu"
        torch.manual_seed(options.seed)
        torch.set_float32_matmul_precision("high")
        model = PriorNetwork(self.plan.size, supervised=options.supervised)
        self.model = model.to(self.device)
        self.average = copy.deepcopy(self.model).requires_grad_(False)
        self.optimisers = optimisers(self.model, options.optimiser, options.lr)
        self.step, self.seconds, self.left_out = 0, 0.0, 0
        if options.start:
            self._start(options.start)
        if options.checkpoint.exists():
            self._resume(
                torch.load(options.checkpoint, map_location=self.device, weights_only=True)
            )
        if self.device == "cuda":
            self._compile()
        self.held_out = [
            (n_columns, draw_tasks(seed, self.plan.held_out_tasks, n, self.device, n_columns))
            for n, n_columns in sorted(set(self.plan.contexts))
            for seed in [HELD_OUT_SEED + n * 1000 + n_columns]
        ]

    def _compile(self) -> None:
        # All blocks share one compiled graph for each context size: it is made in seconds.
        torch._dynamo.config.recompile_limit = 64
        for network in (self.model, self.average):
            for block in network.blocks:
                block.compile(dynamic=False)

    def _start(self, path: Path) -> None:
        """Take weights of a finished run, of which more slots for columns are made."""
        state, size = read_weights(path)
        wanted = self.plan.size
        if replace(size, features=wanted.features) != wanted or size.features > wanted.features:
            raise ValueError(
                f"{path} holds {size}, which cannot become {wanted}. "
                f"Start from weights that differ in the slots for columns alone."
            )
        state["embed1.weight"] = more_slots(state["embed1.weight"], wanted.features)
        self.model.load_state_dict(state)
        self.average.load_state_dict(state)

    def _resume(self, saved: dict[str, Any]) -> None:
        self.model.load_state_dict(saved["model"])
        self.average.load_state_dict(saved["average"])
        for optimiser, state in zip(self.optimisers, saved["optimisers"], strict=True):
            optimiser.load_state_dict(state)
        self.step, self.seconds = saved["step"], saved["seconds"]

    def save(self) -> None:
        """Write the checkpoint, whole or not at all, and the weights in half precision."""
        state = {
            "model": self.model.state_dict(),
            "average": self.average.state_dict(),
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
            "step": self.step,
            "seconds": self.seconds,
            "size": asdict(self.plan.size),
            "supervised": self.options.supervised,
        }
        path = self.options.checkpoint
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        torch.save(state, part)
        part.replace(path)
        if self.options.weights:
            supervised = self.options.supervised
            write_weights(
                state["average"], self.plan.size, self.options.weights, supervised=supervised
            )

    def run(self) -> None:
        """Train until the time or the schedule ends."""
        if self.step == 0 and self.options.start:
            self.evaluate()
        start, before = time.monotonic(), self.seconds
        while self.done < 1:
            chunk = self.step // self.plan.chunk_steps
            for tasks in chunk_of(self.plan, self.options.seed, chunk, self.device):
                self._train_on(tasks)
            self.seconds = before + time.monotonic() - start
            if self.step % self.plan.evaluate_every == 0:
                self.evaluate()
                self.save()
            if self.seconds - before > self.options.seconds:
                break
        self.evaluate()
        self.save()

    @property
    def done(self) -> float:
        """The part of the schedule that is done, by steps or by seconds."""
        return max(self.step / self.options.steps, self.seconds / self.options.all_seconds)

    def _train_on(self, tasks: Tasks) -> None:
        factor = learning_rate(self.plan, self.step, self.done)
        for optimiser in self.optimisers:
            for group in optimiser.param_groups:
                group.setdefault("base", group["lr"])
                group["lr"] = group["base"] * factor
        loss, _, _ = loss_of(self.model, tasks)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        # One table with a number that is none must not end the run: it is left out.
        finite = bool(torch.isfinite(norm))
        self.left_out += not finite
        for optimiser in self.optimisers:
            if finite:
                optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        self.step += 1
        decay = min(0.998, self.step / (self.step + 10))
        with torch.no_grad():
            torch._foreach_lerp_(
                list(self.average.parameters()), list(self.model.parameters()), 1 - decay
            )

    @torch.no_grad()
    def evaluate(self) -> None:
        """Append a line with loss and accuracy of the averaged weights on the held-out tasks."""
        line: dict[str, Any] = {"step": self.step, "seconds": round(self.seconds, 1)}
        line.update({"prior": VERSION, "left_out": self.left_out})
        right, kind, rows, wide = [], [], [], []
        for n_columns, tasks in self.held_out:
            losses = []
            for part in (tasks.part(slice(i, i + 128)) for i in range(0, len(tasks), 128)):
                loss, logits, target = loss_of(self.average, part)
                losses.append(loss)
                used = target != IGNORED
                hit = (logits.argmax(-1) == target) & used
                right.append(hit.sum(1) / used.sum(1).clamp(min=1))
                kind.append(part.kind)
                rows.append(torch.full_like(part.kind, tasks.x.shape[1]))
                wide.append(torch.full_like(part.kind, n_columns))
            name = f"loss_{tasks.x.shape[1]}_{n_columns}"
            line[name] = round(torch.stack(losses).mean().item(), 4)
        accuracy, kinds, sizes = torch.cat(right), torch.cat(kind), torch.cat(rows)
        line["accuracy"] = round(accuracy.mean().item(), 4)
        for n in sizes.unique().tolist():
            line[f"accuracy_{n}"] = round(accuracy[sizes == n].mean().item(), 4)
        widths = torch.cat(wide)
        for n in widths.unique().tolist():
            line[f"accuracy_{n}_columns"] = round(accuracy[widths == n].mean().item(), 4)
        for k, name in enumerate(KINDS):
            line[f"accuracy_{name}"] = round(accuracy[kinds == k].mean().item(), 4)
        self._write(line)

    def _write(self, line: dict[str, Any]) -> None:
        text = json.dumps(line)
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
        if self.options.log:
            self.options.log.parent.mkdir(parents=True, exist_ok=True)
            with self.options.log.open("a", encoding="utf-8") as file:
                file.write(text + "\n")


def parser() -> argparse.ArgumentParser:
    """Options of the command."""
    made = argparse.ArgumentParser(prog="python -m network_training.train", description=__doc__)
    made.add_argument("checkpoint", type=Path, help="written at the end; resumed from if it exists")
    made.add_argument("--weights", type=Path, help="also write half-precision weights (npz)")
    made.add_argument("--log", type=Path, help="JSON lines of loss and accuracy")
    made.add_argument("--steps", type=int, default=40_000, help="length of the whole schedule")
    made.add_argument(
        "--all-seconds", type=float, default=float("inf"), help="of all runs; ends the schedule"
    )
    made.add_argument("--start", type=Path, help="weights (npz) to begin with, not at random")
    made.add_argument("--seconds", type=float, default=float("inf"), help="limit of this run")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--optimiser", choices=("muon", "adamw"), default="muon")
    made.add_argument("--lr", type=float, default=0.02, help="for AdamW alone, take 6e-4")
    made.add_argument("--supervised", action="store_true", help="attend to labelled rows only")
    made.add_argument("--tiny", action="store_true", help="a small network on a CPU, for tests")
    return made


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    Trainer(parser().parse_args(arguments)).run()


if __name__ == "__main__":
    main()
