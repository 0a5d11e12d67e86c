"""Random numbers on a device, from one seeded generator."""

from __future__ import annotations

import torch
from torch import Tensor


class Draw:
    """Draws tensors on one device; the same seed and device give the same tensors.

    Parameters
    ----------
    seed : int
    device : str or torch.device
    """

    def __init__(self, seed: int, device: str | torch.device) -> None:
        self.device = torch.device(device)
        self._generator = torch.Generator(self.device).manual_seed(seed)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers."""
        return torch.randn(*shape, device=self.device, generator=self._generator)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Uniform numbers of an interval."""
        u = torch.rand(*shape, device=self.device, generator=self._generator)
        return low + (high - low) * u

    def integers(self, low: int, high: int, *shape: int) -> Tensor:
        """Integers from ``low`` up to ``high`` - 1."""
        return torch.randint(low, high, shape, device=self.device, generator=self._generator)

    def chance(self, p: float | Tensor, *shape: int) -> Tensor:
        """True with probability p."""
        return self.uniform(*shape) < p

    def below(self, bound: Tensor, *shape: int) -> Tensor:
        """Integers from 0 up to ``bound`` - 1, where bounds differ between tasks."""
        return (self.uniform(*shape) * bound).long().minimum(bound.long() - 1)

    def categorical(self, weights: Tensor, n: int) -> Tensor:
        """n categories for each row of ``weights``, with replacement."""
        return torch.multinomial(weights, n, replacement=True, generator=self._generator)


def pick_rows(table: Tensor, index: Tensor) -> Tensor:
    """``table[b, index[b, n]]`` for tables of shape (B, M, d): shape (B, N, d)."""
    return table.gather(1, index[..., None].expand(-1, -1, table.shape[-1]))


def pick_columns(table: Tensor, index: Tensor) -> Tensor:
    """``table[b, :, index[b]]`` for tables of shape (B, N, P): shape (B, N, d)."""
    return table.gather(2, index[:, None].expand(-1, table.shape[1], -1))


def standardised(x: Tensor) -> Tensor:
    """Mean 0 and variance 1 over the rows of each task; constant columns become 0."""
    centred = x - x.mean(1, keepdim=True)
    return centred / (centred.square().mean(1, keepdim=True).sqrt() + 1e-6)


def standard_deviation(x: Tensor) -> Tensor:
    """Over the rows of each task: shape (B, 1, d)."""
    return (x - x.mean(1, keepdim=True)).square().mean(1, keepdim=True).sqrt()
