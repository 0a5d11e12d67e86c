"""Tables as people have them: ``python -m benchmarks.any_table --records FILE --write FILE``

Learns each table as it is with ``FewLabelClassifier``, and with skrub's
``tabular_pipeline`` before a logistic regression and before boosted trees, which see the labelled
rows only. Each run leaves a record; runs that have one are not repeated (remove the file to measure
again), and the page shows the records. Needs palmerpenguins and vega_datasets, which
``make any-table`` installs.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from benchmarks import _page, table_costs
from benchmarks._page import machine, table

NOTE = """
Accuracy on the unlabelled rows, mean over *draws* of the labels; balanced accuracy, with
`scoring="balanced"`, for the rare rows. *logistic regression* and *boosted trees* are
scikit-learn's behind skrub's `tabular_pipeline`, trained on the labelled rows; *fewlabel* is
`FewLabelClassifier().fit(table, y)`. *by hand* is `FewLabelClassifier` on scikit-learn's
`TfidfVectorizer`. *families* took part in the vote; *seconds* are processor seconds of fewlabel.

The encoding of text was chosen on the first two tables: their figures are optimistic.
"""

Table = tuple[pd.DataFrame, np.ndarray, int]


def _texts(rng: np.random.Generator, codes: np.ndarray, n_words: int, share: float) -> list[str]:
    """Texts of made words; a share of the words is of the class's own 150."""
    letters = np.array(list("abcdefghijklmnoprstuvwz"))
    words = np.array(["".join(rng.choice(letters, rng.integers(3, 9))) for _ in range(3_000)])
    rank = 1.0 / np.arange(1, len(words) + 1)
    own = [rng.choice(words, 150, replace=False) for _ in range(codes.max() + 1)]
    texts = []
    for code in codes:
        general = rng.choice(words, n_words, p=rank / rank.sum())
        special = rng.choice(own[code], n_words)
        texts.append(" ".join(np.where(rng.random(n_words) < share, special, general)))
    return texts


def topics() -> Table:
    """One text column."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 1_200)
    return pd.DataFrame({"text": _texts(rng, codes, 25, 0.2)}), codes, 60


def customers() -> Table:
    """Numbers, categories, a date, money, and notes that tell more than they do."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3, 1_500)
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 1_500), unit="D")
    table = pd.DataFrame(
        {
            "id": [f"C{i:05}" for i in range(1_500)],
            "age": np.where(rng.random(1_500) < 0.05, -999, (40 + 5 * codes).round()),
            "spent": [f"${v:,.2f}" for v in rng.lognormal(5 + 0.4 * codes, 1)],
            "plan": np.where(rng.random(1_500) < 0.4, np.array(list("abc"))[codes], "d"),
            "since": day.strftime("%m/%d/%Y"),
            "notes": _texts(rng, codes, 12, 0.15),
        }
    )
    table["age"] = np.where(table["age"] < 0, -999, table["age"] + rng.integers(-15, 16, 1_500))
    return table, codes, 100


def weather() -> Table:
    """Seattle's weather with dates as in the United States."""
    from vega_datasets import local_data

    table = local_data.seattle_weather()
    table["date"] = table["date"].dt.strftime("%m/%d/%Y")
    return table.drop(columns="weather"), table["weather"].to_numpy(), 100


def penguins() -> Table:
    """The sex of penguins, from the raw table with its identifiers and comments."""
    from palmerpenguins import load_penguins_raw

    table = load_penguins_raw().dropna(subset=["Sex"])
    return table.drop(columns="Sex"), table["Sex"].to_numpy(), 40


def cars() -> Table:
    """Where cars come from, by name and measures."""
    from vega_datasets import local_data

    table = local_data.cars()
    return table.drop(columns="Origin"), table["Origin"].to_numpy(), 40


def cities() -> Table:
    """A category of 500 values with typing errors, and two numbers."""
    rng = np.random.default_rng(2)
    letters = np.array(list("aeioulmnrst"))
    names = np.array(["".join(rng.choice(letters, 9)) for _ in range(500)])
    region = rng.integers(0, 3, 500)
    which = rng.choice(500, 2_000, p=rng.dirichlet(np.full(500, 0.3)))
    codes = np.where(rng.random(2_000) < 0.85, region[which], rng.integers(0, 3, 2_000))
    city = names[which].astype(object)
    for i in np.flatnonzero(rng.random(2_000) < 0.2):
        place = rng.integers(0, 9)
        city[i] = city[i][:place] + str(rng.choice(letters)) + city[i][place + 1 :]
    x = rng.normal(size=(2_000, 2)) + 0.7 * np.eye(3)[codes][:, :2]
    return pd.DataFrame({"city": city, "a": x[:, 0], "b": x[:, 1]}), codes, 150


def numbers_with_status() -> Table:
    """Numbers; columns of the office are added that know which rows are labelled."""
    from sklearn.datasets import make_classification

    X, codes = make_classification(
        1_500, 8, n_informative=5, n_classes=3, class_sep=1.2, random_state=3
    )
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(8)]), codes, 60


def wide() -> Table:
    """200 rows, 5,000 columns."""
    rng = np.random.default_rng(4)
    codes = np.arange(200) % 4
    X = rng.normal(size=(200, 5_000))
    X[:, :60] += rng.normal(scale=1.0, size=(4, 60))[codes]
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(5_000)]), codes, 60


def rare() -> Table:
    """Two classes, 95 : 5."""
    from sklearn.datasets import make_classification

    X, codes = make_classification(
        2_500, 10, n_informative=5, weights=[0.95], flip_y=0.02, class_sep=1.0, random_state=5
    )
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(10)]), codes, 200


def many_words() -> Table:
    """2,000 texts of 29,000 different words."""
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 3, 2_000)
    words = np.array([f"w{i}" for i in range(30_000)])
    own = [rng.choice(words, 400, replace=False) for _ in range(3)]
    texts = [
        " ".join(np.where(rng.random(60) < 0.08, rng.choice(own[c], 60), rng.choice(words, 60)))
        for c in codes
    ]
    return pd.DataFrame({"text": texts}), codes, 100


TABLES: dict[str, Callable[[], Table]] = {
    "one text column": topics,
    "customers with notes": customers,
    "weather, dates as 01/31/2012": weather,
    "penguins, raw": penguins,
    "cars": cars,
    "500 cities with typing errors": cities,
    "status columns": numbers_with_status,
    "200 × 5,000": wide,
    "rare rows, 95 : 5": rare,
    "29,000 words": many_words,
}
BALANCED = "rare rows, 95 : 5"


def _with_status(table: pd.DataFrame, labeled: np.ndarray, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    n = len(table)
    done = rng.choice(["done", "checked"], n)
    return table.assign(
        status=np.where(labeled, done, "pending"),
        reviewer=np.where(labeled, rng.choice(["ann", "bob", "eve"], n), "nobody"),
        score=np.where(labeled, rng.normal(size=n), 0.0),
    )


def run(name: str, seed: int) -> dict[str, Any]:
    """Accuracies of all methods on one table with one draw of labels."""
    table, truth, n_labeled = TABLES[name]()
    rng = np.random.default_rng(100 + seed)
    order = rng.permutation(len(table))
    first = [np.flatnonzero(truth[order] == c)[:2] for c in np.unique(truth)]
    order = np.concatenate([order[np.concatenate(first)], np.delete(order, np.concatenate(first))])
    labeled = np.zeros(len(table), dtype=bool)
    labeled[order[:n_labeled]] = True
    if name == "status columns":
        table = _with_status(table, labeled, seed)
    names = np.array([str(value) for value in truth], dtype=object)
    record: dict[str, Any] = {"table": name, "seed": seed, "n_labeled": int(labeled.sum())}
    record |= {"n_rows": len(table), "n_columns": table.shape[1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        score = balanced_accuracy_score if name == BALANCED else accuracy_score
        record |= _supervised(table, names, labeled, score)
        start = time.process_time()
        own = {"scoring": "balanced"} if name == BALANCED else {}
        record["fewlabel"], voters = _learned(table, names, labeled, seed, score, **own)
        record["seconds"] = time.process_time() - start
        record["left out"] = {voter.title: voter.left_out for voter in voters if voter.left_out}
        record["families"] = len(voters) - len(record["left out"])
        if table.shape[1] == 1:
            X = TfidfVectorizer().fit_transform(table.iloc[:, 0])
            record["by hand"], _ = _learned(X, names, labeled, seed, score)
    return record | {"machine": machine()}


def _supervised(
    table: pd.DataFrame, names: np.ndarray, labeled: np.ndarray, score: Callable[..., float]
) -> dict[str, float]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from skrub import tabular_pipeline

    models = {
        "logistic regression": LogisticRegression(max_iter=1_000),
        "boosted trees": HistGradientBoostingClassifier(random_state=0),
    }
    found = {}
    for title, model in models.items():
        pipeline = tabular_pipeline(model).fit(table[labeled], names[labeled])
        found[title] = float(score(names[~labeled], pipeline.predict(table[~labeled])))
    return found


def _learned(
    X: Any,
    names: np.ndarray,
    labeled: np.ndarray,
    seed: int,
    score: Callable[..., float],
    **options: Any,
) -> tuple[float, list[Any]]:
    from fewlabel import FewLabelClassifier

    clf = FewLabelClassifier(missing_label=None, random_state=seed, n_jobs=1, **options)
    clf.fit(X, np.where(labeled, names, None))
    return float(score(names[~labeled], clf.transduction_[~labeled].astype(object))), clf.voters_


def page(records: list[dict[str, Any]], costs: list[dict[str, Any]]) -> str:
    """The page of the documentation."""
    machines = sorted({record["machine"] for record in records})
    lines, behind = [], []
    for name in TABLES:
        runs = [record for record in records if record["table"] == name]
        if not runs:
            continue
        mean = {key: np.mean([run[key] for run in runs]) for key in runs[0] if key in _SHOWN}
        shape = f"{runs[0]['n_rows']:,} × {runs[0]['n_columns']:,}"
        line = {"table": name, "rows × columns": shape, "labels": runs[0]["n_labeled"]}
        line["draws"] = len(runs)
        line |= {key: f"{mean[key]:.3f}" if key in mean else "" for key in _SHOWN[:-1]}
        lines.append(line | {"families": _families(runs), "seconds": f"{mean['seconds']:.0f}"})
        best = max(_SHOWN[:3], key=lambda key: mean.get(key, 0.0))
        if mean[best] > mean["fewlabel"] + 0.01:
            gap = mean[best] - mean["fewlabel"]
            behind.append(f"- {name}: {best} is {gap:.3f} ahead.")
    ahead = len(lines) - len(behind)
    head = (
        "# How accurate is it on messy tables?\n\n`FewLabelClassifier` is at most .01 behind the "
        f"best of the others on {ahead} of {len(lines)} tables.\n\nMade by `make any-table` "
        f"({'; '.join(machines)}).\n"
    )
    lost = "\n".join(["## Where fewlabel is more than .01 behind", "", *(behind or ["Nowhere."])])
    return head + NOTE + f"\n{table(lines)}\n\n{lost}\n\n{table_costs.sections(costs)}\n"


def _families(runs: list[dict[str, Any]]) -> str:
    """How many families took part in every draw that tells."""
    told = [run for run in runs if "families" in run]
    if not told:
        return ""
    fewest = min(told, key=lambda run: run["families"])
    return f"{fewest['families']} of {fewest['families'] + len(fewest['left out'])}"


_SHOWN = ["logistic regression", "boosted trees", "by hand", "fewlabel", "seconds"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.any_table", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="draws of the labels")
    parser.add_argument("--tables", nargs="*", default=list(TABLES), help="some of the tables")
    parser.add_argument("--records", type=Path, help="keep the records of the runs in this file")
    parser.add_argument("--write", type=Path, help="write the page to this file")
    options = parser.parse_args()
    records: dict[tuple[str, int], dict[str, Any]] = {}
    if options.records:
        records = {(r["table"], r["seed"]): r for r in _page.records(options.records)}
    for seed in range(options.seeds):
        for name in options.tables:
            if (name, seed) in records:
                continue
            records[name, seed] = run(name, seed)
            print(records[name, seed], flush=True)
            if options.records:
                with options.records.open("a") as file:
                    file.write(json.dumps(records[name, seed]) + "\n")
    if options.write:
        _page.write(options.write, page(list(records.values()), _page.records(table_costs.RECORDS)))


if __name__ == "__main__":
    main()
