"""Random tables: noisy networks, mixtures of clusters, and curved mixtures.

Every function returns rows before any column is made categorical, warped or hidden. All tasks of a
call are drawn at once; what differs between tasks is drawn for each.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from network_training.draw import Draw, pick_columns, pick_rows, standard_deviation, standardised

HIDDEN = 32  # nodes in a layer of a random network
ROOTS = 16  # its inputs
CLUSTERS = 64  # most clusters of a mixture
GROUPS = 32  # most groups of rows with an offset of their own
RANK = 6  # directions in which a cluster is wide


def network_nodes(draw: Draw, n_tasks: int, n_rows: int) -> list[Tensor]:
    """Layers of a random noisy network (a structural causal model), each (B, N, HIDDEN)."""
    z = _roots(draw, n_tasks, n_rows)
    layers = []
    for _ in range(3):
        z = _activated(draw, _linear(draw, z, HIDDEN))
        noise = 10 ** draw.uniform(n_tasks, 1, HIDDEN, low=-2.5, high=-0.5)
        z = z + draw.normal(*z.shape) * noise
        layers.append(z)
    return layers


def network_table(draw: Draw, layers: list[Tensor], n_features: int) -> Tensor:
    """Some nodes of the network as columns; wide tables measure some of them again."""
    pool = torch.cat(layers, -1)
    B, _, P = pool.shape
    order = draw.uniform(B, P).argsort(1)
    x = pick_columns(pool, order[:, torch.arange(n_features, device=pool.device) % P])
    if n_features > P:
        again = x[..., P:]
        noise = draw.uniform(B, 1, n_features - P) * standard_deviation(again)
        again += draw.normal(*again.shape) * noise
    return x


def mixture(draw: Draw, n_classes: Tensor, n_rows: int, n_features: int) -> tuple[Tensor, Tensor]:
    """Clusters with random covariances, several a class; rows and the class of each."""
    cluster, y = _clusters(draw, n_classes, n_rows)
    B, N, D = len(n_classes), n_rows, n_features
    means = draw.normal(B, CLUSTERS, D) * draw.uniform(B, 1, 1, low=0.6, high=2.5)
    # Columns differ in how much they say about the cluster.
    means = means * draw.uniform(B, 1, D).pow(draw.uniform(B, 1, 1))
    spread = draw.normal(B, CLUSTERS, RANK * D).view(B, CLUSTERS, RANK, D)
    spread = spread * draw.uniform(B, CLUSTERS, 1, 1, low=0.1, high=0.6)
    shared = draw.chance(0.4, B, 1, 1, 1)  # one covariance for all clusters, as in LDA
    spread = torch.where(shared, spread[:, :1].expand_as(spread), spread)
    own = pick_rows(spread.flatten(2), cluster).view(B, N, RANK, D)
    x = pick_rows(means, cluster) + torch.einsum("bnr,bnrd->bnd", draw.normal(B, N, RANK), own)
    x = x + _offsets(draw, B, N, D)
    x = x + draw.normal(B, N, D) * draw.uniform(B, 1, D, high=0.7)
    turned = torch.bmm(x, draw.normal(B, D, D) / math.sqrt(D))
    return torch.where(draw.chance(0.4, B, 1, 1), turned, x), y


def manifold(draw: Draw, n_classes: Tensor, n_rows: int, n_features: int) -> tuple[Tensor, Tensor]:
    """Clusters in few latent dimensions, bent by a random network; rows and the class of each."""
    cluster, y = _clusters(draw, n_classes, n_rows)
    B, N, d = len(n_classes), n_rows, 12
    centres = draw.normal(B, CLUSTERS, d) * draw.uniform(B, 1, 1, low=0.6, high=2.5)
    width = draw.uniform(B, CLUSTERS, d).pow(2) * draw.uniform(B, 1, 1, low=0.2, high=1.2)
    z = pick_rows(centres, cluster) + draw.normal(B, N, d) * pick_rows(width, cluster)
    z = z + _offsets(draw, B, N, d)
    z = _activated(draw, _linear(draw, z, 48))
    z = _linear(draw, standardised(z), n_features)
    z = torch.where(draw.chance(0.5, B, 1, 1), _activated(draw, z), z)
    noise = draw.uniform(B, 1, 1).pow(2) * draw.uniform(B, 1, n_features)
    return standardised(z) + draw.normal(B, N, n_features) * noise, y


def _offsets(draw: Draw, n_tasks: int, n_rows: int, n_columns: int) -> Tensor:
    """In some tasks, groups of rows (speakers, devices) are moved alike in all classes."""
    size = draw.uniform(n_tasks, 1, 1, low=0.2, high=1.5) * draw.chance(0.3, n_tasks, 1, 1)
    offsets = draw.normal(n_tasks, GROUPS, n_columns) * size
    group = draw.below(draw.integers(2, GROUPS + 1, n_tasks, 1), n_tasks, n_rows)
    return pick_rows(offsets, group)


def _roots(draw: Draw, n_tasks: int, n_rows: int) -> Tensor:
    """Inputs of a network: normal, uniform or heavy-tailed, in half of the tasks clustered."""
    B, N = n_tasks, n_rows
    kind = draw.uniform(B, 1, ROOTS)
    normal = draw.normal(B, N, ROOTS)
    # A ratio of normals has the tails of Student's t.
    heavy = normal / (draw.normal(B, N, ROOTS).abs() + 0.3)
    flat = draw.uniform(B, N, ROOTS, low=-1.7, high=1.7)
    z = torch.where(kind < 0.6, normal, torch.where(kind < 0.85, flat, heavy))
    z = z * draw.uniform(B, 1, ROOTS, low=0.1, high=1.1)
    clustered = draw.chance(0.5, B, 1, 1).float()
    n_centres = 24
    centres = draw.normal(B, n_centres, ROOTS) * 2
    which = draw.below(draw.integers(2, n_centres + 1, B, 1), B, N)
    return z * (1 - 0.6 * clustered) + clustered * pick_rows(centres, which)


def _linear(draw: Draw, z: Tensor, n_out: int) -> Tensor:
    """A random sparse linear layer."""
    B, n_in = z.shape[0], z.shape[-1]
    kept = draw.chance(draw.uniform(B, 1, 1, low=0.15), B, n_in, n_out)
    weight = draw.normal(B, n_in, n_out) * kept * (1.7 / math.sqrt(n_in))
    return torch.bmm(z, weight)


def _activated(draw: Draw, z: Tensor) -> Tensor:
    """Another activation for every node, or the same for the whole task."""
    B, d = z.shape[0], z.shape[-1]
    one = draw.uniform(B, 1, 1).expand(-1, -1, d)
    t = torch.where(draw.chance(0.5, B, 1, 1), one, draw.uniform(B, 1, d))
    z = z + draw.normal(B, 1, d) * 0.5
    options = (
        (0.30, torch.tanh(z)),
        (0.50, F.relu(z)),
        (0.62, torch.sin(2 * z)),
        (0.70, z.abs()),
        (0.76, (z > 0).to(z.dtype)),
        (0.82, z.square().clamp(max=20) * 0.5),
        (0.88, torch.exp(-z.square())),
    )
    out = z
    for bound, value in reversed(options):
        out = torch.where(t < bound, value, out)
    return out


def _clusters(draw: Draw, n_classes: Tensor, n_rows: int) -> tuple[Tensor, Tensor]:
    """The cluster of every row and the class of that cluster; each class has at least one."""
    B = len(n_classes)
    K = n_classes[:, None]
    position = torch.arange(CLUSTERS, device=draw.device)[None]
    owner = torch.where(position < K, position % K, draw.below(K, B, CLUSTERS))
    used = position < (K * draw.integers(1, 5, B, 1)).clamp(max=CLUSTERS)
    # Weights of clusters from alike to very unequal.
    weights = draw.uniform(B, CLUSTERS, low=0.02).pow(draw.uniform(B, 1, high=2.5))
    cluster = draw.categorical(weights.masked_fill(~used, 0.0), n_rows)
    return cluster, owner.gather(1, cluster)
