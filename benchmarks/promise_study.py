"""How the error estimate was chosen: ``python -m benchmarks.promise_study collect|compare|scan``.

``collect`` fits once and keeps the votes (one .npz a fit); ``compare`` tries ways to estimate the
error on these votes, without any further fit, and ``scan`` its constants. Both were chosen on seeds
1000 to 3999 (``--seeds 1000 3999``); seeds from 4000 on only verify (``--seeds 4000 9999``).
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import promise_data as data
from fewlabel.assess.accept import accept_mask
from fewlabel.assess.calibration import bounding_power, calibrated, for_bounds, match_confidence
from fewlabel.assess.error_estimate import Assessment, assess_labels
from fewlabel.assess.limits import of_finite_population, share_limits
from fewlabel.assess.out_of_sample import JudgedRows, judge, wrong_rows
from fewlabel.bounds.thresholds import threshold_curves
from fewlabel.ensemble.posterior import gibbs_posterior

MAX_UNLABELED = 800


def collect(name: str, per_class: int, seed: int, base: str) -> dict[str, Any] | None:
    """Votes of one fit: held-out for labelled rows, first and final for unlabelled rows."""
    split = data.split(name, per_class, seed, MAX_UNLABELED)
    if split is None:
        return None
    X, y, labeled = split
    clf = data.make(base, seed)
    start = time.process_time()
    clf.fit(X, np.where(labeled, y, -1))
    seconds = time.process_time() - start
    given = np.searchsorted(clf.classes_, y[labeled])
    truth = np.searchsorted(clf.classes_, y[~labeled])
    known = np.isin(y[~labeled], clf.classes_)
    held_out, self_learned = clf.paper_bounds_.held_out, clf._self_learned()
    whole = {} if self_learned is None else {"errors": self_learned.errors}
    return {
        **whole,
        "each": held_out.votes.astype(np.float32),
        "share": (self_learned or held_out).trained_share,
        "y": given,
        "first": clf.initial_votes_.astype(np.float32),
        "final": clf.transduction_proba_[~labeled].astype(np.float32),
        "round": clf.labeled_iter_[~labeled],
        "truth": np.where(known, truth, -1),
        "seconds": seconds,
    }


def collect_all(folder: Path, options: argparse.Namespace) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for seed, per, name, base in itertools.product(
        options.seeds, options.per_class, options.data, options.bases
    ):
        path = folder / f"{name}_{per}_{seed}_{base}.npz".replace(" ", "-")
        if path.exists():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            votes = collect(name, per, seed, base)
        if votes is not None:
            np.savez(path, **votes)
            print(f"{path.stem} {votes['seconds']:.1f} s", flush=True)


# --- ways to estimate the error ---------------------------------------------------------------


class Fit(NamedTuple):
    """One fit: where it comes from, its votes, and what the package says of it."""

    name: str
    per_class: int
    seed: int
    base: str
    votes: dict[str, Any]
    rows: JudgedRows
    found: Assessment

    @property
    def trained_share(self) -> float:
        return float(self.votes["share"])

    @property
    def predicted(self) -> Any:
        return self.votes["final"].argmax(axis=1)

    @property
    def wrong(self) -> Any:
        return self.predicted != self.votes["truth"]


def gibbs_rule(held_out: Any, y: Any) -> Any:
    """Q of the mixed vote: Gibbs, without light voters."""
    right = (held_out.argmax(axis=2) == y) & held_out.any(axis=2)
    q = gibbs_posterior(1.0 - right.mean(axis=1), len(y))
    q[q < min(0.01, 0.1 * q.max())] = 0.0
    return q / q.sum()


def read(path: Path) -> Fit:
    """A fit that was collected, assessed."""
    name, per_class, seed, base = path.stem.rsplit("_", 3)
    with np.load(path) as file:
        votes = {key: file[key] for key in file.files}
    for key in ("each", "first", "final"):  # single precision in the file
        total = votes[key].sum(axis=-1, keepdims=True, dtype=np.float64)
        votes[key] = votes[key] / np.where(total > 0, total, 1.0)
    rule = gibbs_rule if len(votes["each"]) > 1 else None
    rows = judge(votes["each"], votes["y"], rule)
    if "errors" in votes:
        rows = rows._replace(errors=votes["errors"])
    found = assess_labels(
        votes["each"],
        votes["y"],
        votes["first"],
        votes["final"].argmax(axis=1),
        weights=rule,
        errors=votes.get("errors"),
        trained_share=float(votes["share"]),
    )
    return Fit(name, int(per_class), int(seed), base, votes, rows, found)


def estimates(fit: Fit) -> dict[str, tuple[float, float, float]]:
    """Value and limits by each way."""
    rows, n, others = fit.rows, len(fit.rows.y), len(fit.wrong)
    plain = float(wrong_rows(rows.votes, rows.y).mean())
    seen, power = float(rows.voted.mean()), rows.power
    filled = np.where(rows.voted[:, None], rows.votes, 1.0 / rows.votes.shape[1])
    doubt = np.where(rows.voted, 1 - seen * calibrated(filled, power).max(axis=1), 1.0)
    first = calibrated(fit.votes["first"], power)
    doubt_u = 1 - seen * first[np.arange(others), fit.predicted]
    covariance = np.cov(rows.errors, doubt)
    tuned = covariance[0, 1] / max(covariance[1, 1], 1e-9) / (1 + n / others)
    powered = rows.errors.mean() + np.clip(tuned, 0, 1) * (doubt_u.mean() - doubt.mean())
    ways = {
        "held-out error": plain,
        "held-out error, no single rows": float(rows.errors[rows.voted].mean()),
        "Q out of sample": float(rows.errors.mean()),
        "Q out of sample, learning curve": float(rows.errors.mean()) * fit.trained_share**0.4,
        "prediction-powered": float(np.clip(powered, 0, 1)),
        "mean doubt": float(doubt_u.mean()),
    }
    found = {way: (value, *share_limits(value, n)) for way, value in ways.items()}
    error = fit.found.error
    return {**found, "assess_labels": (error.value, error.low, error.high)}


def accepted(fit: Fit, max_error: float = 0.05) -> dict[str, Any]:
    """Rows that each way accepts."""
    first, confidence = fit.votes["first"], fit.found.confidence
    certain = confidence.of(first, fit.predicted)
    judged = fit.rows.take(fit.rows.voted)
    proba = for_bounds(first, bounding_power(judged.votes, judged.y))
    curves = threshold_curves(first, proba)
    best = [1.0 if c.best() is None else float(c.thresholds[c.best()]) for c in curves]
    return {
        "accept, cautious": accept_mask(fit.found.cautious.of(first, fit.predicted), max_error),
        "accept, not cautious": accept_mask(certain, max_error),
        "confidence at least .95": certain >= 0.95,
        "final vote at least .95": fit.votes["final"].max(axis=1) >= 0.95,
        "thresholds of the paper": first.max(axis=1) >= np.array(best)[first.argmax(axis=1)],
    }


def label_errors(fit: Fit) -> dict[str, float]:
    """Error of all labels if rows above the paper's thresholds keep their first label, or not."""
    first, truth = fit.votes["first"].argmax(axis=1), fit.votes["truth"]
    kept = np.where(accepted(fit)["thresholds of the paper"], first, fit.predicted)
    return {
        "final vote": float(fit.wrong.mean()),
        "first vote": float((first != truth).mean()),
        "first vote above the threshold": float((kept != truth).mean()),
    }


def calibration_error(confidence: Any, right: Any, n_bins: int = 10) -> float:
    """ECE with bins of equal size."""
    order = np.argsort(confidence, kind="stable")
    bins = np.array_split(order, n_bins)
    return sum(
        len(b) / len(order) * abs(confidence[b].mean() - right[b].mean()) for b in bins if len(b)
    )


def compare(folder: Path, seeds: tuple[int, int]) -> None:
    """Print what each way says, over all fits with these seeds."""
    import pandas as pd

    tables: dict[str, list[dict[str, Any]]] = {"error": [], "accept": [], "label": [], "trust": []}
    for path in sorted(folder.glob("*.npz")):
        if not seeds[0] <= int(path.stem.rsplit("_", 3)[2]) <= seeds[1]:
            continue
        fit = read(path)
        key = {"base": fit.base, "per": fit.per_class, "name": fit.name}
        truth, right = float(fit.wrong.mean()), ~fit.wrong
        for way, (value, low, high) in estimates(fit).items():
            row = {"bias": value - truth, "distance": abs(value - truth), "width": high - low}
            row |= {"above": float(truth > high), "below": float(truth < low)}
            tables["error"].append({**key, "way": way, **row})
        for way, mask in accepted(fit).items():
            error = float(fit.wrong[mask].mean()) if mask.any() else np.nan
            row = {"share": float(mask.mean()), "any": float(mask.any()), "error": error}
            tables["accept"].append({**key, "way": way, **row, "over .08": float(error > 0.08)})
        for way, error in label_errors(fit).items():
            tables["label"].append({**key, "way": way, "error": error})
        certain = fit.found.confidence.of(fit.votes["first"], fit.predicted)
        row = {"ECE": calibration_error(certain, right), "Brier": ((certain - right) ** 2).mean()}
        tables["trust"].append({**key, "way": "confidence", **row})
    pd.set_option("display.width", 200)
    for title, rows in tables.items():
        frame = pd.DataFrame(rows).drop(columns="name")
        print(f"\n## {title}\n", frame.groupby("way").mean(numeric_only=True).round(4))
        print(frame.groupby(["way", "base", "per"]).mean(numeric_only=True).round(3).to_string())
    frame = pd.DataFrame(tables["error"])
    chosen = frame[frame.way == "assess_labels"]
    print(chosen.groupby("name")[["bias", "distance", "above", "below"]].mean().round(3))


def scan(folder: Path, seeds: tuple[int, int]) -> None:
    """Print what other constants of the estimate and of caution would give."""
    import pandas as pd

    limits, caution = [], []
    for path in sorted(folder.glob("*.npz")):
        if not seeds[0] <= int(path.stem.rsplit("_", 3)[2]) <= seeds[1]:
            continue
        fit = read(path)
        rows, first, error = fit.rows, fit.votes["first"], fit.found.error
        truth, n, seen = float(fit.wrong.mean()), len(rows.y), float(rows.voted.mean())
        proba = calibrated(first, rows.power)
        doubt = 1 - seen * proba[np.arange(len(proba)), fit.predicted].mean()
        plain = share_limits(float(wrong_rows(rows.votes, rows.y).mean()), n)
        for curve, m, prior, more in itertools.product(
            (0.2, 0.3, 0.4, 0.5), (10, 20, 30), (0, 3, 4), (0, 2, 4)
        ):
            mean = rows.errors.mean() * fit.trained_share**curve
            value = (n * mean + m * doubt + prior * 0.3) / (n + m + prior)
            low, high = share_limits(value, of_finite_population(n + more, len(proba)))
            row = {"curve": curve, "doubt rows": m, "prior rows": prior, "more rows": more}
            row["bias"] = value - truth
            row |= {"distance": abs(value - truth), "above": truth > high, "below": truth < low}
            limits.append({**row, "width": (high - low), "Clopper-Pearson": plain[1] - plain[0]})
        for share in (0.0, 0.1, 0.15, 0.2, 0.25, 0.3):
            target = error.value + share * (error.high - error.value)
            confidence = match_confidence(first, fit.predicted, target, seen=seen)
            mask = accept_mask(confidence.of(first, fit.predicted), 0.05)
            wrong = float(fit.wrong[mask].mean()) if mask.any() else np.nan
            row = {"caution": share, "share": mask.mean(), "error": wrong}
            caution.append({**row, "over .08": wrong > 0.08})
    keys = ["curve", "doubt rows", "prior rows", "more rows"]
    print(pd.DataFrame(limits).groupby(keys).mean().round(4).to_string())
    print(pd.DataFrame(caution).groupby("caution").mean().round(4).to_string())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["collect", "compare", "scan"])
    parser.add_argument("--folder", type=Path, default=Path("/tmp/promise_study"))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(1000, 1005)))
    parser.add_argument("--per-class", type=int, nargs="+", default=list(data.PER_CLASS))
    parser.add_argument("--data", nargs="+", default=list(data.NAMES))
    parser.add_argument("--bases", nargs="+", default=list(data.BASES))
    options = parser.parse_args()
    if options.command == "collect":
        collect_all(options.folder, options)
    else:
        show = compare if options.command == "compare" else scan
        show(options.folder, (min(options.seeds), max(options.seeds)))


if __name__ == "__main__":
    main()
