"""Warnings at the line that called this package, however deep in it they arise."""

from __future__ import annotations

import os
import sys
import warnings

import joblib

# Joblib runs parts of this package for others of its parts.
INSIDE = tuple(os.path.join(os.path.dirname(file), "") for file in (__file__, joblib.__file__))


def warn_caller(message: str, category: type[Warning] = UserWarning, through: tuple[str, ...] = ()) -> None:
    """Warn in the name of the innermost line outside of this package, of joblib, and of the folders ``through``.

    From Python 3.12 on ``skip_file_prefixes`` of :func:`warnings.warn` does the same.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(INSIDE + through):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
