"""What each part of the mixed vote brings: ``python -m benchmarks.mixed_vote run|cost|page``.

``run`` tries families, ways to learn Q, rounds and refits on splits that are not the paper's (seeds
from 1000 on); the defaults of ``FewLabelClassifier`` were chosen from it. ``cost`` times it beside
``SelfLearningClassifier`` on whole data sets. Both append a line for each split to ``results/`` and
go on where they were. ``page`` writes docs/mixed_vote.md from these lines.
"""

from __future__ import annotations

import argparse
import copy
import time
import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from benchmarks import mixed_vote_page
from benchmarks._page import records
from fewlabel import FewLabelClassifier, SelfLearningClassifier
from fewlabel._core.arrays import RowView
from fewlabel._core.targets import UNLABELED
from fewlabel.assess.calibration import calibration_power
from fewlabel.assess.held_out import out_of_bag_votes
from fewlabel.ensemble.family_trainer import FamilyTrainer
from fewlabel.ensemble.learner import MixedVoteLearner, TrainedFamily
from fewlabel.ensemble.mixed_vote import MixedVote
from fewlabel.ensemble.posterior import Posterior, VoterVotes, learn_posterior
from reproduction.datasets import load_dataset, mask_labels, paper_split
from reproduction.records import RecordWriter

ABLATION, COST = Path("results/mixed_vote.jsonl"), Path("results/mixed_vote_cost.jsonl")
PAPER = (
    "vowel", "protein", "dna", "pageblocks", "isolet", "har_recomputed", "pendigits", "letter",
    "fashion", "mnist",
)  # fmt: skip
BUNDLED = ("digits", "iris", "wine", "breast_cancer")
MILLION = "synthetic"
SEEDS = (1000, 1001, 1002)
MOST_ROWS = 3_000  # of a data set in one trial of the ablation
TEST_SHARE = 0.2  # of the unlabelled rows: new rows, never seen in training

Q_METHODS = ("uniform", "gibbs", "second-order", "c-bound")
TEMPERATURES = (1.0, 6.0)
EVIDENCE_ROWS = 5_000  # unlabelled rows that a bound is minimised on


class StudyLearner(MixedVoteLearner):
    """Keeps the votes after every round; may start from families that are trained already."""

    def __init__(self, trace: list[Any], trained: Any = None, q: str = "gibbs", **own: Any) -> None:
        super().__init__(**own)
        object.__setattr__(self, "trace", trace)
        object.__setattr__(self, "trained", trained)
        object.__setattr__(self, "q", q)

    def train(self, training: Any, previous: Any) -> MixedVote:
        model = super().train(training, previous)
        unlabeled = np.flatnonzero(self.trainer.codes == UNLABELED)
        self.trace.append(self.votes(model, RowView(None, unlabeled)))
        return model

    def train_families(self, *labeled: Any) -> Any:
        if self.trained is None:
            object.__setattr__(self, "trained", super().train_families(*labeled))
        return self.trained

    def learn_q(self, evidence: VoterVotes) -> Posterior:
        if self.q in ("second-order", "c-bound"):
            rows = np.sort(self.trainer.unlabeled_at_random[:EVIDENCE_ROWS])
            votes = [self.trainer.vote(t.voter, t.family, rows) for t in self.trained[1]]
            evidence = VoterVotes(evidence.held_out, evidence.y, np.stack(votes))
        return learn_posterior(self.q, evidence, inverse_temperature=self.inverse_temperature)


class StudyClassifier(FewLabelClassifier):
    """A mixed vote that a :class:`StudyLearner` trains; ``study`` is set by hand."""

    def _learner(self, X: Any, codes: Any, seed: int) -> StudyLearner:
        usual = super()._learner(X, codes, seed)
        own = {field.name: getattr(usual, field.name) for field in fields(usual)}
        study = dict(self.study)
        own.update({"trainer": study.pop("trainer", usual.trainer), "_kept": {}})
        if study.get("trained"):
            own["families"] = [t.family for t in study["trained"][1]]
        self.learner = StudyLearner(**study, **own)
        return self.learner


def ablate(dataset: str, seed: int) -> dict[str, Any]:
    """Accuracies of every variant on one split."""
    data = load_dataset(dataset)
    X, y, n_labeled = data.X, data.y, data.info.n_labeled
    if len(y) > MOST_ROWS:
        kept = paper_split(y, MOST_ROWS, seed=seed).labeled
        X, y = X[kept], y[kept]
    n_test = int(TEST_SHARE * (len(y) - n_labeled))
    split = paper_split(y, n_labeled, seed=seed, n_test=n_test)
    rows = np.concatenate([split.labeled, split.unlabeled])
    train, target = X[rows], mask_labels(y, split.labeled)[rows]

    def accuracy(votes: Any, classes: Any, part: Any = split.unlabeled) -> float:
        return round(float((classes[votes.argmax(axis=1)] == y[part]).mean()), 5)

    def fit(
        change: Callable[[TrainedFamily], TrainedFamily] = lambda t: t,
        q: str = "gibbs",
        **settings: Any,
    ) -> StudyClassifier:
        records, families = first.learner.trained
        clf = StudyClassifier(random_state=seed, min_gain=0.0, **settings)
        trained = records, [change(t) for t in families]
        clf.study = {"trace": [], "trained": trained, "q": q, "trainer": first.learner.trainer}
        return clf.fit(train, target)

    def after(clf: StudyClassifier) -> dict[str, float]:
        return {
            "before": accuracy(clf.learner.trace[0], clf.classes_),
            "after": accuracy(clf.learner.trace[-1], clf.classes_),
        }

    first = StudyClassifier(random_state=seed, max_iter=3, min_gain=0.0)
    first.study = {"trace": []}
    start = time.process_time()
    first.fit(train, target)
    seconds = time.process_time() - start
    trainer, classes = first.learner.trainer, first.classes_
    trained = first.learner.trained[1]
    unlabeled = np.flatnonzero(target == -1)
    families = {
        t.family.name: {
            "accuracy": accuracy(trainer.vote(t.voter, t.family, unlabeled), classes),
            "held_out": round(record.accuracy, 5),
            "weight": round(record.weight, 4),
            "seconds": round(record.seconds, 3),
        }
        for t, record in zip(trained, (r for r in first.voters_ if not r.left_out))
    }
    two = fit()
    variants = {f"Q {name}": after(fit(q=name)) for name in Q_METHODS if name != "gibbs"}
    variants["Q gibbs"] = after(two)
    for temperature in TEMPERATURES:
        variants[f"temperature {temperature:g}"] = after(fit(inverse_temperature=temperature))
    variants["refit all"] = after(fit(lambda t: _with(t, refitted=True)))
    variants["refit inductive"] = after(fit(lambda t: _with(t, refitted=_inductive(t))))
    variants["calibrate none"] = after(fit(lambda t: _calibrated(t, 1.0)))
    codes = trainer.codes[trainer.labeled]
    variants["calibrate all"] = after(
        fit(lambda t: _calibrated(t, calibration_power(t.held_out, codes)))
    )
    variants["policy fixed"] = after(fit(policy="fixed"))
    variants["out of bag"] = after(fit(lambda t: _out_of_bag(t, trainer)))
    new = X[split.test]
    return {
        "dataset": dataset,
        "seed": seed,
        "rows": len(rows),
        "labeled": n_labeled,
        "seconds": round(seconds, 2),
        "families": families,
        "rounds": [accuracy(votes, classes) for votes in first.learner.trace],
        "variants": variants,
        "new_rows": {
            "by neighbours": accuracy(two.predict_proba(new), classes, split.test),
            "others only": accuracy(_inductive_part(two).predict_proba(new), classes, split.test),
        },
    }


def _with(trained: TrainedFamily, **changes: Any) -> TrainedFamily:
    return trained._replace(family=replace(trained.family, **changes))


def _inductive(trained: TrainedFamily) -> bool:
    return trained.family.name in ("forest", "extra_trees", "svm", "lda")


def _calibrated(trained: TrainedFamily, power: float) -> TrainedFamily:
    voter = copy.copy(trained.voter)
    voter.power = power
    return trained._replace(voter=voter)


def _out_of_bag(trained: TrainedFamily, trainer: FamilyTrainer) -> TrainedFamily:
    """The forest judged by its out-of-bag votes, the other families by cross-fitting."""
    if trained.family.name != "forest":
        return trained
    votes = out_of_bag_votes(trained.voter.model, trainer.X[trainer.labeled])
    return trained._replace(held_out=trained.voter.finish(votes))


def _inductive_part(clf: FewLabelClassifier) -> MixedVote:
    """The mixed vote without voters that know the rows of the fit only."""
    vote = clf.estimator_
    keep = [i for i, voter in enumerate(vote.estimators) if not voter.transductive]
    if not keep:
        return vote
    weights = vote.weights[keep] / vote.weights[keep].sum()
    return MixedVote([vote.estimators[i] for i in keep], weights, vote.classes)


def _million(seed: int) -> tuple[Any, Any]:
    X, y = make_classification(
        1_000_000, 20, n_informative=10, n_classes=4, class_sep=1.5, random_state=seed
    )
    return X.astype(np.float32), y


def cost(dataset: str, seed: int) -> dict[str, Any]:
    """Processor seconds of both classifiers, side by side on one whole data set."""
    if dataset == MILLION:
        (X, y), n_labeled = _million(seed), 500
    else:
        data = load_dataset(dataset)
        X, y, n_labeled = data.X, data.y, data.info.n_labeled
    split = paper_split(y, n_labeled, seed=seed)
    target = mask_labels(y, split.labeled)
    record: dict[str, Any] = {"dataset": dataset, "seed": seed, "rows": len(target)}
    for cls in (SelfLearningClassifier, FewLabelClassifier):
        clf = cls(random_state=seed, n_jobs=1)
        if dataset == MILLION and cls is SelfLearningClassifier:
            clf.set_params(max_train=20_000)  # as docs/benchmarks.md has it at this size
        start, wall = time.process_time(), time.perf_counter()
        clf.fit(X, target)
        right = clf.transduction_[split.unlabeled] == y[split.unlabeled]
        record[cls.__name__] = {
            "cpu": round(time.process_time() - start, 2),
            "wall": round(time.perf_counter() - wall, 2),
            "accuracy": round(float(right.mean()), 5),
        }
    record["left_out"] = {v.name: v.left_out for v in clf.voters_ if v.left_out}
    return record


def run(path: Path, trial: Callable[[str, int], dict[str, Any]], sets: Any, seeds: Any) -> None:
    """Append the trials that have no record yet."""
    done = {(r["dataset"], r["seed"]) for r in records(path)}
    with RecordWriter(path) as writer:
        for seed in seeds:
            for dataset in sets:
                if (dataset, seed) in done:
                    continue
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    writer.append(trial(dataset, seed))
                print(f"{dataset}, seed {seed}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "cost", "page"])
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--seeds", nargs="+", type=int)
    args = parser.parse_args()
    if args.what == "run":
        run(ABLATION, ablate, args.sets or (*BUNDLED, *PAPER), args.seeds or SEEDS)
    elif args.what == "cost":
        run(COST, cost, args.sets or (*PAPER, MILLION), args.seeds or SEEDS[:1])
    else:
        mixed_vote_page.write(records(ABLATION), records(COST))


if __name__ == "__main__":
    main()
