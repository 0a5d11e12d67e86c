"""The trees of a forest in a few long arrays, checked before they become trees again.

A forest of a hundred trees has thousands of small arrays and as many equal settings. Side by side
they take a tenth of the room, and one look at an array checks all trees: scikit-learn follows
children and features wherever they point, outside the arrays and in circles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from fewlabel._core.scikit import NODE_DTYPE, is_tree, make_tree

_KINDS = {"decision": DecisionTreeClassifier, "extra": ExtraTreeClassifier}
_LEAF = -1


class PackedTrees:
    """Fitted decision trees of one forest.

    Parameters
    ----------
    kind : {"decision", "extra"}
    settings : dict
        What all trees have in common.
    seeds : ndarray of shape (n_trees,)
    n_nodes, depths : ndarray of shape (n_trees,)
    nodes : dict of ndarray, each of shape (n_nodes.sum(),)
        Columns of scikit-learn's arrays of nodes, one tree after the other.
    values : ndarray of shape (n_nodes.sum(), 1, n_classes)
    """

    def __init__(
        self,
        kind: str,
        settings: dict[str, Any],
        seeds: NDArray[np.int64],
        n_nodes: NDArray[np.int64],
        depths: NDArray[np.int64],
        nodes: dict[str, NDArray[Any]],
        values: NDArray[np.float64],
    ) -> None:
        self.kind, self.settings, self.seeds = kind, settings, seeds
        self.n_nodes, self.depths, self.nodes, self.values = n_nodes, depths, nodes, values


def can_be_packed(value: Any) -> bool:
    """Whether something is a list of fitted trees."""
    return (
        isinstance(value, list)
        and len(value) > 0
        and all(type(tree) in _KINDS.values() for tree in value)
        and all(is_tree(getattr(tree, "tree_", None)) for tree in value)
    )


def pack(trees: list[Any]) -> PackedTrees:
    """Put fitted trees of one forest side by side.

    Raises
    ------
    ValueError
        If the trees differ in more than their seeds and nodes.
    """
    kind = next(name for name, made in _KINDS.items() if type(trees[0]) is made)
    settings = _settings(trees[0])
    if any(not _same(_settings(tree), settings) for tree in trees):
        raise ValueError("the trees of a forest have different settings")
    states = [tree.tree_.__getstate__() for tree in trees]
    nodes = np.concatenate([state["nodes"] for state in states])
    return PackedTrees(
        kind,
        settings,
        np.array([tree.random_state for tree in trees], dtype=np.int64),
        np.array([len(state["nodes"]) for state in states], dtype=np.int64),
        np.array([state["max_depth"] for state in states], dtype=np.int64),
        {name: np.ascontiguousarray(nodes[name]) for name in NODE_DTYPE.names},
        np.concatenate([state["values"] for state in states]),
    )


def _settings(tree: Any) -> dict[str, Any]:
    own = ("random_state", "tree_")
    return {name: value for name, value in vars(tree).items() if name not in own}


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(
        type(one[key]) is type(other[key]) and np.array_equal(one[key], other[key]) for key in one
    )


def unpack(packed: PackedTrees, n_features: int, n_classes: int) -> list[Any]:
    """The trees again, for rows of ``n_features`` numbers.

    Raises
    ------
    ValueError
        If they are no trees, or trees for other rows or classes.
    """
    _check(packed, n_features, n_classes)
    nodes = np.zeros(len(packed.values), dtype=NODE_DTYPE)
    for name in NODE_DTYPE.names:
        nodes[name] = packed.nodes[name]
    ends = np.cumsum(packed.n_nodes)
    trees = []
    for seed, depth, end, n in zip(packed.seeds, packed.depths, ends, packed.n_nodes):
        tree = _KINDS[packed.kind]()
        vars(tree).update(packed.settings, random_state=int(seed))
        own = slice(end - n, end)
        tree.tree_ = make_tree(n_features, n_classes, int(depth), nodes[own], packed.values[own])
        trees.append(tree)
    return trees


def _check(packed: PackedTrees, n_features: int, n_classes: int) -> None:
    n_nodes, nodes = packed.n_nodes, packed.nodes
    n_trees = len(n_nodes)
    settings = packed.settings
    _require(packed.kind in _KINDS and n_trees > 0, "no trees")
    _require(set(nodes) == set(NODE_DTYPE.names), "nodes of another scikit-learn: train it again")
    counts = (n_nodes, packed.depths, packed.seeds)
    _require(all(c.dtype == np.int64 and c.shape == (n_trees,) for c in counts), "counts of trees")
    _require(bool((n_nodes > 0).all() and (n_nodes <= len(packed.values)).all()), "empty trees")
    n = int(n_nodes.sum())
    _require(packed.values.dtype == np.float64, "values of nodes")
    _require(packed.values.shape == (n, 1, n_classes), "values of nodes")
    _require(bool((packed.values >= 0).all() and np.isfinite(packed.values).all()), "values")
    for name in NODE_DTYPE.names:
        _require(nodes[name].dtype == NODE_DTYPE[name] and nodes[name].shape == (n,), "nodes")
    _require(settings.get("n_features_in_") == n_features, "the number of features")
    _require(settings.get("n_classes_") == n_classes, "the number of classes")
    _require(settings.get("n_outputs_") == 1, "the number of outputs")
    classes = settings.get("classes_", ())
    _require(np.array_equal(classes, np.arange(n_classes)), "the classes")
    _check_children(packed, n_features)


def _check_children(packed: PackedTrees, n_features: int) -> None:
    """Every child comes after its parent within its tree, so that no path is endless."""
    left, right = packed.nodes["left_child"], packed.nodes["right_child"]
    starts = np.cumsum(packed.n_nodes) - packed.n_nodes
    place = np.arange(len(left)) - np.repeat(starts, packed.n_nodes)
    size = np.repeat(packed.n_nodes, packed.n_nodes)
    inner = left != _LEAF
    _require(bool(((right != _LEAF) == inner).all()), "nodes with one child")
    for child in (left, right):
        _require(bool((~inner | ((child > place) & (child < size))).all()), "children")
    feature = packed.nodes["feature"]
    _require(bool((~inner | ((feature >= 0) & (feature < n_features))).all()), "features")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"its trees are not what a forest has ({what})")
