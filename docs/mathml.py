"""Formulas as MathML: browsers draw it themselves, so that the pages load no script for it."""

from __future__ import annotations

from docutils import nodes
from latex2mathml.converter import convert


def mathml(text, display="inline"):
    """A formula; operators of two words, which the converter does not know, become one."""
    for name in ("max", "min"):
        text = text.replace(rf"\arg\{name}", rf"\operatorname{{arg{name}}}")
    return convert(text, display=display)


def inline(self, node):
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def block(self, node):
    self.body.append(self.starttag(node, "div", CLASS="math"))
    lines = [line for line in node.astext().split("\n\n") if line.strip()]
    self.body.extend(mathml(line, "block") for line in lines)
    self.body.append("</div>")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
