"""PriorNetworkClassifier: votes of a network that was trained on synthetic tables."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from fewlabel._core.scikit import Interval
from fewlabel._core.targets import UNLABELED
from fewlabel.assess.held_out import Fold, cross_fit, folds_of
from fewlabel.baselines._base import Codes, Floats, SemiSupervisedClassifier
from fewlabel.network import forward
from fewlabel.network.torch_forward import TorchPasses
from fewlabel.network.views import View, make_views
from fewlabel.network.weights import Array, Weights, load_weights

_POOL = 4_096  # unlabelled rows kept for the contexts of new rows
_BLOCK = 8_192  # rows that are transformed at once
_MOST_ASKED = 50_000  # questions of a fit about rows outside the contexts, at least one for each


class PriorNetworkClassifier(SemiSupervisedClassifier):
    """A network that reads the table, labelled and unlabelled rows together, and is not trained.

    The network is a transformer in which every row attends to every other. It was trained once, on
    millions of synthetic tables with few labels, to name the classes of the unlabelled rows. Here
    it is only applied: ``fit`` passes the rows through it, for several views of the table
    (standardised columns, ranks, principal components; only these if there are more than 64
    columns), and averages the votes.

    Parameters
    ----------
    n_views : int, default=4
        Views whose votes are averaged; time is proportional to it.
    context_rows : int, default=1024
        Most rows that attend to each other. Labelled rows come first, at most half of them; random
        unlabelled rows fill it up, others in every view. All further rows are asked about one
        block at a time. Memory does not grow with the rows beyond this.
    weights : str, Path or None, default=None
        Another file of weights, as ``network_training`` exports them. None: the packaged one.
    device : str or None, default=None
        A device of torch, such as "cuda", which must be installed then. None: NumPy.
    random_state : int, RandomState instance or None, default=None
        For the views and the choice of rows in a context.
    missing_label : object, default="auto"
        What marks an unlabelled row; "auto" takes -1, NaN, None and pd.NA.
    verbose : int, default=0

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    label_distributions_ : ndarray of shape (n_samples, n_classes)
        Votes for the rows of ``fit``; labelled rows have their own label.
    transduction_ : ndarray of shape (n_samples,)
        Given labels of the labelled rows, predicted ones of the others.

    See Also
    --------
    fewlabel.LabelSpreadingClassifier : also looks at labelled and unlabelled rows together.

    Notes
    -----
    The network has slots for 32 classes; a table with more is refused. Missing values are not
    accepted. docs/prior_network.md says how it compares with other classifiers, and
    ``network_training/README.md`` how it was trained.

    References
    ----------
    .. [1] N. Hollmann, S. Müller, K. Eggensperger and F. Hutter, "TabPFN: a transformer that
           solves small tabular classification problems in a second", 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from fewlabel.network import PriorNetworkClassifier
    >>> X, y_true = load_wine(return_X_y=True)
    >>> y = np.full(178, -1)
    >>> y[::15] = y_true[::15]
    >>> clf = PriorNetworkClassifier(n_views=2, random_state=0).fit(X, y)
    >>> float((clf.transduction_ == y_true).mean()) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_views": [Interval(Integral, 1, None, closed="left")],
        "context_rows": [Interval(Integral, 2, None, closed="left")],
        "weights": [str, Path, None],
        "device": [str, None],
        "random_state": ["random_state"],
        "missing_label": "no_validation",
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_views: int = 4,
        *,
        context_rows: int = 1024,
        weights: str | Path | None = None,
        device: str | None = None,
        random_state: Any = None,
        missing_label: object = "auto",
        verbose: int = 0,
    ) -> None:
        self.n_views = n_views
        self.context_rows = context_rows
        self.weights = weights
        self.device = device
        self.random_state = random_state
        self.missing_label = missing_label
        self.verbose = verbose

    def _fit(self, X: Floats, codes: Codes) -> Floats:
        weights = load_weights(self.weights)
        n_classes = len(self.classes_)
        self._refuse_if_too_many(n_classes, weights)
        rng = check_random_state(self.random_state)
        slots = weights.features, weights.classes
        self._views = make_views(X, self.n_views, n_classes, slots, rng)
        self._keep_pool(X, codes, rng)
        votes = np.zeros((len(X), n_classes))
        for number in range(self.n_views):
            self._log(f"view {number + 1} of {self.n_views}")
            votes += self._votes_of_fit(number, weights, X, codes)
        labeled = codes != UNLABELED
        votes[~labeled] /= votes[~labeled].sum(axis=1, keepdims=True)
        labeled = np.flatnonzero(labeled)
        votes[labeled] = 0.0
        votes[labeled, codes[labeled]] = 1.0
        self.label_distributions_ = votes
        return votes

    def _passes(self) -> Any:
        """``read_context`` and ``ask``, in NumPy or on a device of torch."""
        return forward if self.device is None else TorchPasses(self.device)

    def _refuse_if_too_many(self, n_classes: int, weights: Weights) -> None:
        if n_classes > weights.classes:
            raise ValueError(
                f"{type(self).__name__} can tell {weights.classes} classes apart. Got {n_classes} "
                f"classes. Merge rare classes, or use another classifier, such as "
                f"LabelSpreadingClassifier."
            )

    def _keep_pool(self, X: Floats, codes: Codes, rng: Any) -> None:
        """Keep what contexts are made of: all labelled rows, and a sample of the others."""
        labeled = np.flatnonzero(codes != UNLABELED)
        others = rng.permutation(np.flatnonzero(codes == UNLABELED))[:_POOL]
        self._pool = np.concatenate([labeled, others])
        self._pool_rows, self._pool_codes = X[self._pool], codes[self._pool]

    def _read(
        self, view: View, weights: Weights, codes: Codes, chosen: Codes
    ) -> tuple[Any, Codes, Floats]:
        """The context of a view, its rows as positions in the pool, and their votes."""
        if weights.supervised:
            chosen = chosen[codes[chosen] != UNLABELED]
        rows = view.rows(self._pool_rows[chosen], weights.features)
        slots = np.where(codes[chosen] == UNLABELED, -1, view.classes[codes[chosen]])
        present = view.present(weights.features)
        context, logits = self._passes().read_context(weights, rows, present, slots)
        return context, chosen, self._votes(view, context, logits)

    def _votes(self, view: View, context: Any, logits: Array) -> Floats:
        """Probabilities of all classes; 0 for those without label in the context."""
        votes = np.zeros((len(logits), len(view.classes)))
        code_of = np.argsort(view.classes)[np.searchsorted(np.sort(view.classes), context.known)]
        votes[:, code_of] = softmax(logits.astype(np.float64), axis=1)
        return votes

    def _votes_of_fit(self, number: int, weights: Weights, X: Floats, codes: Codes) -> Floats:
        """Votes of one view; of many rows, each view is asked about some only, in turn."""
        view = self._views[number]
        chosen = _context_of(self._pool_codes, self.context_rows, view.seed)
        context, chosen, in_context = self._read(view, weights, self._pool_codes, chosen)
        votes = np.zeros((len(X), len(self.classes_)))
        votes[self._pool[chosen]] = in_context
        views_a_row = max(_MOST_ASKED // len(X), 1)
        turn = (np.arange(len(X)) + number) % self.n_views < views_a_row
        outside = (codes == UNLABELED) & turn
        outside[self._pool[chosen]] = False
        rest = np.flatnonzero(outside)
        votes[rest] = self._ask(view, weights, context, X, rest)
        return votes

    def _ask(self, view: View, weights: Weights, context: Any, X: Floats, rows: Codes) -> Floats:
        votes = np.empty((len(rows), len(view.classes)))
        present, passes = view.present(weights.features), self._passes()
        for start in range(0, len(rows), _BLOCK):
            part = view.rows(X[rows[start : start + _BLOCK]], weights.features)
            answer = passes.ask(weights, context, part, present)
            votes[start : start + len(part)] = self._votes(view, context, answer)
        return votes

    def _scores(self, X: Floats) -> Floats:
        weights = load_weights(self.weights)
        votes = np.zeros((len(X), len(self.classes_)))
        for view in self._views:
            chosen = _context_of(self._pool_codes, self.context_rows, view.seed)
            context, _, _ = self._read(view, weights, self._pool_codes, chosen)
            votes += self._ask(view, weights, context, X, np.arange(len(X)))
        return votes / len(self._views)

    def predict_proba(self, X: Any) -> Floats:
        """Votes for new rows, which attend to the rows of ``fit`` and not to each other.

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes)
        """
        return self._checked_scores(X)

    def held_out_votes(
        self, folds: list[Fold] | None = None, *, n_views: int = 2, context_rows: int = 512
    ) -> Floats:
        """Votes for the labelled rows of ``fit``, each with the labels of its fold hidden.

        A hidden label costs a pass through the network and no training.

        Parameters
        ----------
        folds : list of pairs of ndarray of int, optional
            Training and test part of each fold, as positions among the labelled rows. Five random
            folds by default.
        n_views : int, default=2
            Of each fold; never more than were fitted.
        context_rows : int, default=512
            Of each fold.

        Returns
        -------
        votes : ndarray of shape (n_labeled, n_classes)
            Zero for rows whose class no other fold has.
        """
        check_is_fitted(self)
        weights = load_weights(self.weights)
        labeled = np.flatnonzero(self._pool_codes != UNLABELED)
        codes = self._pool_codes[labeled]
        views = self._views[:n_views]

        def vote(train: Codes, test: Codes) -> Floats:
            hidden = self._pool_codes.copy()
            asked = labeled[test]
            hidden[asked] = UNLABELED
            votes = np.zeros((len(hidden), len(self.classes_)))
            for view in views:
                # They are unlabelled rows of the context like others, as far as there is room.
                chosen = _context_of(hidden, context_rows, view.seed, first=asked)
                context, chosen, inside = self._read(view, weights, hidden, chosen)
                votes[chosen] += inside
                rest = np.setdiff1d(asked, chosen)
                votes[rest] += self._ask(view, weights, context, self._pool_rows, rest)
            return np.asarray(votes[asked] / len(views))

        if folds is None:
            folds = folds_of(len(labeled), 5, 0)
        return cross_fit(vote, codes, len(self.classes_), folds)


def _context_of(codes: Codes, most: int, seed: int, first: Codes | None = None) -> Codes:
    """At most ``most`` rows of the pool: labelled, ``first``, then other unlabelled ones."""
    rng = np.random.RandomState(seed)
    labeled = _spread_over_classes(codes, max(most // 2, 1), rng)
    others = rng.permutation(np.flatnonzero(codes == UNLABELED))
    if first is not None:
        others = np.concatenate([first, np.setdiff1d(others, first, assume_unique=True)])
    return np.concatenate([labeled, others[: most - len(labeled)]])


def _spread_over_classes(codes: Codes, most: int, rng: np.random.RandomState) -> Codes:
    """Labelled rows; if there are too many, as many of each class as there is room for."""
    labeled = np.flatnonzero(codes != UNLABELED)
    if len(labeled) <= most:
        return labeled
    shuffled = rng.permutation(labeled)
    # Rank of a row among those of its class: the smallest ranks go first.
    order = np.argsort(codes[shuffled], kind="stable")
    sizes = np.bincount(codes[shuffled])
    rank = np.empty(len(shuffled), dtype=np.intp)
    rank[order] = np.concatenate([np.arange(size) for size in sizes])
    return np.sort(shuffled[np.argsort(rank, kind="stable")[:most]])
