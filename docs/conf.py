"""How the documentation is built: `make docs` makes a static site with search from the pages of this folder."""

import re

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

project = "Bespeak"
author = "The authors of Bespeak"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = "Bespeak"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
templates_path = []
exclude_patterns = ["images", "static"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # links to headings work as they do in the repository

default_role = "code"  # docstrings write `name` as Markdown does
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
autodoc_inherit_docstrings = True
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
highlight_language = "text"
suppress_warnings = ["myst.xref_ambiguous"]

SECURITY = re.compile(r"\]\((?:\.\./)+SECURITY\.md")
"""A link of a page to SECURITY.md, which is outside this folder. The site has its text at explanation/security."""
REPOSITORY = re.compile(r"\[([^\[\]]*)\]\((?:\.\./)+(?:README\.md|CONTRIBUTING\.md|examples|suites|frameworks)[^)]*\)")
"""A link of a page to a file of the repository that is not part of the site."""


def adapt_links(app: Sphinx, name: str, source: list[str]) -> None:
    """Let links to SECURITY.md lead to its page of the site, and show links to other files of the repository as text."""
    up = "../" * name.count("/")
    if name != "explanation/security":
        source[0] = REPOSITORY.sub(r"\1", SECURITY.sub(f"]({up}explanation/security.md", source[0]))


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_lexer("mermaid", TextLexer)  # these drawings are shown as their source
    app.connect("source-read", adapt_links)
