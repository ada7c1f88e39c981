"""Settings of the documentation; `make docs` builds it. Nothing is fetched from the network, by build or by reader."""

import re
import runpy
import shutil
from importlib.metadata import version as installed_version
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import matplotlib as mpl

mpl.use("Agg")  # files, no windows

import matplotlib.pyplot as plt

project = "kernelweave"
author = "The kernelweave developers"
copyright = author
release = version = installed_version("kernelweave")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "reproduction/*", "gallery/**/*.ipynb", "gallery/backreferences"]
templates_path = ["_templates"]
suppress_warnings = [
    "config.cache",  # sphinx-gallery's settings hold a class
    "sphinx_gallery.space_in_filename",  # only the folder of the repository may have spaces
]

# Markdown
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_dmath_allow_digits = False  # "$5 and $6" is no formula

# The reference
autosummary_generate = True
autodoc_typehints = "none"  # docstrings say types in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template lists them
numpydoc_class_members_toctree = False

# Pictures: one file of docs/figures for each, drawn when the build begins
FIGURES = Path(__file__).parent / "figures"
DRAWN = FIGURES / "drawn"
STYLE = {
    "figure.figsize": (7.2, 3.2),
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "kernelweave",  # the same picture is the same file
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}

# Examples
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "ignore_pattern": r"(^|[\\/])(?!plot_)[^\\/]+\.py$",
    "doc_module": ("kernelweave",),
    "backreferences_dir": "gallery/backreferences",
    "reference_url": {"kernelweave": None},
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,  # the same sources make the same pages
    "min_reported_time": 10**6,
    "download_all_examples": False,
    "abort_on_example_error": False,
}

# Pages
html_theme = "furo"
html_title = "kernelweave"
html_static_path = ["_static"]
html_css_files = ["kernelweave.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f8b", "color-brand-content": "#1f5f8b"},
    "dark_css_variables": {"color-brand-primary": "#7cc0ee", "color-brand-content": "#7cc0ee"},
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
mathjax_path = "mathjax/tex-chtml.js"

MATHJAX = Path(next(iter(find_spec("sphinx-mathjax-offline").submodule_search_locations))) / "static" / "mathjax"
# Of scikit-learn's documentation, which inherited methods refer to, no copy is at hand.
REFERENCE = re.compile(r":ref:`([^`<]*?)(?:\s*<[^`]*>)?`", re.DOTALL)
SHAPE = re.compile(r"(?<= of shape )\(.*\)")


def draw_figures(app):
    """Draw the pictures that are older than their script or than the results of a benchmark."""
    DRAWN.mkdir(exist_ok=True)
    results = max(file.stat().st_mtime for file in (FIGURES.parents[1] / "benchmarks").glob("*/results.json"))
    for script in sorted(FIGURES.glob("*.py")):
        picture = DRAWN / f"{script.stem}.svg"
        if picture.exists() and picture.stat().st_mtime > max(results, script.stat().st_mtime):
            continue
        with mpl.rc_context(STYLE):
            runpy.run_path(str(script))
            plt.savefig(picture, metadata={"Date": None})
            plt.close("all")


def copy_mathjax(app, exception):
    """Copy the script and its fonts, not the twenty variants that the package holds."""
    if exception is None and app.builder.format == "html":
        target = Path(app.outdir) / "_static" / "mathjax"
        fonts = Path("output", "chtml", "fonts", "woff-v2")
        target.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(MATHJAX / "tex-chtml.js", target / "tex-chtml.js")
        shutil.copytree(MATHJAX / fonts, target / fonts, dirs_exist_ok=True)


def fix_dates(app, exception):
    """Write the archives of examples without the dates of today."""
    for file in Path(app.outdir).glob("_downloads/*/*.zip") if exception is None else ():
        with ZipFile(file) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        with ZipFile(file, "w") as archive:
            for name, content in members.items():
                archive.writestr(ZipInfo(name), content)


def skip_member(app, what, name, obj, skip, options):
    """Leave out scikit-learn's routing of metadata, which every estimator inherits."""
    return True if name == "get_metadata_routing" or name.endswith("_request") else None


def prepare_docstring(app, what, name, obj, options, lines):
    """Write references as their text; in shapes, n_features_in_ is a name and no link."""
    text = REFERENCE.sub(r"\1", "\n".join(lines))
    text = SHAPE.sub(lambda shape: re.sub(r"_(?=[,)])", r"\\_", shape[0]), text)
    lines[:] = text.split("\n")


def setup(app):
    app.connect("builder-inited", draw_figures)
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", fix_dates)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-docstring", prepare_docstring, priority=400)  # before numpydoc
