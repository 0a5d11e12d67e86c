"""Votes of every class, rare classes and known shares on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from support.cli_tools import columns, write_table

pd = pytest.importorskip("pandas")

VOTES = ["segment_vote_large", "segment_vote_small"]


@pytest.fixture(scope="module")
def fitted(fewlabel, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("votes")
    write_table(folder)
    options = ("--votes", "--scoring", "balanced", "--priors", "small=40%,large=0.6")
    files = ("--out", "out.csv", "--model", "m.skops", "--report", "r.md")
    answer = fewlabel(folder, "fit", "table.csv", "--target", "segment", *files, *options)
    assert answer.code == 0, answer.err
    (folder / "answer.txt").write_text(answer.out)
    return folder


def test_votes_are_chances_and_agree_with_the_confidence(fitted: Path):
    table = pd.read_csv(fitted / "out.csv")
    assert list(table.columns[-2:]) == VOTES
    new = table[table["segment_origin"] != "given"]
    assert table.loc[table["segment_origin"] == "given", VOTES].isna().all().all()
    assert ((new[VOTES] >= 0) & (new[VOTES] <= 1)).all().all()
    assert new[VOTES].sum(axis=1).max() <= 1 + 1e-5
    of_label = [row[f"segment_vote_{row['segment_label']}"] for _, row in new.iterrows()]
    np.testing.assert_allclose(of_label, new["segment_confidence"], atol=1e-6)


def test_the_answer_tells_the_recall_of_each_class(fitted: Path):
    told = (fitted / "answer.txt").read_text()
    assert "recall, the share of each class that gets its label (estimate): large" in told
    assert "| recall |" in (fitted / "r.md").read_text()


def test_predicted_votes_are_replaced_and_nothing_else(fitted: Path, fewlabel):
    answer = fewlabel(
        fitted, "predict", "m.skops", "out.csv", "--out", "p.csv", "--votes", "--json"
    )
    assert answer.code == 0, answer.err
    table = pd.read_csv(fitted / "p.csv")
    assert sorted(table.columns) == sorted(set(table.columns))
    assert table[VOTES].notna().all().all()
    assert json.loads(answer.out)["n_rows"] == 60
    again = fewlabel(fitted, "predict", "m.skops", "p.csv", "--out", "q.csv")
    assert again.code == 0
    assert not set(VOTES) & set(pd.read_csv(fitted / "q.csv").columns)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--priors", "small=0.4"), "no share of 'large'"),
        (("--priors", "small=0.4,large=0.4"), "sum to 1"),
        (("--priors", "small"), "Write it as a=0.95,b=0.05"),
        (("--priors", "small=0.4,large=x"), "Write it as 5% or as 0.05"),
        (("--scoring", "balanced", "--learner", "forest"), "for the mixed vote"),
        (("--scoring", "fair"), "accuracy"),
    ],
)
def test_what_cannot_be_asked_for(options, message: str, tmp_path: Path, fewlabel):
    write_table(tmp_path)
    answer = fewlabel(tmp_path, "fit", "table.csv", "--target", "segment", *options)
    assert answer.code != 0
    assert message in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_columns_of_the_user_are_never_replaced(tmp_path: Path, fewlabel):
    own = {"segment_vote_small": list(range(60))}
    write_table(tmp_path, **own)
    answer = fewlabel(tmp_path, "fit", "table.csv", "--target", "segment", "--votes")
    assert answer.code == 1
    assert "columns of its own where the result is written: 'segment_vote_small'" in answer.err
    write_table(tmp_path, "b.csv", segment_label=columns()["colour"])
    answer = fewlabel(tmp_path, "fit", "b.csv", "--target", "segment")
    assert answer.code == 1
    assert "never replaced" in answer.err


def test_help_names_no_python_types(fewlabel, tmp_path: Path):
    told = fewlabel(tmp_path, "fit", "--help").out
    assert "<bool>" not in told
    assert "list[" not in told
    assert "--votes" in told
