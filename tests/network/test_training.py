"""Training, small and on a CPU: tasks, resuming, export. Skipped where torch is not installed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch")

from fewlabel.network.weights import load_weights  # noqa: E402
from network_training.columns import LARGEST, LARGEST_FACTOR, as_components  # noqa: E402
from network_training.draw import Draw  # noqa: E402
from network_training.export import read_weights, write_weights  # noqa: E402
from network_training.fixture import write_fixture  # noqa: E402
from network_training.model import PriorNetwork, Size, more_slots  # noqa: E402
from network_training.optim import orthogonalised  # noqa: E402
from network_training.parts import pack, unpack  # noqa: E402
from network_training.prior import (  # noqa: E402
    CLASSES,
    FEATURES,
    KINDS,
    NARROW,
    WIDE,
    draw_tasks,
)
from network_training.train import IGNORED, TINY, learning_rate, main, targets  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("n_columns", [NARROW, WIDE])
def test_tasks_are_as_the_network_wants_them(n_columns):
    tasks = draw_tasks(0, 40, 64, "cpu", n_columns)
    assert tasks.x.shape == (40, 64, FEATURES)
    assert torch.isfinite(tasks.x).all()
    assert tasks.x.abs().max() <= LARGEST * LARGEST_FACTOR
    assert tasks.present.sum(1).min() >= 3
    assert tasks.present.sum(1).max() == min(n_columns, FEATURES)
    assert (tasks.x[(tasks.present == 0)[:, None].expand_as(tasks.x)] == 0).all()
    assert tasks.y.min() >= 0
    assert tasks.y.max() < CLASSES
    assert tasks.given.any(1).all()
    assert not tasks.given.all(1).any()
    assert set(tasks.kind.tolist()) == set(range(len(KINDS)))


def test_tasks_depend_on_the_seed_alone():
    first, same, other = (draw_tasks(seed, 8, 32, "cpu") for seed in (3, 3, 4))
    assert (first.x == same.x).all()
    assert (first.y == same.y).all()
    assert (first.x != other.x).any()


def test_rows_of_classes_without_label_are_left_out_of_the_loss():
    tasks = draw_tasks(0, 40, 64, "cpu")
    target = targets(tasks, CLASSES)
    assert (target[tasks.given] == IGNORED).all()
    for b in range(40):
        known = set(tasks.y[b][tasks.given[b]].tolist())
        assert set(target[b][target[b] != IGNORED].tolist()) <= known


def test_absent_classes_have_no_probability():
    tasks = draw_tasks(0, 4, 32, "cpu")
    network = PriorNetwork(Size(width=32, layers=1, heads=2, hidden=32))
    logits = network(tasks.x, tasks.present, tasks.y, tasks.given)
    for b in range(4):
        known = tasks.y[b][tasks.given[b]].unique()
        assert torch.isfinite(logits[b][:, known]).all()
        assert torch.isinf(logits[b]).sum() == 32 * (CLASSES - len(known))


def test_supervised_network_does_not_see_unlabelled_rows():
    tasks = draw_tasks(0, 2, 32, "cpu")
    size = Size(width=32, layers=2, heads=2, hidden=32)
    for supervised in (True, False):
        network = PriorNetwork(size, supervised=supervised)
        for parameter in network.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        last = int(torch.nonzero(~tasks.given[0])[-1])
        x = tasks.x.clone()
        x[0, last] += 1
        before = network(tasks.x, tasks.present, tasks.y, tasks.given)[0]
        after = network(x, tasks.present, tasks.y, tasks.given)[0]
        others = torch.arange(32) != last
        finite = torch.isfinite(before[others])
        same = torch.allclose(before[others][finite], after[others][finite], atol=1e-5)
        assert same == supervised


def test_components_are_the_principal_ones():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 200, 12, generator=generator) * 0.6 ** torch.arange(12)
    x = x @ torch.linalg.qr(torch.randn(12, 12, generator=generator)).Q
    found = as_components(Draw(0, "cpu"), x, 5)
    centred = (x - x.mean(1, keepdim=True)).numpy()
    for task, scores in zip(centred, found, strict=True):
        u, s, _ = np.linalg.svd(task, full_matrices=False)
        cosines = np.abs((u[:, :5] * scores.numpy()).sum(0)) / s[:5]
        assert cosines.min() > 0.99


def test_more_slots_keep_what_the_network_says():
    # With twice the columns present in twice the slots, the old slots still get the same vectors.
    old, new = (PriorNetwork(Size(features, 32, 32, 1, 2, 32)) for features in (8, 16))
    state = {name: value.clone() for name, value in old.state_dict().items()}
    state["embed1.weight"] = more_slots(state["embed1.weight"], 16)
    new.load_state_dict(state)
    x, present = torch.randn(2, 5, 8), torch.tensor([[1.0] * 8, [1.0] * 3 + [0.0] * 5])
    x = x * present[:, None]
    wider = torch.cat([x, torch.zeros_like(x)], -1)
    marks = torch.cat([present, torch.zeros_like(present)], -1)
    torch.testing.assert_close(new.embed(wider, marks), old.embed(x, present))


def test_the_learning_rate_falls_in_the_last_half():
    warm = TINY.warm_up
    assert learning_rate(TINY, 0, 0.0) == 1 / warm
    assert [learning_rate(TINY, warm, done) for done in (0.0, 0.5, 0.75, 1.0)] == [1, 1, 0.5, 0.01]


def test_updates_of_muon_are_nearly_orthogonal():
    torch.manual_seed(0)
    values = torch.linalg.svdvals(orthogonalised(torch.randn(3, 16, 8)))
    assert values.min() > 0.5
    assert values.max() < 1.5


def train(folder: Path, name: str, *more: str) -> list[dict]:
    log = folder / f"{name}.jsonl"
    main([str(folder / f"{name}.pt"), "--tiny", "--steps", "16", "--log", str(log), *more])
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_an_interrupted_run_goes_on_as_if_it_had_not_been(tmp_path):
    whole = train(tmp_path, "whole")[-1]
    train(tmp_path, "parts", "--seconds", "0")
    resumed = train(tmp_path, "parts")[-1]
    assert resumed["step"] == whole["step"] == 16
    assert resumed["loss_32_128"] == whole["loss_32_128"]
    assert {"accuracy", "accuracy_48", "accuracy_mixture", "prior"} <= set(whole)


def test_a_run_starts_from_weights_and_ends_its_schedule_in_time(tmp_path):
    path = tmp_path / "weights.npz"
    done = train(tmp_path, "first", "--weights", str(path))[-1]
    lines = train(tmp_path, "second", "--start", str(path), "--all-seconds", "0.001")
    assert [line["step"] for line in lines] == [0, 4]  # one chunk
    assert abs(lines[0]["loss_32_128"] - done["loss_32_128"]) < 1e-3


def test_weights_of_another_network_are_refused(tmp_path):
    path = tmp_path / "weights.npz"
    size = Size(width=16, layers=1, heads=2, hidden=32)
    write_weights(PriorNetwork(size).state_dict(), size, path)
    with pytest.raises(ValueError, match="cannot become"):
        train(tmp_path, "other", "--start", str(path))


def test_a_packed_checkpoint_goes_on(tmp_path):
    train(tmp_path, "packed", "--seconds", "0", "--optimiser", "adamw", "--lr", "1e-3")
    pack(tmp_path / "packed.pt", tmp_path / "folder")
    unpack(tmp_path / "folder", tmp_path / "packed.pt")
    assert train(tmp_path, "packed", "--optimiser", "adamw")[-1]["step"] == 16


def test_exported_weights_are_read_by_both_sides(tmp_path):
    path = tmp_path / "weights.npz"
    train(tmp_path, "exported", "--supervised", "--weights", str(path))
    state, size = read_weights(path)
    weights = load_weights(path)
    assert weights.supervised
    assert size.layers == len(weights.blocks) == 2
    np.testing.assert_array_equal(state["blocks.1.up.weight"].numpy().T, weights.blocks[1].up)


def test_weights_that_are_too_large_are_refused(tmp_path):
    state = {"a": torch.zeros(9_000_000)}
    with pytest.raises(ValueError, match="more than the 16,000,000 allowed"):
        write_weights(state, Size(), tmp_path / "large.npz")


def test_the_committed_fixture_is_what_the_script_writes(tmp_path):
    write_fixture(tmp_path)
    here = Path(__file__).parent
    with np.load(tmp_path / "tiny_answers.npz") as new, np.load(here / "tiny_answers.npz") as old:
        for name in old.files:
            np.testing.assert_allclose(new[name], old[name], atol=1e-4)
