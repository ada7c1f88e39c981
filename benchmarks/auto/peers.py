"""scikit-learn's learners beside ours, tuned by folds of the labelled rows where they have something to tune."""

import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).parents[1] / "defaults"))
from methods import folds, labeled_only, logistic_regression, tuned_svc

WIDTHS = (0.1, 1.0, 10.0)  # of LabelSpreading's RBF kernel, times scikit-learn's "scale"


def peers():
    """Return {name: function of a draw that predicts its unlabelled rows}."""
    return {
        "SVC, tuned": tuned_svc,
        "LogisticRegressionCV": labeled_only(logistic_regression),
        "random forest (scikit-learn)": labeled_only(lambda draw: RandomForestClassifier(300, random_state=0)),
        "HistGradientBoosting": boost,
        "LabelSpreading": spread_labels,
        "SelfTraining(SVC)": self_train,
        "stacking (scikit-learn)": labeled_only(stack),
    }


def dense(X):
    return X.toarray() if hasattr(X, "toarray") else X


def boost(draw):
    X = dense(draw.X)
    model = HistGradientBoostingClassifier(random_state=0).fit(X[draw.labeled], draw.y[draw.labeled])
    return model.predict(X[draw.unlabeled])


def stack(draw):
    base = [
        ("svc", SVC(C=10.0)),
        ("logistic", LogisticRegression(max_iter=2000)),
        ("forest", RandomForestClassifier(300, random_state=0)),
    ]
    return StackingClassifier(base, LogisticRegression(), cv=folds(draw))


def marked(draw):
    """Return classes, and codes with -1 for unlabelled rows."""
    classes, codes = np.unique(draw.y, return_inverse=True)
    y = np.full(len(codes), -1)
    y[draw.labeled] = codes[draw.labeled]
    return classes, y


def self_train(draw):
    classes, y = marked(draw)
    model = SelfTrainingClassifier(SVC(C=10.0, probability=True, random_state=0)).fit(draw.X, y)
    return classes[model.predict(draw.X[draw.unlabeled])]


def spread_labels(draw):
    """Neighbours or RBF kernels, chosen by folds in which held-out rows stay as unlabelled ones."""
    X, (classes, y) = dense(draw.X), marked(draw)
    scale = 1.0 / (X.shape[1] * X.var())
    models = [LabelSpreading(kernel="knn", n_neighbors=k) for k in (5, 7, 15)]
    models += [LabelSpreading(kernel="rbf", gamma=width * scale) for width in WIDTHS]
    known, wrong = draw.labeled, np.zeros(len(models))
    for _, held in folds(draw).split(known, y[known]):
        hidden = y.copy()
        hidden[known[held]] = -1
        for k, model in enumerate(models):
            wrong[k] += np.sum(model.fit(X, hidden).transduction_[known[held]] != y[known[held]])
    best = models[int(wrong.argmin())].fit(X, y)
    return classes[best.transduction_[draw.unlabeled]]
