"""From records to tables: the arithmetic of a cell, the marks of a row, the three notations."""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from reproduction import paper_values, reasons
from reproduction.methods import METHODS
from reproduction.notation import latex, markdown, number
from reproduction.page import evidence_trials, far_cells, page_text, paired, write_page
from reproduction.paper_values import Reported
from reproduction.plan import ITEMS, QUICK, REDUCED, ROWS, Scope, narrowed, trials_of
from reproduction.reasons import REASONS, reason
from reproduction.show import show_table
from reproduction.spec import Trial
from reproduction.summary import Cell, by_key, cell, duration, ranked, trials_text
from reproduction.tables import build

VOWEL = Scope(sets=("vowel",), n_trials=4)


def record(trial, accuracy=None, status="ok", seconds=1.0):
    """A made-up record: what is tested here is arithmetic, not a result."""
    made = {
        "key": trial.key,
        "trial": trial.as_dict(),
        "status": status,
        "total_seconds": seconds,
        "machine": {"cpu": "abacus", "cores": 1},
        "versions": {"scikit-learn": "0"},
        "limits": {"seconds": 600.0, "memory_mib": None},
        "data": {"verified": True, "checksum": "ab"},
    }
    if accuracy is not None:
        made |= {"scores": {"accuracy": accuracy}, "seconds": {"fit": 9.0, "cpu": seconds}}
    return made


def records_of(scope, row, method, values, **more):
    return [record(t, v) for t, v in zip(scope.grid(row, method, **more), values)]


def test_a_cell_by_hand():
    values = (0.5, 0.6, 0.7, 0.6)
    c = Cell(values, paper=Reported(0.65, 0.02))
    assert c.mean == pytest.approx(0.6)
    assert c.std == pytest.approx(math.sqrt(0.02 / 4))
    error = math.sqrt(0.02 / 3 / 4 + 0.02**2 / 19)  # s²/n with the divisor n−1, for both
    assert c.distance == pytest.approx(-0.05 / error)
    assert not c.far
    assert Cell(values, paper=Reported(0.7, 0.02)).far
    # A single trial is given the paper's deviation: its variance is s² = 20/19 · 0.02².
    alone = math.sqrt(20 / 19 * 0.02**2 + 0.02**2 / 19)
    assert Cell((0.5,), paper=Reported(0.7, 0.02)).distance == pytest.approx(-0.2 / alone)
    assert Cell(paper=Reported(0.7, 0.02)).distance is None
    assert Cell(values).distance is None


def test_the_best_point_of_a_grid_is_shown_unless_it_ran_on_fewer_splits():
    trials = VOWEL.grid("vowel", "DAS-RF")
    low, high = METHODS["DAS-RF"].grid[:2]

    def at(point):
        return [t for t in trials if dict(t.params) == point]

    found = [record(t, 0.5) for t in at(low)] + [record(t, 0.6) for t in at(high)]
    shown = cell(trials, by_key(found))
    assert shown.values == (0.6,) * 4
    assert dict(shown.params) == high
    fewer = found[:4] + found[4:5]
    assert cell(trials, by_key(fewer)).values == (0.5,) * 4


def test_limits_make_na_and_errors_make_nothing():
    trials = VOWEL.grid("vowel", "RF")
    slow = cell(trials, by_key(record(t, status="time limit") for t in trials))
    assert (slow.n, slow.limited, slow.limit) == (0, 4, "over 10 m")
    some = [record(trials[0], 0.9), *(record(t, status="time limit") for t in trials[1:])]
    assert (cell(trials, by_key(some)).n, cell(trials, by_key(some)).limited) == (1, 3)
    for name, first in (("table2", ".900 (1)"), ("table4", "1.0 s (1)")):
        field = build(name, VOWEL, some).rows["vowel"]["RF"]
        assert field[:2] == (first, "3 more over 10 m")
    broken = cell(trials, by_key(record(t, status="error") for t in trials))
    assert (broken.n, broken.limited) == (0, 0)


def cell_of(*values, first=0):
    """A cell of made-up scores on consecutive splits."""
    return Cell(tuple(values), tuple(range(first, first + len(values))))


def test_marks_of_a_row():
    rng = np.random.default_rng(0)
    good, close, bad = rng.normal([[0.8], [0.79], [0.6]], 0.02, (3, 20))
    row = ranked({"a": cell_of(*bad), "b": cell_of(*good), "c": cell_of(*close), "d": Cell()})
    assert [name for name, c in row.items() if c.best] == ["b"]
    assert row["a"].worse
    assert row["c"].worse == (mannwhitneyu(close, good).pvalue < 0.01)
    assert not row["d"].worse
    assert ranked({"d": Cell()}) == {"d": Cell()}
    # One lucky split does not beat twenty.
    lucky = ranked({"b": cell_of(*good), "c": cell_of(*close), "d": cell_of(0.99)})
    assert [name for name, c in lucky.items() if c.best] == ["b"]
    assert trials_text(row.values()) == "20 trials"
    assert trials_text([Cell((1.0,)), Cell((1.0, 1.0))]) == "1 to 2 trials"


def test_a_column_outside_is_compared_but_leaves_the_marks_of_the_others_alone():
    rng = np.random.default_rng(0)
    low, mid, high = (cell_of(*rng.normal(m, 0.01, 20)) for m in (0.6, 0.7, 0.8))
    row = ranked({"a": low, "b": mid, "ours": high}, outside=("ours",))
    assert (row["b"].best, row["a"].worse) == (True, True)
    assert (row["ours"].best, row["ours"].better, row["ours"].worse) == (False, True, False)
    row = ranked({"a": high, "b": mid, "ours": low}, outside=("ours",))
    assert (row["a"].best, row["ours"].better, row["ours"].worse) == (True, False, True)
    # Few splits of ours must not cut the comparison of the others to these.
    steady, rising = cell_of(*[0.78] * 20), cell_of(*[0.7] * 5, *[0.82] * 15)
    others = {"a": rising, "b": steady}
    few = ranked(others | {"ours": cell_of(*[0.5] * 5)}, outside=("ours",))
    assert (few["a"].best, few["b"].best) == (True, False)
    assert {name: few[name] for name in others} == ranked(others)
    # One rival is nothing to be the best of.
    assert not ranked({"a": low, "ours": high}, outside=("ours",))["a"].best


def test_cells_with_different_numbers_of_trials_are_compared_on_the_splits_they_share():
    falling = np.linspace(0.9, 0.5, 20)
    # On its own five splits "few" is the worse one, though its mean is the higher.
    few, many = cell_of(*(falling[:5] - 0.01)), cell_of(*falling)
    assert few.mean > many.mean
    row = ranked({"few": few, "many": many})
    assert not row["few"].best
    assert row["many"].best
    apart = {"early": cell_of(*falling[:5]), "late": cell_of(*falling[:5], first=10)}
    assert ranked(apart) == apart


def test_a_smaller_setting_is_planned_and_told_unless_the_paper_s_is_asked_for():
    for (row, method), smaller in REDUCED.items():
        scope = Scope(sets=(row,), methods=(method,), n_trials=2)
        planned = trials_of("table2", scope)
        whole = trials_of("table2", replace(scope, full=True))
        assert {t.method for t in planned} == {smaller.method or method}
        assert len(planned) <= len(whole) == 2 * len(METHODS[method].grid)
        assert {t.n_trees for t in planned} == {smaller.n_trees or scope.n_trees}
        fields = build("table2", scope, [record(t, 0.5) for t in planned]).rows[row]
        assert fields[method][-1] == smaller.note
        in_full = build("table2", replace(scope, full=True), [record(t, 0.5) for t in whole])
        assert smaller.note not in in_full.rows[row][method]
    # Figure 1 has 3,500 rows of a large set: the paper's grid is in reach there.
    small = trials_of("figure1", Scope(methods=("QN-S3VM",), n_trials=1))
    assert {t.params for t in small} == {
        tuple(sorted(point.items())) for point in METHODS["QN-S3VM"].grid
    }


def made_up():
    return (
        records_of(VOWEL, "vowel", "RF", [0.58, 0.59, 0.58, 0.59])
        + records_of(VOWEL, "vowel", "MSLA", [0.68, 0.69, 0.70, 0.71])
        + records_of(VOWEL, "vowel", "MSLA", [0.6] * 4, label_proba="oracle")
        + [record(t, status="time limit") for t in VOWEL.grid("vowel", "LS")]
    )


def test_table_2_in_two_notations():
    table = build("table2", VOWEL, made_up())
    page = markdown(table)
    line = next(text for text in page.splitlines() if text.startswith("| Vowel"))
    cells = [text.strip() for text in line.split("|")]
    assert cells[2] == ".585 ± .005 (4)<br>*.586 ± .028*"
    assert re.search(r"\*.586 ± .026\*<br>\+1\d\.\d SE", cells[9])
    assert cells[3] == "NA (over 10 m)<br>*.602 ± .026*"
    assert cells[4] == "–<br>*.208↓ ± .029*"
    assert cells[10] == "–"  # FewLabel is not in the paper
    assert cells[9].startswith("**.695** ± .011 (4)")
    assert "over 4 trials" in page
    tex = latex(table)
    assert r"\makecell{\textbf{.695} $\pm$ .011 (4)\\\tiny \textit{.586 $\pm$ .026}" in tex
    assert r"\textit{.208$^{\downarrow}$ $\pm$ .029}" in tex
    assert sum(line.endswith(r" \\") for line in tex.splitlines()) == 2  # head, Vowel


def test_latex_has_no_bare_special_character():
    tex = latex(build("table2", Scope(), made_up()))
    body = [line for line in tex.splitlines() if not line.startswith("%")]
    assert not re.search(r"(?<!\\)[%#]", "".join(body))
    assert not re.search(r"[±↓↑λ]", tex)
    assert r"1\,094" in latex(build("table1", Scope(), [described("pageblocks", l=1094)]))


def described(dataset, **counts):
    return record(Trial(dataset, "describe")) | {
        "scores": {"l": 99, "u": 800, "d": 10, "K": 11} | counts
    }


def test_a_table_shows_what_was_asked_for():
    whole = build("table2", Scope(), made_up())
    assert list(whole.columns) == list(METHODS)
    assert "SensIT" not in markdown(whole)
    assert "SensIT (not available)" in markdown(build("table1", Scope(), made_up()))
    assert "mnist_stratified" not in whole.rows  # optional, and without records here
    narrow = narrowed(Scope(), ("dna", "vowel"), ("MSLA", "RF"), 4)
    for name in ("table2", "table4"):
        table = build(name, narrow, made_up())
        assert list(table.columns) == ["RF", "MSLA"]
        assert list(table.rows) == ["vowel", "dna"]


@pytest.mark.parametrize(("width", "fits"), [(100, True), (40, False)])
def test_a_terminal_shows_the_tables_that_fit(width, fits):
    console = pytest.importorskip("rich.console").Console(file=io.StringIO(), width=width)
    narrow = narrowed(Scope(), ("vowel",), ("RF", "MSLA"), 4)
    assert show_table(build("table2", narrow, made_up()), console) == fits
    text = console.file.getvalue()
    assert ("│ Vowel    │ .585 ± .005 (4) │ .695 ± .011 (4) │" in text) == fits
    assert bool(text) == fits
    assert "*" not in text


def test_other_tables():
    records = made_up()
    oracle = build("table3", VOWEL, records).rows["vowel"]["oracle"]
    assert oracle[:2] == (".600 ± .000 (4)", "*.599 ± .028*")
    times = build("table4", VOWEL, records).rows["vowel"]
    assert times["RF"] == ("1.0 s (4)", "*1 s*")
    without = [r | {"seconds": {"fit": 9.0, "predict": 3.0}} for r in records if "seconds" in r]
    walls = build("table4", VOWEL, without).rows["vowel"]
    assert walls["RF"] == ("12 s wall (4)", "*1 s*")
    assert times["QN-S3VM"] == ("–", "*2 s*")
    assert times["LS"] == ("over 10 m (24)", "*6 s*")
    row = build("table1", VOWEL, [described("vowel")]).rows["vowel"]
    assert (row["l"], row["u"]) == (("99",), ("800 (paper: 891)",))


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.44, "0.4 s"), (12.4, "12 s"), (150, "2 m"), (7300, "2.0 h")]
)
def test_duration(seconds, text):
    assert duration(seconds) == text


def test_numbers_as_in_the_paper():
    assert [number(v) for v in (0.5, 0.0394, 1.0)] == [".500", ".039", "1.000"]


def test_paper_values_are_complete_and_agree_among_themselves():
    assert all(len(row) == 8 for row in paper_values.TABLE_2.values())
    for name, row in paper_values.TABLE_3.items():
        # The supervised column of Table 3 is the MSLA column of Table 2.
        assert row["supervised"].mean == paper_values.TABLE_2[name]["MSLA"].mean
        assert sum(paper_values.TABLE_1[name][k] for k in "lu") > 900
    unfinished = {n for n, row in paper_values.TABLE_2.items() if row["LS"] is None}
    assert unfinished == {n for n, row in paper_values.TABLE_4.items() if row["LS"] == ">4 h"}
    assert unfinished == {"fashion", "mnist", "sensit"}


def test_the_plan_is_the_papers():
    scope = Scope()
    rf = [t for t in trials_of("table2", scope) if (t.dataset, t.method) == ("vowel", "RF")]
    assert [t.seed for t in rf] == list(range(0, 200, 10))
    assert all(t.n_trees == 200 and not t.stratify for t in rf)
    modes = {t.label_proba for t in trials_of("table3", scope)}
    assert modes == {"uniform", "supervised", "oracle"}
    assert {t.n_rows for t in trials_of("figure1", scope)} == {3500}
    assert len(METHODS["QN-S3VM"].grid) == 9
    assert len(METHODS["LS"].grid) == 6
    for item in ITEMS:
        assert trials_of(item, scope), item
    # Figures about MSLA need no trial that Table 2 does not run anyway.
    table = set(trials_of("table2", scope))
    assert all(set(trials_of(f"figure{n}", scope)) <= table for n in (2, 3, 4, 5, 6))


def test_narrowed():
    scope = narrowed(Scope(), ("vowel",), ("RF",), 3)
    assert (scope.sets, scope.methods, scope.n_trials) == (("vowel",), ("RF",), 3)
    assert narrowed(QUICK, None, None, None) == QUICK
    # No figure runs a set that was not asked for, save the 3,500 rows of Figure 1.
    for item in ITEMS.keys() - {"figure1"}:
        assert {t.dataset for t in trials_of(item, scope)} <= {"vowel"}
    published = narrowed(Scope(), ("har", "vowel", "fashion"), None, None)
    assert (published.confident_sets, published.relaxed_set) == (("har",), "fashion")
    with pytest.raises(ValueError, match=r"Unknown sets: \['wovel'\]"):
        narrowed(Scope(), ("wovel",), None, None)
    with pytest.raises(ValueError, match="Unknown methods"):
        narrowed(Scope(), None, ("SVM",), None)


def test_rows_say_what_must_be_said():
    assert ROWS["har_recomputed"].note == "features recomputed"
    assert ROWS["sensit"].note == "not available"
    assert ROWS["mnist_stratified"].options == {"stratify": True}


def test_far_cells_are_listed_with_their_reason_or_as_unexplained(monkeypatch):
    found = by_key(made_up())
    text = "\n".join(far_cells(VOWEL, found))
    assert "Table 2, MSLA: Vowel" in text
    assert "**unexplained**" in text
    assert "RF" not in text
    monkeypatch.setitem(REASONS, ("*", "*", "MSLA"), "made up")
    assert "made up" in "\n".join(far_cells(VOWEL, found))
    monkeypatch.setitem(REASONS, ("table2", "vowel", "MSLA"), "exact")
    assert reason("table2", "vowel", "MSLA") == "exact"
    assert reason("table3", "vowel", "MSLA") == "made up"
    assert reason("table3", "vowel", "RF") is None
    monkeypatch.setitem(REASONS, ("table2", "vowel", "MSLA"), "RF: {vowel/RF}; LDA: {dna/LDA}")
    assert "RF: .585 (4 trials); LDA: (not run)" in "\n".join(far_cells(VOWEL, found))
    monkeypatch.setitem(REASONS, ("table2", "vowel", "MSLA"), "RF: {here/RF}")
    assert "RF: .585 (4 trials)" in "\n".join(far_cells(VOWEL, found))


def test_the_page_runs_what_its_reasons_compare_with(monkeypatch):
    monkeypatch.setattr(reasons, "REASONS", {("*", "*", "RF"): "{here/LDA} and {dna/LDA plain}"})
    monkeypatch.setitem(reasons.REASONS, ("table3", "*", "oracle"), "{dna/LDA plain}")
    cells = [("vowel", "FSLA weighted"), ("vowel", "LDA"), ("dna", "LDA plain")]
    assert evidence_trials(VOWEL) == [t for c in cells for t in VOWEL.grid(*c)]
    # The tiny sets are not compared with the paper: no reason is about them.
    assert {t.method for t in evidence_trials(QUICK)} == {"FSLA weighted"}


@pytest.mark.parametrize(("forest_elsewhere", "told"), [(0.50, True), (0.58, False)])
def test_easy_splits_explain_a_far_cell_of_few_trials(forest_elsewhere, told):
    """RF has .60 on the splits of the cell: is that much more than elsewhere?"""
    scope = Scope(sets=("vowel",), n_trials=6)
    forests = records_of(scope, "vowel", "RF", [0.6, 0.6] + [forest_elsewhere] * 4)
    few = records_of(scope, "vowel", "MSLA", [0.65, 0.6504])
    lines = list(far_cells(scope, by_key(forests + few)))
    (line,) = [text for text in lines if "Table 2, MSLA: Vowel" in text]
    assert ("RF has .600 on these 2 but" in line) == told
    assert ("**unexplained**" in line) != told


def test_reasons_are_about_cells_that_exist():
    for table, row, column in REASONS:
        assert table in ("*", "table2", "table3")
        assert row == "*" or row in ROWS
        assert column == "*" or column in (*METHODS, *paper_values.MODES)


def test_the_page_says_where_self_learning_does_not_help():
    worse = records_of(VOWEL, "vowel", "RF", [0.9] * 4) + made_up()[4:8]
    text = "\n".join(paired(VOWEL, by_key(worse), "MSLA", "RF"))
    assert "below RF's on: Vowel" in text
    assert "| Vowel | 4 | .900 | .695 | -0.205 | 0 of 4 |" in text
    better = "\n".join(paired(VOWEL, by_key(made_up()), "MSLA", "RF"))
    assert "at least RF's on every set" in better


def test_a_pair_of_different_settings_says_so():
    scope = Scope(sets=("fashion",), n_trials=2)
    found = [record(t, 0.7) for t in scope.cell("fashion", "FSLA")]
    found += [record(t, 0.8) for t in scope.cell("fashion", "FSLA weighted")]
    text = "\n".join(paired(scope, by_key(found), "FSLA weighted", "FSLA"))
    assert "| Fashion | 2 | .700 (50 trees) | .800 | +0.100 |" in text


def test_the_page_names_sets_that_ran_on_other_files():
    known = made_up()
    assert "whose checksums" in page_text(VOWEL, known, "x")
    other = [r | {"data": {"verified": False, "checksum": "cd"}} for r in known]
    assert "**Other data files** than those `load_dataset` knows were used for vowel." in page_text(
        VOWEL, other, "x"
    )


def test_page_without_records(tmp_path):
    write_page(tmp_path / "page.md", VOWEL, [])
    text = (tmp_path / "page.md").read_text()
    assert "There are no records yet." in text
    assert "features recomputed" in text
    assert "not available" in text
