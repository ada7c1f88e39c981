"""What is compared: every learner of kernelweave with nothing set, and scikit-learn's, tuned by folds."""

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC, SVR

import kernelweave

CLASSIFIERS = ("SSMK", "LapSVM", "TSVM", "TSVMMKL", "RKDA", "LearnedKernel", "Harmonic", "MKL", "CGBoost")
REGRESSORS = ("SSMK", "LearnedKernel", "Harmonic", "MKL", "CGBoost")
SUPERVISED = ("CGBoost",)  # given the labelled rows only
COSTS, WIDTHS = (0.1, 1.0, 10.0, 100.0), (0.25, 1.0, 4.0)  # of the tuned machines; widths times scikit-learn's "scale"


def classifiers():
    """Return {name: function of a draw that predicts its unlabelled rows}."""
    return {name: partly_labeled(getattr(kernelweave, f"{name}Classifier")) for name in CLASSIFIERS} | {
        "SVC, tuned": tuned_svc,
        "SVC, C=10": labeled_only(lambda draw: SVC(C=10.0)),
        "LogisticRegressionCV": labeled_only(logistic_regression),
        "random forest": labeled_only(lambda draw: RandomForestClassifier(300, random_state=0)),
        "LabelSpreading, knn": spread_labels,
    }


def regressors():
    """Return {name: function of a draw that predicts its unlabelled rows}."""
    return {name: partly_labeled(getattr(kernelweave, f"{name}Regressor")) for name in REGRESSORS} | {
        "SVR, tuned": tuned_svr,
        "RidgeCV": labeled_only(lambda draw: RidgeCV(np.logspace(-3, 3, 13))),
        "random forest": labeled_only(lambda draw: RandomForestRegressor(300, random_state=0)),
    }


def partly_labeled(make):
    """A learner of kernelweave: it is given all rows, and labels where there are some, if it takes unlabelled rows."""

    def predict(draw):
        model = make(random_state=0) if "random_state" in make().get_params() else make()
        if make.__name__.startswith(SUPERVISED):
            return model.fit(draw.X[draw.labeled], draw.y[draw.labeled]).predict(draw.X[draw.unlabeled])
        y = np.full(len(draw.y), None, dtype=object)
        y[draw.labeled] = draw.y[draw.labeled]
        y = y.astype(float) if make.__name__.endswith("Regressor") else y
        return model.fit(draw.X, y).transduction_[draw.unlabeled]

    return predict


def labeled_only(make):
    def predict(draw):
        return make(draw).fit(draw.X[draw.labeled], draw.y[draw.labeled]).predict(draw.X[draw.unlabeled])

    return predict


def folds(draw):
    """Return folds that every class survives, as far as it has labels enough."""
    return StratifiedKFold(int(np.clip(np.unique(draw.y[draw.labeled], return_counts=True)[1].min(), 2, 5)))


def tuned_svc(draw):
    return tuned_machine(draw, SVC, folds(draw))


def tuned_svr(draw):
    y = draw.y[draw.labeled]
    center, unit = y.mean(), y.std()
    scaled = type(draw)(draw.X, (draw.y - center) / unit, draw.labeled)
    return center + unit * tuned_machine(scaled, SVR, KFold(5))


def tuned_machine(draw, make, cv):
    X = draw.X[draw.labeled]
    variance = (X.multiply(X)).mean() - X.mean() ** 2 if hasattr(X, "multiply") else X.var()
    grid = [{"C": COSTS, "gamma": [width / (X.shape[1] * variance) for width in WIDTHS]},
            {"C": COSTS, "kernel": ["linear"]}]  # fmt: skip
    search = GridSearchCV(make(), grid, cv=cv).fit(X, draw.y[draw.labeled])
    return search.predict(draw.X[draw.unlabeled])


def logistic_regression(draw):
    return LogisticRegressionCV(
        Cs=np.logspace(-3, 2, 6), cv=folds(draw), max_iter=2000, l1_ratios=(0.0,), use_legacy_attributes=False
    )


def spread_labels(draw):
    X = draw.X.toarray() if hasattr(draw.X, "toarray") else draw.X
    classes, codes = np.unique(draw.y, return_inverse=True)
    marked = np.full(len(codes), -1)
    marked[draw.labeled] = codes[draw.labeled]
    model = LabelSpreading(kernel="knn", n_neighbors=7).fit(X, marked)
    return classes[model.transduction_[draw.unlabeled]]
