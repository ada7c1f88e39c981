"""Choosing and calibrating models when most rows have no label (:mod:`kernelweave.labels` says which).

``splits`` splits the labelled rows only, ``scorers`` leaves unlabelled rows out of a score, ``out_of_fold`` predicts
labelled rows by models that have not seen their labels, ``calibration`` turns decision values into probabilities, with
the mathematics of ``scaling``. From out-of-fold probabilities ``suspects`` ranks labels that may be wrong and
``conformal`` makes sets that hold the truth; ``label_next`` chooses rows worth labelling. ``semi_supervised`` says
which estimators take unlabelled rows, and ``guards`` notices where scikit-learn takes these for a class.
"""

from .calibration import SemiSupervisedCalibration
from .out_of_fold import OutOfFold, out_of_fold
from .scorers import labeled_scorer
from .splits import SemiSupervisedSplit

__all__ = ["SemiSupervisedSplit", "SemiSupervisedCalibration", "labeled_scorer", "OutOfFold", "out_of_fold"]
