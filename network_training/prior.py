"""The prior: random classification tasks with few labels, drawn many at a time on a device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from network_training import columns, labels, tables
from network_training.draw import Draw, pick_columns

FEATURES = 64
CLASSES = 32
"""Slots of the network; a task uses some of them, chosen at random."""
NARROW, WIDE = 32, 128
"""Columns of a table, of which a task shows some, or their components."""
MOST_CLASSES = 30  # of a synthetic task
VERSION = 3
"""Changes with the tasks. 2: correlated columns, more tasks with two classes, more components.
3: wide tables, 64 columns, components that keep a part of their variances, groups of rows."""
KINDS = ("network", "mixture", "manifold")
SHARES = (0.4, 0.25, 0.35)


@dataclass(frozen=True)
class Tasks:
    """A batch of tasks.

    Attributes
    ----------
    x : Tensor of shape (B, N, FEATURES)
        Standardised and clipped, components times a factor; absent columns are 0.
    present : Tensor of shape (B, FEATURES)
        1 for columns that the task has.
    y : Tensor of int of shape (B, N)
        Class slot of every row.
    given : Tensor of bool of shape (B, N)
        Whether the label is shown.
    kind : Tensor of int of shape (B,)
        Index into ``KINDS``.
    """

    x: Tensor
    present: Tensor
    y: Tensor
    given: Tensor
    kind: Tensor

    def __len__(self) -> int:
        return len(self.x)

    def part(self, rows: slice | Tensor) -> Tasks:
        """Some of the tasks."""
        return Tasks(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def draw_tasks(
    seed: int, n_tasks: int, n_rows: int, device: str | torch.device, n_columns: int = NARROW
) -> Tasks:
    """Tasks of all kinds in random order; the same for the same seed and device.

    Parameters
    ----------
    seed, n_tasks, n_rows : int
    device : str or torch.device
    n_columns : int, default=NARROW
        Of the tables; what a task shows of them has at most ``FEATURES``.
    """
    draw = Draw(seed, device)
    sizes = [round(n_tasks * share) for share in SHARES[1:]]
    sizes = [n_tasks - sum(sizes), *sizes]
    parts = [
        _draw_kind(draw, kind, size, n_rows, n_columns) for kind, size in enumerate(sizes) if size
    ]
    fields = [torch.cat(values) for values in zip(*parts, strict=True)]
    order = draw.uniform(n_tasks).argsort()
    return Tasks(*fields).part(order)


def _draw_kind(
    draw: Draw, kind: int, n_tasks: int, n_rows: int, n_columns: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    n_classes = _class_counts(draw, n_tasks)
    if KINDS[kind] == "network":
        x, y = _network_task(draw, n_classes, n_rows, n_columns)
    else:
        make = tables.mixture if KINDS[kind] == "mixture" else tables.manifold
        x, y = make(draw, n_classes, n_rows, n_columns)
        x = columns.warped(draw, columns.correlated(draw, x))
        x = columns.categorised(draw, x)
    y = labels.flipped(draw, y, n_classes)
    x, present = _dress(draw, columns.diluted(draw, x))
    given = _given(draw, y, n_classes)
    slot = draw.uniform(n_tasks, CLASSES).argsort(1)
    kinds = torch.full((n_tasks,), kind, device=draw.device)
    return x, present, slot.gather(1, y), given, kinds


def _class_counts(draw: Draw, n_tasks: int) -> Tensor:
    few = 2 + (9 * draw.uniform(n_tasks).pow(1.5)).long()
    many = draw.integers(2, MOST_CLASSES + 1, n_tasks)
    return torch.where(draw.chance(0.75, n_tasks), few, many)


def _network_task(
    draw: Draw, n_classes: Tensor, n_rows: int, n_columns: int
) -> tuple[Tensor, Tensor]:
    """Columns and labels from nodes of one network, or labels from the columns themselves."""
    layers = tables.network_nodes(draw, len(n_classes), n_rows)
    x = tables.network_table(draw, layers, n_columns)
    x = columns.warped(draw, columns.correlated(draw, x))
    x = columns.categorised(draw, x)
    y = labels.by_largest(draw, layers[1], n_classes, MOST_CLASSES)
    source = draw.uniform(len(n_classes), 1)
    others = (
        (0.20, labels.by_cuts(draw, layers[2], n_classes, MOST_CLASSES)),
        (0.35, labels.by_tree(draw, x, n_classes, MOST_CLASSES)),
        (0.50, labels.by_tree(draw, layers[1], n_classes, MOST_CLASSES)),
        (0.65, labels.by_prototypes(draw, layers[0], n_classes, MOST_CLASSES)),
    )
    for bound, value in reversed(others):
        y = torch.where(source < bound, value, y)
    return x, y


def _dress(draw: Draw, x: Tensor) -> tuple[Tensor, Tensor]:
    """The view: standardised columns, ranks or components; and how many columns there are."""
    B, _, D = x.shape
    shown = min(D, FEATURES)
    # Tasks come in random order within a kind, so the first ones are as good as any.
    n_ranks = B // 4
    rotated = slice(B // 6, B // 2 if D <= FEATURES else B * 5 // 6)
    x[:n_ranks] = columns.as_ranks(x[:n_ranks])
    wide = columns.scaled(draw, x[rotated])
    x = columns.finished(x[..., :shown])
    components = columns.as_components(draw, wide, shown)
    x[rotated] = columns.finished(components) * columns.importance(draw, components)
    n_present = draw.integers(3, shown + 1, B, 1)
    n_present = torch.where(draw.chance(0.25, B, 1), shown, n_present)
    x = F.pad(columns.with_gaps(draw, x), (0, FEATURES - shown))
    present = (torch.arange(FEATURES, device=x.device)[None] < n_present).to(x.dtype)
    order = draw.uniform(B, FEATURES).argsort(1)
    return pick_columns(x * present[:, None], order), present.gather(1, order)


def _given(draw: Draw, y: Tensor, n_classes: Tensor) -> Tensor:
    """Labels of random rows, or in some tasks of the same number of rows in every class."""
    B, N = y.shape
    per_class = 1.5 + draw.uniform(B, 1).pow(1.5) * 22
    n_given = (n_classes[:, None] * per_class).long().clamp(min=4, max=N // 2)
    at_random = torch.arange(N, device=y.device)[None] < n_given
    one_hot = F.one_hot(y, MOST_CLASSES).to(torch.int16)
    rank = one_hot.cumsum(1).gather(2, y[..., None])[..., 0]  # 1 for the first row of a class
    limit = per_class.clamp(max=N / 2 / n_classes[:, None]).clamp(min=1)
    return torch.where(draw.chance(0.3, B, 1), rank <= limit, at_random)
