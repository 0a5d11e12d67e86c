"""The network: a transformer in which every row of a table attends to every other.

A row becomes one vector: its values, and the label if it is given. Attention has no order, so rows
may come in any. The logit of a class has two parts: a direction of its slot, and the similarity to
the mean of the labelled rows of the class, which works the same way for any number of classes.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

EPSILON = 1e-6  # of the norms


@dataclass(frozen=True)
class Size:
    """Numbers that make an architecture."""

    features: int = 64
    classes: int = 32
    width: int = 256
    layers: int = 12
    heads: int = 4
    hidden: int = 512

    def as_dict(self) -> dict[str, int]:
        """For a file."""
        return asdict(self)


class Norm(nn.Module):
    """Root mean square norm with a learned scale."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, z: Tensor) -> Tensor:
        """Rows of length sqrt(width), scaled."""
        return F.rms_norm(z, z.shape[-1:], self.scale, EPSILON)


class Block(nn.Module):
    """Attention between rows, then a network for each row."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        d = size.width
        self.heads = size.heads
        self.norm1, self.norm2 = Norm(d), Norm(d)
        self.qkv = nn.Linear(d, 3 * d, bias=False)
        self.out = nn.Linear(d, d, bias=False)
        self.up = nn.Linear(d, size.hidden, bias=False)
        self.down = nn.Linear(size.hidden, d, bias=False)

    def forward(self, z: Tensor, mask: Tensor | None) -> Tensor:
        """z of shape (B, N, width); a mask of shape (B, 1, 1, N) hides rows from all others."""
        B, N, d = z.shape
        q, k, v = self.qkv(self.norm1(z)).view(B, N, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        z = z + self.out(mixed.transpose(1, 2).reshape(B, N, d))
        return z + self.down(F.relu(self.up(self.norm2(z))).square())


class PriorNetwork(nn.Module):
    """The whole network.

    Parameters
    ----------
    size : Size
    supervised : bool, default=False
        The ablation: every row attends to labelled rows only.
    """

    def __init__(self, size: Size, *, supervised: bool = False) -> None:
        super().__init__()
        self.size, self.supervised = size, supervised
        d = size.width
        self.embed1 = nn.Linear(2 * size.features, 2 * d)
        self.embed2 = nn.Linear(2 * d, d)
        self.label = nn.Embedding(size.classes + 1, d)  # the last one: no label
        self.blocks = nn.ModuleList([Block(size) for _ in range(size.layers)])
        self.norm = Norm(d)
        self.slot = nn.Linear(d, size.classes)
        self.query = nn.Linear(d, d, bias=False)
        self.key = nn.Linear(d, d, bias=False)
        self._initialise()

    def _initialise(self) -> None:
        nn.init.normal_(self.label.weight, std=0.5)
        for block in self.blocks:
            # Every block starts as the identity.
            nn.init.zeros_(block.out.weight)
            nn.init.zeros_(block.down.weight)
        nn.init.zeros_(self.slot.weight)

    def forward(self, x: Tensor, present: Tensor, y: Tensor, given: Tensor) -> Tensor:
        """Logits of shape (B, N, classes); -inf for classes of which no label is given."""
        n_slots = self.size.classes
        shown = torch.where(given, y, n_slots)
        z = self.embed(x, present) + self.label(shown)
        mask = given[:, None, None] if self.supervised else None
        for block in self.blocks:
            z = block(z, mask)
        return self.read(self.norm(z), F.one_hot(shown, n_slots + 1)[..., :n_slots])

    def embed(self, x: Tensor, present: Tensor) -> Tensor:
        """Vectors of rows, from their values and from which columns there are."""
        share = present.sum(1).clamp(min=1) / self.size.features
        x = x / share.sqrt()[:, None, None]
        both = torch.cat([x, present[:, None].expand_as(x)], -1)
        return self.embed2(F.relu(self.embed1(both)))

    def read(self, z: Tensor, one_hot: Tensor) -> Tensor:
        """Logits from the last vectors; ``one_hot`` is 0 for rows without label."""
        count = one_hot.sum(1)  # (B, classes)
        sums = torch.einsum("bnc,bnd->bcd", one_hot.to(z.dtype), self.key(z))
        means = sums / count.clamp(min=1)[..., None]
        near = torch.einsum("bnd,bcd->bnc", self.query(z), means) / math.sqrt(z.shape[-1])
        logits = (self.slot(z) + near).float()
        return logits.masked_fill((count == 0)[:, None], -torch.inf)


def more_slots(embedding: Tensor, n_features: int) -> Tensor:
    """The first matrix, (out, 2 * old), for more slots for columns: (out, 2 * ``n_features``).

    A new slot gets a random rotation of the old ones: no slot means anything, only their spread
    matters. Values are multiplied by the root of slots over columns, which is larger now.
    """
    values, present = embedding.chunk(2, 1)
    n_old = values.shape[1]
    blocks, marks = [values], [present]
    generator = torch.Generator().manual_seed(0)
    while sum(block.shape[1] for block in blocks) < n_features:
        rotation = torch.linalg.qr(torch.randn(n_old, n_old, generator=generator)).Q
        blocks.append(values @ rotation)
        marks.append(present)
    values = torch.cat(blocks, 1)[:, :n_features] * math.sqrt(n_old / n_features)
    return torch.cat([values, torch.cat(marks, 1)[:, :n_features]], 1)
