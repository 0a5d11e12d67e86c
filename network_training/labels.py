"""Label functions: how the class of a row follows from its values."""

from __future__ import annotations

import torch
from torch import Tensor

from network_training.draw import Draw, pick_rows, standardised

DEPTH = 5  # of a random decision tree


def by_largest(draw: Draw, nodes: Tensor, n_classes: Tensor, most: int) -> Tensor:
    """The class with the largest noisy linear score."""
    B, _, d = nodes.shape
    scores = standardised(torch.bmm(nodes, draw.normal(B, d, most)))
    scores = scores + draw.normal(B, 1, most) * draw.uniform(B, 1, 1)  # unequal prevalences
    scores = scores + draw.normal(*scores.shape) * draw.uniform(B, 1, 1).pow(2) * 0.5
    return scores.masked_fill(_unused(n_classes, most)[:, None], -torch.inf).argmax(-1)


def by_cuts(draw: Draw, nodes: Tensor, n_classes: Tensor, most: int) -> Tensor:
    """Intervals of one noisy direction, which are classes in random order."""
    B, N, d = nodes.shape
    score = standardised(torch.bmm(nodes, draw.normal(B, d, 1)))[..., 0]
    score = score + draw.normal(B, N) * draw.uniform(B, 1).pow(2) * 0.4
    rank = score.argsort(1).argsort(1).float() / N
    cuts = draw.uniform(B, most).masked_fill(_unused(n_classes - 1, most), 2.0)
    interval = (rank[..., None] > cuts[:, None]).sum(-1)
    order = draw.uniform(B, most).masked_fill(_unused(n_classes, most), 2.0).argsort(1).argsort(1)
    return order.gather(1, interval.clamp(max=most - 1))


def by_tree(draw: Draw, columns: Tensor, n_classes: Tensor, most: int) -> Tensor:
    """Leaves of a random decision tree; some trees look at few columns only."""
    B, N, D = columns.shape
    n_nodes = 2**DEPTH
    looked_at = draw.integers(1, D + 1, B, 1)
    feature = draw.below(looked_at, B, n_nodes)
    row = draw.integers(0, N, B, n_nodes)
    # Thresholds are values of random rows, so that both branches are taken.
    threshold = pick_rows(columns, row).gather(2, feature[..., None])[..., 0]
    node = torch.zeros(B, N, dtype=torch.long, device=columns.device)
    for level in range(DEPTH):
        at = node + 2**level - 1
        value = columns.gather(2, feature.gather(1, at)[..., None])[..., 0]
        node = 2 * node + (value > threshold.gather(1, at))
    leaves = draw.below(n_classes[:, None], B, n_nodes)
    depth_left_out = draw.integers(0, DEPTH - 1, B, 1)
    return leaves.gather(1, node >> depth_left_out)


def by_prototypes(draw: Draw, nodes: Tensor, n_classes: Tensor, most: int) -> Tensor:
    """The class of the nearest of several prototypes: regions with curved or broken borders."""
    B, N, _ = nodes.shape
    n_prototypes = 2 * most
    scaled = standardised(nodes)[..., :6]
    prototypes = pick_rows(scaled, draw.integers(0, N, B, n_prototypes))
    distance = torch.cdist(scaled, prototypes, compute_mode="use_mm_for_euclid_dist")
    position = torch.arange(n_prototypes, device=nodes.device)[None]
    used = position < n_classes[:, None] * draw.integers(1, 4, B, 1)
    nearest = distance.masked_fill(~used[:, None], torch.inf).argmin(-1)
    return (position % n_classes[:, None]).gather(1, nearest)


def flipped(draw: Draw, y: Tensor, n_classes: Tensor) -> Tensor:
    """Labels of which a few, in some tasks up to a fifth, are replaced by random ones."""
    B, N = y.shape
    flip = draw.chance(draw.uniform(B, 1).pow(5) * 0.2, B, N)
    return torch.where(flip, draw.below(n_classes[:, None], B, N), y)


def _unused(n_classes: Tensor, most: int) -> Tensor:
    return torch.arange(most, device=n_classes.device)[None] >= n_classes[:, None]
