"""The network on a device of torch: the same two passes as :mod:`fewlabel.network.forward`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from fewlabel.network.forward import Slots
from fewlabel.network.weights import Array, Block, Weights, converted

QUERY_BLOCK = 2_048  # queries of one pass


@dataclass(frozen=True, eq=False)
class TorchContext:
    """What queries need of a context, as tensors; see :class:`fewlabel.network.forward.Context`."""

    keys: list[Any]
    values: list[Any]
    prototypes: Any
    known: Slots


class TorchPasses:
    """``read_context`` and ``ask`` with torch.

    Parameters
    ----------
    device : str
        A device of torch, such as "cuda" or "cpu".
    """

    def __init__(self, device: str) -> None:
        self.torch = torch = import_module("torch")
        self.device = torch.device(device)

    def read_context(
        self, weights: Weights, x: Array, present: Array, slots: Slots
    ) -> tuple[TorchContext, Array]:
        """Pass labelled and unlabelled rows through the network."""
        torch = self.torch
        w = _tensors(weights, self.device)
        with torch.inference_mode():
            shown = self._put(np.where(slots < 0, weights.classes, slots))
            z = self._embed(w, x, present) + w.label[shown]
            keys, values = [], []
            for block in w.blocks:
                q, k, v = self._project(block, z, weights.heads)
                mixed = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None])
                z = self._rest(block, z, mixed[0])
                keys.append(k)
                values.append(v)
            z = self._norm(z, w.norm)
            labeled = np.flatnonzero(slots >= 0)
            known, codes = np.unique(slots[labeled], return_inverse=True)
            one_hot = np.eye(len(known), dtype=np.float32)[:, codes]
            one_hot /= one_hot.sum(axis=1, keepdims=True)
            prototypes = self._put(one_hot) @ (z[self._put(labeled)] @ w.key)
            context = TorchContext(keys, values, prototypes, known)
            return context, self._logits(w, context, z)

    def ask(self, weights: Weights, context: TorchContext, x: Array, present: Array) -> Array:
        """Logits of the known classes for rows that are not in the context, block by block."""
        logits = np.empty((len(x), len(context.known)), dtype=np.float32)
        w = _tensors(weights, self.device)
        with self.torch.inference_mode():
            for start in range(0, len(x), QUERY_BLOCK):
                part = slice(start, start + QUERY_BLOCK)
                z = self._embed(w, x[part], present) + w.label[weights.classes]
                for block, keys, values in zip(w.blocks, context.keys, context.values, strict=True):
                    q, k, v = self._project(block, z, weights.heads)
                    z = self._rest(block, z, self._mixed(q, k, v, keys, values, weights.supervised))
                logits[part] = self._logits(w, context, self._norm(z, w.norm))
        return logits

    def _put(self, array: Any) -> Any:
        return self.torch.as_tensor(array, device=self.device)

    def _embed(self, w: Weights, x: Array, present: Array) -> Any:
        scale = math.sqrt(w.features / max(float(present.sum()), 1.0))
        n = w.features
        matrix, offset = w.embed1
        hidden = self._put(x * np.float32(scale)) @ matrix[:n]
        hidden = (hidden + (self._put(present) @ matrix[n:] + offset)).relu()
        return hidden @ w.embed2[0] + w.embed2[1]

    def _project(self, block: Block, z: Any, heads: int) -> Any:
        """Queries, keys and values of shape (heads, n_rows, width / heads)."""
        qkv = self._norm(z, block.norm1) @ block.qkv
        return qkv.view(len(z), 3, heads, -1).permute(1, 2, 0, 3)

    def _norm(self, z: Any, scale: Any) -> Any:
        return self.torch.nn.functional.rms_norm(z, z.shape[-1:], scale, 1e-6)

    def _rest(self, block: Block, z: Any, mixed: Any) -> Any:
        z = z + mixed.transpose(0, 1).reshape(z.shape) @ block.out
        return z + (self._norm(z, block.norm2) @ block.up).relu().square() @ block.down

    def _mixed(self, q: Any, k: Any, v: Any, keys: Any, values: Any, supervised: bool) -> Any:
        """Attention of queries to the context and, unless ``supervised``, each to itself."""
        q = q / math.sqrt(q.shape[2])
        scores = q @ keys.mT
        if supervised:
            return scores.softmax(2) @ values
        own = (q * k).sum(2, keepdim=True)
        share = self.torch.cat([scores, own], 2).softmax(2)
        return share[..., :-1] @ values + share[..., -1:] * v

    def _logits(self, w: Weights, context: TorchContext, z: Any) -> Array:
        matrix, offset = w.slot
        known = self._put(context.known)
        near = (z @ w.query) @ context.prototypes.T / math.sqrt(w.width)
        found: Array = (z @ matrix[:, known] + offset[known] + near).cpu().numpy()
        return found


@lru_cache(maxsize=2)
def _tensors(weights: Weights, device: Any) -> Any:
    """The same weights with tensors of a device instead of arrays."""
    torch = import_module("torch")
    return converted(weights, lambda array: torch.as_tensor(array, device=device))
