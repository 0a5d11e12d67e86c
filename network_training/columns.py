"""What happens to the columns of real tables: categories, warps, noise, copies, gaps, rotations."""

from __future__ import annotations

import torch
from torch import Tensor

from network_training.draw import Draw, pick_columns, standard_deviation, standardised

LEVELS = 8  # most values of a categorical column
LARGEST = 5.0  # values are clipped at this many standard deviations
LARGEST_FACTOR = 2.5  # of a component whose variance is kept in part
ITERATIONS = 10  # of the orthogonal iteration for components


def _share(draw: Draw, n_tasks: int, never: float, most: float = 1.0) -> Tensor:
    """For each task the share of columns that something happens to; often 0."""
    share = draw.uniform(n_tasks, 1, 1, high=most)
    return torch.where(draw.chance(never, n_tasks, 1, 1), torch.zeros_like(share), share)


def warped(draw: Draw, x: Tensor) -> Tensor:
    """Powers, exponentials and saturation of some columns."""
    B, _, D = x.shape
    x = standardised(x)
    power = draw.uniform(B, 1, D, low=0.3, high=2.5)
    t = draw.uniform(B, 1, D) / _share(draw, B, 0.4).clamp(min=1e-6)
    options = (
        (0.4, x.sign() * x.abs().clamp(min=1e-4).pow(power)),
        (0.7, torch.exp(x.clamp(-4, 4) * 0.8)),
        (1.0, torch.tanh(2 * x)),
    )
    out = x
    for bound, value in reversed(options):
        out = torch.where(t < bound, value, out)
    return out


def categorised(draw: Draw, x: Tensor) -> Tensor:
    """Some columns cut into few levels, in half of them without order; some tasks all binary."""
    B, N, D = x.shape
    row = draw.integers(0, N, B, LEVELS - 1, D)
    cuts = x.gather(1, row)
    binary = draw.chance(0.12, B, 1, 1)
    n_cuts = torch.where(binary, 1, draw.integers(1, LEVELS, B, 1, D))
    level = torch.zeros(B, N, D, dtype=torch.long, device=x.device)
    for k in range(LEVELS - 1):
        level += (x > cuts[:, k : k + 1]) & (k < n_cuts)
    values = draw.normal(B, LEVELS, D).gather(1, level)
    nominal = draw.chance(0.5, B, 1, D)
    cut = torch.where(nominal & ~binary, values, level.to(x.dtype))
    chosen = draw.chance(_share(draw, B, 0.55), B, 1, D) | binary
    return torch.where(chosen, cut, x)


def correlated(draw: Draw, x: Tensor) -> Tensor:
    """In some tasks, columns that are mixtures of few common factors and of little else."""
    B, N, D = x.shape
    decay = draw.uniform(B, 1, 1, low=0.5, high=8.0)
    strength = torch.exp(-torch.arange(D, device=x.device)[None, None] / decay)
    factors = torch.bmm(standardised(x), draw.normal(B, D, D)) * strength
    # Loadings of one sign are common: a size that all columns measure.
    loadings = draw.normal(B, D, D)
    loadings = torch.where(draw.chance(0.4, B, 1, 1), loadings.abs(), loadings)
    mixed = standardised(torch.bmm(factors, loadings))
    mixed = mixed + draw.normal(B, N, D) * draw.uniform(B, 1, D).pow(2) * draw.uniform(B, 1, 1)
    return torch.where(draw.chance(0.25, B, 1, 1), mixed, x)


def diluted(draw: Draw, x: Tensor) -> Tensor:
    """Some columns made irrelevant, others near copies of their neighbours."""
    B, N, D = x.shape
    # A column that is moved along the rows keeps its distribution and says nothing any more.
    moved = torch.arange(N, device=x.device)[None, :, None] + draw.integers(1, N, B, 1, D)
    irrelevant = draw.chance(_share(draw, B, 0.6, 0.6), B, 1, D)
    x = torch.where(irrelevant, x.gather(1, moved % N), x)
    near = pick_columns(x, draw.integers(0, D, B, D)) * draw.normal(B, 1, D).sign()
    near = near + draw.normal(B, N, D) * draw.uniform(B, 1, D).pow(2) * 0.5
    return torch.where(draw.chance(_share(draw, B, 0.7, 0.5), B, 1, D), near, x)


def with_gaps(draw: Draw, x: Tensor) -> Tensor:
    """Standardised columns of which some cells were missing and got the mean."""
    B, N, D = x.shape
    rate = _share(draw, B, 0.8, 0.4) * draw.uniform(B, 1, D)
    return x.masked_fill(draw.chance(rate, B, N, D), 0.0)


def as_ranks(x: Tensor) -> Tensor:
    """Columns with the ranks of their values as normal quantiles."""
    rank = x.transpose(1, 2).argsort(-1).argsort(-1).transpose(1, 2)
    return torch.special.ndtri((rank.to(x.dtype) + 0.5) / x.shape[1])


def scaled(draw: Draw, x: Tensor) -> Tensor:
    """Standardised columns, in some tasks of different sizes."""
    B, _, D = x.shape
    x = torch.nan_to_num(x, nan=0.0, posinf=1e4, neginf=-1e4)
    size = torch.exp(draw.normal(B, 1, D) * draw.uniform(B, 1, 1) * draw.chance(0.4, B, 1, 1))
    return standardised(x) * size


def as_components(draw: Draw, x: Tensor, n_components: int) -> Tensor:
    """Leading principal components, largest first, of columns with mean 0.

    Orthogonal iteration: on a GPU, eigenvectors of many matrices are slow beyond 32 columns.
    Components with nearly the same variance may stay mixed.
    """
    B, N, D = x.shape
    x = x - x.mean(1, keepdim=True)
    covariance = torch.bmm(x.mT, x).double() / N
    size = covariance.diagonal(dim1=1, dim2=2).mean(1)[:, None, None] + 1e-12
    covariance = covariance / size + 1e-3 * torch.eye(D, device=x.device, dtype=torch.float64)
    v = draw.normal(B, D, n_components).double()
    for _ in range(ITERATIONS):
        v = torch.bmm(covariance, v)
        root, _ = torch.linalg.cholesky_ex(torch.bmm(v.mT, v))
        v = torch.linalg.solve_triangular(root, v.mT, upper=False).mT
    # A covariance of deficient rank may have no Cholesky root in double precision: no components.
    return torch.bmm(x, torch.nan_to_num(v, nan=0.0, posinf=0.0, neginf=0.0).to(x.dtype))


def importance(draw: Draw, components: Tensor) -> Tensor:
    """Factors (B, 1, D) for standardised components that keep a part of their variances.

    Powers of the standard deviation from 0 (all alike) to 1 (as in the table), mean square 1.
    """
    B = len(components)
    deviation = standard_deviation(components)
    share = deviation / deviation.amax(2, keepdim=True).clamp(min=1e-12)
    power = draw.uniform(B, 1, 1) * draw.chance(0.6, B, 1, 1)
    factor = share.clamp(min=0.01).pow(power)
    return (factor / factor.square().mean(2, keepdim=True).sqrt()).clamp(max=LARGEST_FACTOR)


def finished(x: Tensor) -> Tensor:
    """Standardised and clipped, as the network sees columns."""
    x = torch.nan_to_num(x, nan=0.0, posinf=1e4, neginf=-1e4)
    return standardised(x).clamp(-LARGEST, LARGEST)
