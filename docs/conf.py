"""The documentation's settings for Sphinx: ``make docs`` builds the site, offline."""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path

import fewlabel

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "fewlabel"
author = "The fewlabel developers"
copyright = "the fewlabel developers, BSD-3-Clause"
release = version = fewlabel.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "accessible",
]
exclude_patterns = ["build", "gallery/**/*.ipynb", "**/sg_execution_times.rst", "README.md"]
templates_path = ["_templates"]
default_role = "code"
highlight_language = "none"
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
nitpicky = False

# --- pages in Markdown ------------------------------------------------------------------------
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist", "fieldlist"]
myst_heading_anchors = 4
# Measured pages are written by commands, whose tables are not cut to one highlighter's taste.
suppress_warnings = ["misc.highlighting_failure", "config.cache"]
SOURCE_LINK = re.compile(r"\[`(\w+)`\]\((?:\.\./)+src/fewlabel/[\w/]+\.py\)")
TEXT_FILES = ("SECURITY", "CONTRIBUTING", "CHANGELOG", "CODE_OF_CONDUCT")


def link_to_the_site(app, docname, source):
    """Links that lead to files of the repository lead to pages of the site."""

    def api(match):
        name = match[1]
        return f"{{py:obj}}`{name} <fewlabel.{name}>`" if name in public else f"`{name}`"

    public = set(fewlabel.__all__)
    up = "../" * docname.count("/")
    text = SOURCE_LINK.sub(api, source[0])
    for name in TEXT_FILES:
        page = f"{up}about/{name.lower().replace('_', '-')}.md"
        text = re.sub(rf"\]\((?:\.\./)+{name}\.md", f"]({page}", text)
    text = re.sub(r"\]\((?:\.\./)+README\.md", f"]({up}index.md", text)
    source[0] = text


# Pages beside this file that are no measurements.
PROSE = {"index", "measurements", "command-line", "coming-from", "glossary"}
PROSE |= {"guarantees", "architecture", "labeling"}


def list_measurements(app, docname, source):
    """The appendix lists the pages that commands have written, whichever there are."""
    if docname == "measurements":
        pages = sorted({path.stem for path in HERE.glob("*.md")} - PROSE)
        lines = [line for line in source[0].splitlines() if _exists(line, pages)]
        first = re.findall(r"\((\w+)\.md\)", "\n".join(lines))
        pages.sort(key=lambda name: first.index(name) if name in first else len(first))
        source[0] = "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *pages, "```", ""])


def _exists(line, pages):
    named = re.findall(r"\((\w+)\.md\)", line)
    return all(name in pages or name in PROSE for name in named)


def link_included_files(app, relative_path, parent_docname, content):
    """The same in files of the repository's root that a page includes."""
    up = "../" * app.env.docname.count("/")
    text = re.sub(r"\]\(docs/([\w/-]+\.md)", rf"]({up}\1", content[0])
    for name in TEXT_FILES:
        page = f"{up}about/{name.lower().replace('_', '-')}.md"
        text = text.replace(f"]({name}.md", f"]({page}")
    content[0] = re.sub(r"\[([^]]+)\]\((?:CITATION\.cff|\.github/[^)]+)\)", r"\1", text)


# --- API reference ----------------------------------------------------------------------------
autosummary_generate = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
autosummary_context = {
    "skipped": ["get_metadata_routing", "get_params", "set_output", "set_params"]
}


def without_foreign_labels(app, what, name, obj, options, lines):
    """Methods of scikit-learn's base classes refer to its own pages: keep the words."""
    for k, line in enumerate(lines):
        lines[k] = re.sub(r":ref:`([^<`]+?)(?: <[^>]*>)?`", r"\1", line)


# --- gallery ----------------------------------------------------------------------------------
warnings.filterwarnings("ignore", message=".*FigureCanvasAgg is non-interactive.*")


def one_style(gallery_conf, fname):
    """Every script draws in the same style."""
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {"figure.figsize": (7.0, 3.6), "figure.dpi": 110, "figure.constrained_layout.use": True}
    )
    plt.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "font.size": 9.5})


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"__init__\.py|/_",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib", one_style),
    "min_reported_time": 10_000,
    "write_computation_times": False,
    "nested_sections": False,
    "within_subsection_order": "gallery_order.ByTheme",
}

# --- HTML -------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "fewlabel"
html_static_path = ["_static"]
html_css_files = ["fewlabel.css"]
html_extra_path = ["llms.txt"]
html_favicon = "_static/favicon.svg"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "fewlabel"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_nav_level": 2,
    "navigation_depth": 3,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "about/changelog": []}


def setup(app):
    app.connect("source-read", link_to_the_site)
    app.connect("source-read", list_measurements)
    app.connect("env-get-outdated", lambda app, env, added, changed, removed: ["measurements"])
    app.connect("autodoc-process-docstring", without_foreign_labels)
    app.connect("include-read", link_included_files)
