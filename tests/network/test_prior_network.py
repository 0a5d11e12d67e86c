"""PriorNetworkClassifier: the contract of scikit-learn, its promises, its limits."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine, make_blobs
from sklearn.utils.estimator_checks import check_classifiers_classes, parametrize_with_checks

from fewlabel.network import PriorNetworkClassifier, forward
from fewlabel.network.views import Kind, Scaler, fit_projection, importance, make_views
from fewlabel.network.weights import PACKAGED, load_weights

TINY = str(Path(__file__).with_name("tiny_network.npz"))
ONE_VIEW = PriorNetworkClassifier(1, random_state=0)
MINUS_ONE_IS_A_CLASS = {"check_classifiers_classes": "-1 marks unlabelled rows by default"}


@parametrize_with_checks([ONE_VIEW], expected_failed_checks=lambda _: MINUS_ONE_IS_A_CLASS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_minus_one_may_be_a_class():
    check_classifiers_classes("network", clone(ONE_VIEW).set_params(missing_label=None))


def few_labels(n_classes=3, n_features=5, seed=0):
    X, truth = make_blobs(120, n_features, centers=n_classes, cluster_std=1.0, random_state=seed)
    y = np.full(120, -1)
    for c in range(n_classes):
        y[np.flatnonzero(truth == c)[:4]] = c
    return X, y, truth


def tiny(**params):
    return PriorNetworkClassifier(**{"n_views": 2, "weights": TINY, "random_state": 0, **params})


@pytest.mark.parametrize("n_features", [5, 60])
def test_separated_gaussians(n_features):
    X, y, truth = few_labels(n_features=n_features)
    fitted = PriorNetworkClassifier(2, random_state=0).fit(X, y)
    assert (fitted.transduction_ == truth).mean() > 0.98
    assert (fitted.predict(X) == truth).mean() > 0.98


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_torch_gives_the_votes_of_numpy(device):
    torch = pytest.importorskip("torch", reason="needs torch to compare with")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    X, y, _ = few_labels()
    by_numpy, by_torch = (tiny(device=d).fit(X[:100], y[:100]) for d in (None, device))
    for of in ("predict_proba", "held_out_votes"):
        arguments = (X,) if of == "predict_proba" else ()
        expected, found = (getattr(m, of)(*arguments) for m in (by_numpy, by_torch))
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_unlabelled_rows_help():
    """One label a class says little; the other rows show where the clusters lie."""
    X, truth = load_wine(return_X_y=True)
    labeled = np.array([3, 80, 150])
    y = np.full(178, -1)
    y[labeled] = truth[labeled]
    together = PriorNetworkClassifier(2, random_state=0).fit(X, y).predict(X)
    alone = PriorNetworkClassifier(2, random_state=0).fit(X[labeled], y[labeled]).predict(X)
    assert (together == truth).mean() > (alone == truth).mean() + 0.05


@pytest.mark.parametrize("mark", [-1, np.nan, None])
def test_any_mark_of_unlabelled_rows(mark):
    X, y, _ = few_labels()
    names = np.array(["a", "b", "c"], dtype=object) if mark is None else np.array([0.0, 1.0, 2.0])
    marked = np.array([mark if c < 0 else names[c] for c in y], dtype=names.dtype)
    fitted = tiny().fit(X, marked)
    np.testing.assert_array_equal(fitted.classes_, np.sort(names))
    np.testing.assert_array_equal(fitted.transduction_[y >= 0], names[y[y >= 0]])


def test_votes_are_distributions_and_the_same_for_the_same_seed():
    X, y, _ = few_labels()
    first, second = tiny().fit(X, y), tiny().fit(X, y)
    for votes in (first.label_distributions_, first.predict_proba(X), first.held_out_votes()):
        np.testing.assert_allclose(votes.sum(axis=1), 1.0)
    np.testing.assert_array_equal(first.label_distributions_, second.label_distributions_)
    np.testing.assert_allclose(
        first.predict_proba(X[:9]), second.predict_proba(X)[:9], rtol=1e-12, atol=1e-14
    )
    other = tiny(random_state=1).fit(X, y)
    assert (other.label_distributions_ != first.label_distributions_).any()


def test_a_pickled_classifier_votes_the_same():
    X, y, _ = few_labels()
    fitted = tiny().fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


def test_rows_outside_the_context_are_asked_about():
    X, y, truth = few_labels()
    fitted = PriorNetworkClassifier(1, context_rows=40, random_state=0).fit(X, y)
    assert (fitted.transduction_ == truth).mean() > 0.98


def test_many_rows_are_shared_among_the_views(monkeypatch):
    X, y, truth = few_labels()
    asked = []
    whole = forward.ask
    monkeypatch.setattr(
        forward, "ask", lambda w, c, x, p: asked.append(len(x)) or whole(w, c, x, p)
    )
    monkeypatch.setattr("fewlabel.network.classifier._MOST_ASKED", 120)
    fitted = PriorNetworkClassifier(2, context_rows=40, random_state=0).fit(X, y)
    assert sum(asked) <= 120
    np.testing.assert_allclose(fitted.label_distributions_.sum(axis=1), 1.0)
    assert (fitted.transduction_ == truth).mean() > 0.98


def test_more_labels_than_the_context_has_room_for():
    X, _, truth = few_labels()
    y = truth.copy()
    y[::3] = -1
    fitted = PriorNetworkClassifier(1, context_rows=30, random_state=0).fit(X, y)
    assert (fitted.transduction_ == truth).mean() > 0.95


def test_held_out_votes_do_not_see_their_labels():
    X, y, _ = few_labels()
    labeled = np.flatnonzero(y >= 0)
    folds = [(np.setdiff1d(np.arange(12), test), test) for test in np.arange(12).reshape(4, 3).T]
    votes = tiny().fit(X, y).held_out_votes(folds)
    changed = y.copy()
    hidden = labeled[folds[0][1]]
    changed[hidden] = (changed[hidden] + 1) % 3
    other = tiny().fit(X, changed).held_out_votes(folds)
    seen = votes[folds[0][1]].any(axis=1) & other[folds[0][1]].any(axis=1)
    assert seen.any()
    np.testing.assert_allclose(
        votes[folds[0][1]][seen], other[folds[0][1]][seen], rtol=1e-4, atol=1e-5
    )


def test_a_class_without_label_in_the_fold_gets_no_vote():
    X, y, _ = few_labels()
    y[np.flatnonzero(y == 2)[1:]] = -1
    votes = tiny().fit(X, y).held_out_votes()
    only = np.flatnonzero(y[y >= 0] == 2)
    assert (votes[only] == 0).all()


def test_too_many_classes():
    X = np.arange(66.0)[:, None]
    y = np.repeat(np.arange(33), 2)
    with pytest.raises(ValueError, match=r"can tell 32 classes apart\. Got 33 classes\. Merge"):
        tiny().fit(X, y)


def test_constant_columns_say_nothing():
    X, y, _ = few_labels()
    wide = np.hstack([X, np.full((120, 2), 1e9)])
    fitted = tiny().fit(wide, y)
    assert np.isfinite(fitted.label_distributions_).all()


# --- weights and views -------------------------------------------------------------------------


def test_packaged_weights_are_small_and_verified():
    assert PACKAGED.stat().st_size <= 16_000_000
    weights = load_weights()
    assert weights.classes == 32
    assert not weights.supervised


def test_changed_weights_are_refused(tmp_path, monkeypatch):
    data = bytearray(Path(TINY).read_bytes())
    data[-100] ^= 1
    path = tmp_path / "prior_network.npz"
    path.write_bytes(data)
    monkeypatch.setattr("fewlabel.network.weights.PACKAGED", path)
    with pytest.raises(ValueError, match="are not those of this version: SHA-256"):
        load_weights()


def test_missing_weights_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="There are no weights at"):
        load_weights(tmp_path / "none.npz")


def test_pickled_objects_are_refused(tmp_path):
    path = tmp_path / "pickled.npz"
    np.savez(path, anything=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        load_weights(path)


def test_ranks_are_normal_quantiles_whatever_the_scale():
    X = np.random.default_rng(0).lognormal(sigma=3.0, size=(500, 2))
    z = Scaler("ranks", X).transform(X)
    assert abs(z.mean()) < 0.01
    assert abs(z.std() - 1.0) < 0.05
    np.testing.assert_array_equal(z.argsort(axis=0), X.argsort(axis=0))


def test_components_keep_a_part_of_their_deviations():
    """As in training: powers of the deviations, mean square 1, at most 2.5."""
    spread = np.array([4.0, 1.0, 0.0])
    expected = np.array([1.0, 0.5, 0.1]) / np.sqrt((1 + 0.25 + 0.01) / 3)
    np.testing.assert_allclose(importance(spread, 0.5), expected, rtol=1e-6)
    np.testing.assert_array_equal(importance(spread, 0.0), 1.0)
    assert importance(np.append(9.0, np.full(63, 1e-9)), 1.0).max() == 2.5
    X = np.random.default_rng(0).normal(size=(400, 3)) * spread
    rows = fit_projection(Kind("raw", 3, 0.5), X).transform(X)
    np.testing.assert_allclose(rows.std(axis=0)[:2], expected[:2], rtol=0.05)


@pytest.mark.parametrize("n_features", [1, 64, 65, 100])
def test_views_fit_the_slots(n_features):
    X = np.random.default_rng(0).normal(size=(50, n_features))
    for view in make_views(X, 5, 3, (64, 32), np.random.RandomState(0)):
        rows = view.rows(X, 64)
        assert rows.shape == (50, 64)
        most = min(n_features, len(X)), n_features  # components, or the columns themselves
        assert view.present(64).sum() in {10, 32, *most}
        assert (rows[:, view.present(64) == 0] == 0).all()
        assert len(set(view.classes)) == 3
