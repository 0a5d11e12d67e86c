"""The network in NumPy: against torch's answers and a literal transcription, block by block."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

from fewlabel.network import forward
from fewlabel.network.forward import ask, read_context
from fewlabel.network.torch_forward import TorchPasses
from fewlabel.network.weights import PACKAGED, load_weights

HERE = Path(__file__).parent
TINY = HERE / "tiny_network.npz"


@pytest.fixture
def tasks():
    with np.load(HERE / "tiny_answers.npz") as file:
        arrays = {name: file[name] for name in file.files}
    return [dict(zip(arrays, values, strict=True)) for values in zip(*arrays.values(), strict=True)]


def reference_logits(weights, x, present, slots):
    """Row by row in double precision, after the formulas of the module."""

    def norm(z, scale):
        return z / np.sqrt(np.mean(z**2) + 1e-6) * scale

    scale = math.sqrt(weights.features / present.sum())
    z = []
    for row, slot in zip(x.astype(float), slots, strict=True):
        both = np.concatenate([row * scale, present])
        hidden = np.maximum(both @ weights.embed1[0] + weights.embed1[1], 0)
        z.append(hidden @ weights.embed2[0] + weights.embed2[1] + weights.label[slot])
    for block in weights.blocks:
        q, k, v = (
            np.array([norm(row, block.norm1) @ part for row in z]).reshape(
                len(z), weights.heads, -1
            )
            for part in np.split(block.qkv, 3, axis=1)
        )
        for n, row in enumerate(z):
            heads = []
            for h in range(weights.heads):
                share = softmax(k[:, h] @ q[n, h] / math.sqrt(q.shape[2]))
                heads.append(share @ v[:, h])
            row = row + np.concatenate(heads) @ block.out
            up = np.maximum(norm(row, block.norm2) @ block.up, 0) ** 2
            z[n] = row + up @ block.down
    z = [norm(row, weights.norm) for row in z]
    logits = np.full((len(z), weights.classes), -np.inf)
    for c in set(slots[slots >= 0]):
        prototype = np.mean([row @ weights.key for row, s in zip(z, slots) if s == c], axis=0)
        for n, row in enumerate(z):
            near = (row @ weights.query) @ prototype / math.sqrt(weights.width)
            logits[n, c] = row @ weights.slot[0][:, c] + weights.slot[1][c] + near
    return logits


def test_same_probabilities_as_torch_gave(tasks):
    for task in tasks:
        context, logits = read_context(
            load_weights(TINY), task["x"], task["present"], task["slots"]
        )
        np.testing.assert_allclose(
            softmax(logits, axis=1), task["proba"][:, context.known], atol=1e-4
        )
        unknown = np.setdiff1d(np.arange(32), context.known)
        assert (task["proba"][:, unknown] == 0).all()


@pytest.mark.parametrize("supervised", [False, True])
def test_torch_passes_give_the_logits_of_numpy(tasks, supervised):
    pytest.importorskip("torch", reason="needs torch to compare with")
    weights, task = replace(load_weights(TINY), supervised=supervised), tasks[1]
    shown = task["x"], task["present"], task["slots"]
    context, logits = read_context(weights, *shown)
    passes = TorchPasses("cpu")
    on_torch, found = passes.read_context(weights, *shown)
    np.testing.assert_allclose(found, logits, rtol=1e-3, atol=1e-3)
    answer = passes.ask(weights, on_torch, task["x"], task["present"])
    expected = ask(weights, context, task["x"], task["present"])
    np.testing.assert_allclose(answer, expected, rtol=1e-3, atol=1e-3)


def test_same_logits_as_the_formulas(tasks):
    weights = load_weights(TINY)
    task = tasks[0]
    context, logits = read_context(weights, task["x"], task["present"], task["slots"])
    expected = reference_logits(weights, task["x"], task["present"], task["slots"])
    np.testing.assert_allclose(logits, expected[:, context.known], rtol=1e-3, atol=1e-3)


def test_a_query_sees_the_context_and_itself(tasks):
    """With one layer, a query is answered as a row of the context would be."""
    weights, task = load_weights(TINY), tasks[0]
    shallow = replace(weights, blocks=weights.blocks[:1], query=np.zeros_like(weights.query))
    labeled = np.flatnonzero(task["slots"] >= 0)
    row = np.flatnonzero(task["slots"] < 0)[:1]
    context, _ = read_context(shallow, task["x"][labeled], task["present"], task["slots"][labeled])
    both = np.append(labeled, row)
    _, inside = read_context(shallow, task["x"][both], task["present"], task["slots"][both])
    answer = ask(shallow, context, task["x"][row], task["present"])
    np.testing.assert_allclose(answer[0], inside[-1], rtol=1e-3, atol=1e-4)


def test_votes_do_not_depend_on_other_queries_or_blocks(tasks, monkeypatch):
    weights, task = load_weights(TINY), tasks[1]
    context, logits = read_context(weights, task["x"], task["present"], task["slots"])
    together = ask(weights, context, task["x"], task["present"])
    for n in (0, 7, 23):
        alone = ask(weights, context, task["x"][n : n + 1], task["present"])
        np.testing.assert_allclose(alone[0], together[n], rtol=1e-11, atol=1e-12)
    monkeypatch.setattr(forward, "_SCORE_BLOCK", 5)
    monkeypatch.setattr(forward, "QUERY_BLOCK", 7)
    np.testing.assert_allclose(
        ask(weights, context, task["x"], task["present"]), together, rtol=1e-11, atol=1e-12
    )
    blocked = read_context(weights, task["x"], task["present"], task["slots"])[1]
    np.testing.assert_allclose(blocked, logits, rtol=1e-3, atol=1e-4)


def test_the_order_of_rows_means_nothing(tasks):
    weights, task = load_weights(TINY), tasks[2]
    order = np.random.default_rng(0).permutation(len(task["x"]))
    _, logits = read_context(weights, task["x"], task["present"], task["slots"])
    _, moved = read_context(weights, task["x"][order], task["present"], task["slots"][order])
    np.testing.assert_allclose(moved, logits[order], rtol=1e-3, atol=1e-4)


def test_packaged_weights_give_the_probabilities_of_torch():
    torch = pytest.importorskip("torch", reason="needs torch to compare with")
    from network_training.export import read_weights
    from network_training.model import PriorNetwork
    from network_training.prior import draw_tasks

    state, size = read_weights(PACKAGED)
    network = PriorNetwork(size)
    network.load_state_dict(state)
    tasks = draw_tasks(1, 2, 128, "cpu")
    # The packaged network may have fewer slots for columns than the prior of today.
    x, present = tasks.x[..., : size.features], tasks.present[:, : size.features]
    with torch.no_grad():
        expected = network(x, present, tasks.y, tasks.given).softmax(-1).numpy()
    slots = torch.where(tasks.given, tasks.y, -1).numpy()
    for b in range(2):
        context, logits = read_context(load_weights(), x[b].numpy(), present[b].numpy(), slots[b])
        np.testing.assert_allclose(
            softmax(logits, axis=1), expected[b][:, context.known], atol=1e-3
        )
