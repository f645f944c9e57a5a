"""Settings of the documentation; `make docs` builds it."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

import matplotlib as mpl

sys.path.insert(0, str(Path(__file__).parent))
import figures
import results

mpl.use("Agg")

project = "fairpul"
author = "The fairpul developers"
copyright = "The fairpul developers"
release = installed_version("fairpul")
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # the pages ask for nothing from the network
    "sphinx_design",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
# Pages include what is generated.
exclude_patterns = ["examples/README.md", "examples/*.md", "_generated/*.md"]
templates_path = ["_templates"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it better
autodoc_default_options = {
    # scikit-learn makes these, and their docstrings point into its own guide.
    "exclude-members": ",".join(
        f"set_{method}_request"
        for method in (
            "fit",
            "predict",
            "predict_proba",
            "decision_function",
            "score",
        )
    )
}
numpydoc_show_class_members = False
add_module_names = False
toc_object_entries_show_parents = "hide"

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "capture_repr": ("_repr_html_",),  # not "<... object at 0x...>"
    "abort_on_example_error": True,
    "plot_gallery": "True",
}

html_theme = "pydata_sphinx_theme"
html_title = "fairpul"
html_static_path = ["_static"]
html_css_files = ["fairpul.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 6,
}
html_sidebars = {"start": [], "comparison": [], "index": []}


def setup(app):
    """Draw the figures and write the tables that pages include."""
    app.connect("builder-inited", lambda _: figures.draw_all())
    app.connect("builder-inited", lambda _: results.write_all())
