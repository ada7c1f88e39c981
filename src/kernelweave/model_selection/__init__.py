"""Choosing and calibrating models when most rows have no label (:mod:`kernelweave.labels` says which).

``splits`` splits the labelled rows only, ``scorers`` leaves unlabelled rows out of a score, ``calibration`` turns
decision values into probabilities, with the mathematics of ``scaling``.
"""

from .calibration import SemiSupervisedCalibration
from .scorers import labeled_scorer
from .splits import SemiSupervisedSplit

__all__ = ["SemiSupervisedSplit", "SemiSupervisedCalibration", "labeled_scorer"]
