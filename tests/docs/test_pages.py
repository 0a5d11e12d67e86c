"""Every block of code on the pages runs, every public name has its place, every example is a page.

A page's blocks run one after the other in an empty folder, commands included. ``<!-- setup … -->``
holds what a page takes for granted. The mixed vote is a small one here: what is tested is the
pages, and there are many fits on them.
"""

from __future__ import annotations

import ast
import re
import runpy
import shlex
import warnings
from pathlib import Path

import pytest

import fewlabel
import fewlabel.labeling

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    DOCS / "index.md",
    DOCS / "coming-from.md",
    DOCS / "command-line.md",
    DOCS / "labeling.md",
    *sorted(DOCS.glob("start/*.md")),
    *sorted(DOCS.glob("guide/*.md")),
    *sorted(DOCS.glob("theory/*.md")),
]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BLOCK = re.compile(
    r"^<!-- setup\n(?P<setup>.*?)^-->|^```(?P<kind>\w*)\n(?P<code>.*?)^```", re.M | re.S
)


@pytest.fixture
def small_votes(monkeypatch):
    """Two quick families in place of the default ones."""
    from fewlabel.ensemble import families

    kept = {name: families.FAMILIES[name] for name in ("extra_trees", "semi_lda")}
    monkeypatch.setattr(families, "FAMILIES", kept)


def blocks(page: Path):
    """The blocks of a page that run: (kind, code, first line)."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["setup"] is not None:
            yield "python", match["setup"], line
        elif match["kind"] in ("python", "console") or match["code"].startswith("$ fewlabel"):
            yield match["kind"] or "console", match["code"], line


def run_commands(code: str) -> None:
    from typer.testing import CliRunner

    from fewlabel.cli.app import app

    for line in code.splitlines():
        if line.startswith("$ fewlabel ") and not line.startswith("$ fewlabel label "):
            answer = CliRunner().invoke(app, shlex.split(line)[2:])
            assert answer.exit_code == 0, f"{line}\n{answer.output}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_runs(page, tmp_path, monkeypatch, small_votes):
    found = list(blocks(page))
    if not found:
        pytest.skip("no code on this page")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"ROOT": ROOT, "Path": Path}
    for kind, code, line in found:
        if kind == "console":
            run_commands(code)
        else:
            compiled = compile("\n" * line + code, str(page), "exec")
            exec(compiled, names)


def test_the_reference_has_every_public_name():
    page = (DOCS / "api" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^   (\w+)$", page, re.M)
    public = {*fewlabel.__all__, *fewlabel.labeling.__all__} - {"__version__"}
    assert sorted(listed) == sorted(public)


def test_every_public_name_has_see_also_references_and_an_example():
    for name, home in fewlabel._HOME.items():
        text = getattr(fewlabel, name).__doc__
        sections = ["See Also", "Examples"]
        if not home.startswith(("tables", "labeling")):  # files and pages rest on no paper
            sections.append("References")
        for section in sections:
            assert f"{section}\n    {'-' * len(section)}" in text, (name, section)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_a_gallery_page(path):
    assert path.name.startswith("plot_")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    title, line, *_ = text.splitlines()
    assert set(line) == {"="}
    assert len(line) == len(title)


QUICK = ["plot_audit", "plot_label_noise", "plot_learned_graph", "plot_out_of_core"]


@pytest.mark.parametrize("name", QUICK)
def test_quick_example_runs(name, monkeypatch, capsys):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*non-interactive.*")
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert plt.get_fignums()
    plt.close("all")
    assert capsys.readouterr().out


def test_the_readme_says_of_accuracy_what_the_records_say():
    """``make peers`` writes the sentence."""
    from benchmarks import _page, peers, peers_page

    made = peers_page.sentence(_page.records(ROOT / peers.RECORDS), peers.OURS[0])
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"<!-- accuracy -->\n{made}\n<!-- /accuracy -->" in readme
    # The page shows the same figure.
    (ours,) = re.findall(r"it labels (\d+\.\d) % of", " ".join(made.split()))
    row = f"| **mixed vote** | labels and rows | 0.{ours.replace('.', '')} |"
    assert row in (DOCS / "peers.md").read_text()
