"""Which labels to accept, with a guarantee for them: fixed-sequence testing on audited rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fewlabel.assess.audit_draws import check_drawn
from fewlabel.assess.audit_limits import check_confidence, excludes
from fewlabel.assess.audit_plans import allowed_wrong, smallest_sample
from fewlabel.bounds.statistics import Floats

_STEPS = 20
# The first set to be tested holds enough audited rows with a probability of 0.9, …
_DEVIATIONS = 1.282
# … to be accepted with so many wrong ones, if a quarter of the audited rows suffices for that.
_TOLERATED = (3, 2, 1)


@dataclass(frozen=True)
class AuditedAcceptance:
    """The rows whose labels can be accepted, and what is guaranteed for them.

    Attributes
    ----------
    mask : ndarray of bool
        The accepted rows; none if the audit supports no guarantee.
    threshold : float
        They are those with at least this confidence; infinite if there are none.
    max_error : float
        At most this share of their labels is wrong, as they were when the rows were drawn.
    confidence : float
        Probability of the guarantee, over the draw of the audited rows.
    rows, checked, wrong : int
        Number of accepted rows, of audited ones among them, and of wrong ones among these.

    See Also
    --------
    accept_with_audit : Makes one.
    Audit : A statement about all labels.

    References
    ----------
    .. [1] A. N. Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan and L. Lei, "Learn then test:
           calibrating predictive algorithms to achieve risk control", 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlabel import accept_with_audit, audit_sample
    >>> confidence = np.linspace(0.5, 1, 2000)
    >>> wrong = np.random.default_rng(0).random(2000) > confidence**0.1
    >>> rows = audit_sample(2000, 300, random_state=0)
    >>> found = accept_with_audit(confidence, rows, wrong[rows], max_error=0.1)
    >>> found.rows, found.checked, bool(wrong[found.mask].mean() <= 0.1)
    (2000, 300, True)
    """

    mask: NDArray[np.bool_] = field(repr=False, compare=False)
    threshold: float
    max_error: float
    confidence: float
    rows: int
    checked: int
    wrong: int

    def __str__(self) -> str:
        space = "\N{NO-BREAK SPACE}%"
        goal, sure = f"{100 * self.max_error:.6g}{space}", f"{100 * self.confidence:.6g}{space}"
        if self.rows == 0:
            return f"no label can be accepted with a guarantee of at most {goal} wrong"
        return (
            f"at most {goal} of the {self.rows:,} accepted labels are wrong (guaranteed with "
            f"{sure} confidence, {self.checked:,} of their rows checked, {self.wrong:,} wrong)"
        )


def accept_with_audit(
    confidence: ArrayLike,
    audited_rows: ArrayLike,
    wrong: ArrayLike,
    max_error: float = 0.05,
    delta: float = 0.05,
) -> AuditedAcceptance:
    r"""Accept the most rows for which an audit guarantees that at most ``max_error`` are wrong.

    The sets :math:`S_1 \subset S_2 \subset \dots` of the 5, 10, …, 100 % most confident rows are
    tested from the smallest on: :math:`H_j` says that more than ``max_error`` of the labels in
    :math:`S_j` are wrong. The last set before the first :math:`H_j` that is not rejected is
    accepted. Each test is exact and at the full level δ:

    .. math:: p_j = P(\mathrm{Hyp}(N_j, \lfloor \mathrm{max\_error} \cdot N_j \rfloor + 1, s_j)
              \le k_j)

    with :math:`N_j` rows in :math:`S_j`, :math:`s_j` of them audited, :math:`k_j` found wrong.

    Parameters
    ----------
    confidence : array-like of shape (n_rows,)
        How sure the classifier is of each label, for all rows that the audit drew from. Only the
        order matters; it must be final before the rows are drawn.
    audited_rows : array-like of int
        Positions in ``confidence`` of all rows that were drawn, by :func:`audit_sample` from all of
        them. Their number must have been fixed in advance.
    wrong : array-like of bool
        Whether each audited label was wrong.
    max_error : float, default=0.05
        The share of wrong labels that is allowed.
    delta : float, default=0.05
        Probability, over the draw, with which the guarantee may fail.

    Returns
    -------
    AuditedAcceptance
        With the mask of the accepted rows and their lowest confidence.

    See Also
    --------
    audit : A limit for all rows, from the same checks.

    Notes
    -----
    Validity. The sets, their order and the first one to be tested depend on the confidences and the
    number of audited rows, not on which rows were drawn or what was found. Given :math:`s_j`, the
    audited rows in :math:`S_j` are drawn uniformly from it without replacement, so :math:`k_j` is
    hypergeometric and :math:`P(p_j \le \delta) \le \delta` if :math:`H_j` is true. Let
    :math:`H_{j^*}` be the first true one in the order of the tests. To accept any set with too many
    wrong labels it must have been rejected, which has probability at most δ. No correction for the
    number of tests is needed.

    The first set to be tested is the smallest one that will, with a probability of 0.9, hold
    enough audited rows to be accepted with none wrong (with up to 3 wrong, if a quarter of the
    audited rows suffices for that: a single unlucky row then ends nothing). To start where the
    drawn rows happen to suffice would not be valid.

    If two guarantees are drawn from one audit, this one and the limit of :func:`audit`, each holds
    with its own confidence; that both hold has confidence 1 − 2δ.

    References
    ----------
    A. N. Angelopoulos, S. Bates, E. J. Candès, M. I. Jordan and L. Lei, Learn then test:
    calibrating predictive algorithms to achieve risk control, 2021 (fixed-sequence testing).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.uniform(0.5, 1.0, 4000)
    >>> wrong = rng.random(4000) > confidence**0.06
    >>> rows = rng.permutation(4000)[:400]
    >>> answer = accept_with_audit(confidence, rows, wrong[rows], max_error=0.05)
    >>> answer.rows, answer.checked, answer.wrong
    (4000, 400, 9)
    """
    sure = np.asarray(confidence, dtype=np.float64)
    if sure.ndim != 1 or len(sure) == 0 or np.isnan(sure).any():
        raise ValueError("confidence must be one number for each row, none of them missing.")
    rows = check_drawn(audited_rows, np.ones(len(sure), dtype=bool))
    flags = np.asarray(wrong)
    if flags.shape != rows.shape or flags.dtype != bool:
        raise ValueError(
            f"wrong must hold one boolean for each of the {len(rows)} audited rows. Got shape "
            f"{flags.shape} of type {flags.dtype}."
        )
    check_confidence(1.0 - delta)
    threshold = _lowest_threshold(sure, sure[rows], flags, max_error, delta)
    mask = sure >= threshold
    audited = sure[rows] >= threshold
    return AuditedAcceptance(
        mask=mask,
        threshold=threshold,
        max_error=max_error,
        confidence=1.0 - delta,
        rows=int(mask.sum()),
        checked=int(audited.sum()),
        wrong=int((flags & audited).sum()),
    )


def _lowest_threshold(
    sure: Floats, audited: Floats, wrong: NDArray[np.bool_], max_error: float, delta: float
) -> float:
    lowest = np.inf
    for threshold in _thresholds(sure, len(audited), max_error, delta):
        rows, inside = int((sure >= threshold).sum()), audited >= threshold
        checked, found = int(inside.sum()), int((wrong & inside).sum())
        if not excludes(rows, checked, found, allowed_wrong(rows, max_error) + 1, delta):
            break
        lowest = float(threshold)
    return lowest


def _thresholds(sure: Floats, n_audited: int, max_error: float, delta: float) -> Floats:
    """Thresholds to test, falling; from what is known before the draw only."""
    n = len(sure)
    ordered = np.sort(sure)[::-1]
    last = -(-n * np.arange(1, _STEPS + 1) // _STEPS) - 1
    grid = np.unique(ordered[last])[::-1]
    too_many = allowed_wrong(n, max_error) + 1
    affordable = (k for k in _TOLERATED if 4 * smallest_sample(n, too_many, k, delta) <= n_audited)
    tolerated = next(affordable, 0)
    for start, threshold in enumerate(grid[:-1]):
        rows = int((sure >= threshold).sum())
        checked = _probably_checked(n, rows, n_audited)
        if excludes(rows, checked, tolerated, allowed_wrong(rows, max_error) + 1, delta):
            return grid[start:]
    return grid[-1:]


def _probably_checked(n: int, rows: int, n_audited: int) -> int:
    """About so many of the audited rows at least fall among ``rows``, with a probability of 0.9."""
    share = rows / n
    variance = n_audited * share * (1.0 - share) * (n - n_audited) / (n - 1)
    return max(0, math.floor(n_audited * share - _DEVIATIONS * math.sqrt(variance)))
