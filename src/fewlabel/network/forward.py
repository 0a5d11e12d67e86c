r"""The network in NumPy: one context of labelled and unlabelled rows, then any number of queries.

Rows of the context attend to each other. A query attends to the context and to itself, so what it
is told does not depend on which other rows are asked about at the same time. With
:math:`z` the vector of a row, a layer is

.. math:: z \leftarrow z + W_o\,\mathrm{attention}(z), \qquad
    z \leftarrow z + W_2 \max(0, W_1 \mathrm{norm}(z))^2,

and the logit of class c is :math:`w_c^\top z + b_c + q(z)^\top \bar k_c/\sqrt d` with
:math:`\bar k_c` the mean key of the labelled rows of c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fewlabel.network.weights import Array, Block, Weights, converted

EPSILON = np.float32(1e-6)  # of the norms, as in training
QUERY_BLOCK = 128
"""Queries of one pass."""
_SCORE_BLOCK = 256  # rows whose attention scores are held at once

Slots = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Context:
    """What queries need of a context.

    Attributes
    ----------
    keys, values : list of ndarray of shape (n_rows, width)
        Of every layer.
    prototypes : ndarray of shape (n_known, width)
        Mean key of the labelled rows of each known class.
    known : ndarray of int of shape (n_known,)
        Slots of the classes that have labels.
    """

    keys: list[Array]
    values: list[Array]
    prototypes: Array
    known: Slots


def read_context(weights: Weights, x: Array, present: Array, slots: Slots) -> tuple[Context, Array]:
    """Pass labelled and unlabelled rows through the network.

    Parameters
    ----------
    weights : Weights
    x : ndarray of shape (n_rows, features)
        Standardised columns in their slots; absent ones 0.
    present : ndarray of shape (features,)
        1 for slots that have a column.
    slots : ndarray of int of shape (n_rows,)
        Class slot, or -1 for unlabelled rows.

    Returns
    -------
    context : Context
    logits : ndarray of shape (n_rows, n_known)
        For the known classes, in the order of ``context.known``. Only those of unlabelled rows
        mean anything.
    """
    shown = np.where(slots < 0, weights.classes, slots)
    z: Array = embed(weights, x, present) + weights.label[shown]
    keys, values = [], []
    for block in weights.blocks:
        q, k, v = _project(block, z)
        _add_rows(z, block, _attention(q, k, v, weights.heads))
        keys.append(k)
        values.append(v)
    z = _norm(z, weights.norm)
    labeled = slots >= 0
    known, codes = np.unique(slots[labeled], return_inverse=True)
    one_hot = np.zeros((len(known), len(codes)), dtype=np.float32)
    one_hot[codes, np.arange(len(codes))] = 1.0
    one_hot /= one_hot.sum(axis=1, keepdims=True)
    prototypes = one_hot @ (z[labeled] @ weights.key)
    context = Context(keys, values, prototypes, known)
    return context, _logits(weights, context, z)


def ask(weights: Weights, context: Context, x: Array, present: Array) -> Array:
    """Logits of the known classes for rows that are not in the context, block by block.

    In double precision: in single precision the sixth digit of a row's votes would depend on where
    it stands among the others, because libraries multiply the rows of a matrix in unlike ways.

    Returns
    -------
    logits : ndarray of shape (n_rows, n_known)
    """
    weights, context = _weights_in_double(weights), converted(context, _in_double)
    logits = np.empty((len(x), len(context.known)))
    for start in range(0, len(x), QUERY_BLOCK):
        part = slice(start, start + QUERY_BLOCK)
        logits[part] = _ask_block(weights, context, x[part], present)
    return logits


def _in_double(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype == np.float32 else array


@lru_cache(maxsize=2)
def _weights_in_double(weights: Weights) -> Weights:
    return converted(weights, _in_double)


def _ask_block(weights: Weights, context: Context, x: Array, present: Array) -> Array:
    z = embed(weights, x, present) + weights.label[weights.classes]
    for block, keys, values in zip(weights.blocks, context.keys, context.values, strict=True):
        q, k, v = _project(block, z)
        if weights.supervised:
            mixed = _attention(q, keys, values, weights.heads)
        else:
            mixed = _attention_with_self(q, k, v, keys, values, weights.heads)
        _add_rows(z, block, mixed)
    return _logits(weights, context, _norm(z, weights.norm))


def embed(weights: Weights, x: Array, present: Array) -> Array:
    """Vectors of rows, from their values and from which columns there are."""
    scale = np.float32(math.sqrt(weights.features / max(float(present.sum()), 1.0)))
    matrix, offset = weights.embed1
    n = weights.features
    hidden = (x * scale) @ matrix[:n] + (present @ matrix[n:] + offset)
    np.maximum(hidden, 0.0, out=hidden)
    return np.asarray(hidden @ weights.embed2[0] + weights.embed2[1])


def _project(block: Block, z: Array) -> tuple[Array, Array, Array]:
    qkv = _norm(z, block.norm1) @ block.qkv
    q, k, v = (np.ascontiguousarray(part) for part in np.split(qkv, 3, axis=1))
    return q, k, v


def _add_rows(z: Array, block: Block, mixed: Array) -> None:
    """The rest of a layer, in place."""
    z += mixed @ block.out
    hidden = _norm(z, block.norm2) @ block.up
    np.maximum(hidden, 0.0, out=hidden)
    np.square(hidden, out=hidden)
    z += hidden @ block.down


def _norm(z: Array, scale: Array) -> Array:
    mean_square = np.einsum("nd,nd->n", z, z) / np.float32(z.shape[1])
    return z * (1.0 / np.sqrt(mean_square + EPSILON))[:, None] * scale


def _attention(q: Array, k: Array, v: Array, heads: int) -> Array:
    out = np.empty_like(q)
    width = q.shape[1] // heads
    scale = np.float32(1.0 / math.sqrt(width))
    for start in range(0, q.shape[1], width):
        head = slice(start, start + width)
        keys, values = k[:, head].T, v[:, head]
        for first in range(0, len(q), _SCORE_BLOCK):
            rows = slice(first, first + _SCORE_BLOCK)
            scores = (q[rows, head] * scale) @ keys
            scores -= scores.max(axis=1, keepdims=True)
            np.exp(scores, out=scores)
            out[rows, head] = (scores @ values) / scores.sum(axis=1, keepdims=True)
    return out


def _attention_with_self(
    q: Array, k: Array, v: Array, keys: Array, values: Array, heads: int
) -> Array:
    """Attention of queries to the context and each to itself."""
    out = np.empty_like(q)
    width = q.shape[1] // heads
    scale = np.float32(1.0 / math.sqrt(width))
    for start in range(0, q.shape[1], width):
        head = slice(start, start + width)
        scaled = q[:, head] * scale
        scores = scaled @ keys[:, head].T
        own = np.einsum("nd,nd->n", scaled, k[:, head])[:, None]
        largest = np.maximum(scores.max(axis=1, keepdims=True), own)
        scores -= largest
        np.exp(scores, out=scores)
        own = np.exp(own - largest)
        total = scores.sum(axis=1, keepdims=True) + own
        out[:, head] = (scores @ values[:, head] + own * v[:, head]) / total
    return out


def _logits(weights: Weights, context: Context, z: Array) -> Array:
    matrix, offset = weights.slot
    near = (z @ weights.query) @ context.prototypes.T / np.float32(math.sqrt(weights.width))
    return np.asarray(z @ matrix[:, context.known] + offset[context.known] + near)
