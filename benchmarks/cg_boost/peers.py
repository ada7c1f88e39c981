"""The peers: scikit-learn's SVC, and Nystroem features with LinearSVC, on the same kernels as ours."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics import euclidean_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from sklearn.svm import SVC, LinearSVC

SVC_COSTS = (1.0, 3.0, 10.0, 30.0)
LINEAR_COSTS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
MULTIPLES = (1.0, 2.0, 4.0)  # of one over the mean squared distance


def cos5(A, B):
    return (A @ B.T) ** 5


def kernels(X):
    """Give (name, rows before the kernel, parameters of the kernel)."""
    for place, before in (("", FunctionTransformer()), (" on unit rows", Normalizer())):
        distance = euclidean_distances(before.fit_transform(X), squared=True).mean()
        for multiple in MULTIPLES:
            yield f"R{multiple:g}{place}", before, {"kernel": "rbf", "gamma": multiple / distance}
    yield "cos5", Normalizer(), {"kernel": "poly", "degree": 5, "gamma": 1.0, "coef0": 0.0}


def svc_candidates(train, kernel):
    """Give (name, model, number of support vectors) over kernels of a kind and C."""
    wanted = {"rbf": "rbf", "cos5": "poly"}[kernel]
    for name, before, parameters in kernels(train[0]):
        if parameters["kernel"] == wanted:
            for C in SVC_COSTS:
                model = make_pipeline(before, SVC(C=C, cache_size=1000, **parameters)).fit(*train)
                yield f"{name}, C={C:g}", model, int(model[-1].n_support_.sum())


def nystroem_candidates(train, landmarks, n_components, seed):
    """Give (name, model, number of landmarks) over kernels and C."""
    for name, before, parameters in kernels(train[0]):
        if landmarks == "random":
            features = Nystroem(n_components=n_components, random_state=seed, **parameters)
        else:
            features = KMeansNystroem(n_components, seed, parameters)
        Z = make_pipeline(before, features).fit(train[0])
        columns = Z.transform(train[0])
        for C in LINEAR_COSTS:
            last = LinearSVC(C=C).fit(columns, train[1])
            yield f"{name}, C={C:g}", Fitted(Z, last), n_components


class KMeansNystroem(TransformerMixin, BaseEstimator):
    """Nystroem features whose landmarks are k-means centres."""

    def __init__(self, n_components, random_state, parameters):
        self.n_components, self.random_state, self.parameters = n_components, random_state, parameters

    def fit(self, X, y=None):
        centers = KMeans(self.n_components, n_init=3, random_state=self.random_state).fit(X).cluster_centers_
        if self.parameters["kernel"] == "poly":
            centers = Normalizer().fit_transform(centers)
        self.map_ = Nystroem(n_components=self.n_components, random_state=0, **self.parameters).fit(centers)
        return self

    def transform(self, X):
        return self.map_.transform(X)


class Fitted(ClassifierMixin, BaseEstimator):
    """A fitted classifier on the features of a fitted map."""

    def __init__(self, features, classifier):
        self.features, self.classifier = features, classifier

    def predict(self, X):
        return self.classifier.predict(np.ascontiguousarray(self.features.transform(X)))
