"""Sphinx configuration: Markdown pages, all warnings are errors (`make docs`)."""

import importlib.metadata

project = "kvnode"
author = "the kvnode authors"
release = importlib.metadata.version("kvnode")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"kvnode {release}"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nitpicky = True
