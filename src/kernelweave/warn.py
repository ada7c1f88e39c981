"""Warnings at the line that called this package, however deep in it they arise."""

from __future__ import annotations

import os
import sys
import warnings

import joblib
import sklearn

# Joblib, and scikit-learn's callbacks, run parts of this package for others of its parts.
FOLDERS = (
    os.path.dirname(__file__),
    os.path.dirname(joblib.__file__),
    os.path.join(os.path.dirname(sklearn.__file__), "callback"),
)
INSIDE = tuple(os.path.join(folder, "") for folder in FOLDERS)


def warn_caller(message: str, category: type[Warning] = UserWarning, through: tuple[str, ...] = ()) -> None:
    """Warn in the name of the innermost line outside of this package and of what calls parts of it.

    ``through`` are further folders that are passed by.
    From Python 3.12 on ``skip_file_prefixes`` of :func:`warnings.warn` does the same.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(INSIDE + through):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
