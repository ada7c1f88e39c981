"""Scores that leave out the unlabelled rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import get_config, utils
from sklearn.base import is_regressor
from sklearn.metrics import check_scoring, get_scorer, make_scorer
from sklearn.utils import _safe_indexing as take  # in scikit-learn's public reference, in spite of its name
from sklearn.utils.metadata_routing import MetadataRequest, MetadataRouter, MethodMapping, get_routing_for_object

from ..labels import labeled_values
from ..warn import warn_caller

# Weights that scikit-learn routes to a scorer without scoring arrive by this name, so that they can be told from those
# of a caller who names them: these are meant, whatever the estimator requests.
ROUTED_WEIGHT = "routed_sample_weight"


def labeled_scorer(scoring: str | Callable[..., Any] | None = None, *, unlabeled: Any = "auto") -> Any:
    """A scorer that leaves out the unlabelled rows before it scores.

    Parameters
    ----------
    scoring : str, callable or None, default=None
        A scorer name of scikit-learn; a scorer ``(estimator, X, y)``; a metric whose first argument is called
        ``y_true``, for what `predict` returns; or None for the estimator's own ``score``.
    unlabeled : "auto", None or marker, default="auto"
        What marks an unlabelled row. "auto": NaN, None and NA; and -1, if the fitted classifier does not have
        it among its `classes_`.

    Returns
    -------
    callable
        A scorer ``(estimator, X, y, **params)`` for ``scoring=`` in cross_val_score, GridSearchCV and the like. Of
        ``params``, sample_weight and whatever else has one entry a row is cut to the labelled rows.

    See Also
    --------
    SemiSupervisedSplit : Cross-validation whose test parts hold labelled rows only.
    sklearn.metrics.make_scorer : Makes a scorer of a metric.

    Notes
    -----
    With metadata routing, the scorer takes what `scoring` requests; ``set_score_request`` replaces this, and leaves
    `scoring` as it is. With ``scoring=None``, sample_weight goes where the estimator's own ``set_score_request``
    says. Other names, and weights by another name, have to be requested of the scorer: scikit-learn asks it before
    it knows the estimator.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from kernelweave.model_selection import labeled_scorer
    >>> model = DummyClassifier(strategy="constant", constant=1).fit([[0], [0]], [0, 1])
    >>> labeled_scorer("accuracy")(model, [[0], [0], [0]], [1, -1, -1])
    1.0
    """
    if scoring is not None and not isinstance(scoring, str) and not callable(scoring):
        raise TypeError(
            f"scoring must be a scorer name, a scorer, a metric or None, got {scoring!r}. For several scores "
            "pass a dictionary to scikit-learn: scoring={'name': labeled_scorer(...), ...}."
        )
    if isinstance(scoring, str):
        scoring = get_scorer(scoring)
    elif scoring is not None and next(iter(inspect.signature(scoring).parameters), None) == "y_true":
        scoring = make_scorer(scoring)
    return _LabeledScorer(scoring, unlabeled)


def is_labeled_scorer(scorer: Any) -> bool:
    """Whether :func:`labeled_scorer` made the scorer."""
    return isinstance(scorer, _LabeledScorer)


class _LabeledScorer:
    """What :func:`labeled_scorer` returns; a class, so that it can be pickled and takes routed metadata."""

    def __init__(self, scorer: Any, unlabeled: Any) -> None:
        self.scorer = scorer
        self.unlabeled = unlabeled
        self.request: MetadataRequest | None = None  # what set_score_request asked for

    def __call__(self, estimator: Any, X: Any, y: Any, **params: Any) -> Any:
        classes = getattr(estimator, "classes_", None)
        regression = classes is None and is_regressor(estimator)
        rows, values = labeled_values(y, unlabeled=self.unlabeled, classes=classes, regression=regression)
        if len(rows) == 0:
            raise ValueError(
                f"There is no labelled row to score: all {len(y)} rows are unlabelled. Score rows whose labels "
                "are known; the test parts of SemiSupervisedSplit hold such rows only."
            )
        if self.scorer is None and self.request is None and get_config()["enable_metadata_routing"]:
            params = self._select_requested(estimator, params)
        for name, value in params.items():
            if np.shape(value)[:1] == (len(y),):
                params[name] = take(value, rows)
        scorer = check_scoring(estimator, scoring=self.scorer)
        return scorer(estimator, take(utils.indexable(X)[0], rows), values, **params)

    def __repr__(self) -> str:
        return f"labeled_scorer({self.scorer!r}, unlabeled={self.unlabeled!r})"

    def get_metadata_routing(self) -> Any:
        if self.scorer is not None or self.request is not None:
            return get_routing_for_object(self.scorer if self.request is None else self.request)
        request = MetadataRequest(owner=self)
        request.score.add_request(param=ROUTED_WEIGHT, alias="sample_weight")
        return request

    def set_score_request(self, **requests: Any) -> _LabeledScorer:
        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "set_score_request of labeled_scorer was called without metadata routing. Enable it first, with "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        self.request = MetadataRequest(owner=self)
        for param, alias in requests.items():
            self.request.score.add_request(param=param, alias=alias)
        return self

    def _select_requested(self, estimator: Any, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters, with routed weights only where the estimator's own score asks for them."""
        own = getattr(get_routing_for_object(estimator), "score", None)  # a pipeline has none: its steps have
        for name, alias in ({} if own is None else own.requests).items():
            renamed = isinstance(alias, str) and alias.isidentifier()  # scikit-learn's own marks are none
            if name not in params and (renamed or (alias is True and name != "sample_weight")):
                warn_caller(
                    f"{type(estimator).__name__}.score requests {name}={alias!r}, which labeled_scorer() cannot see; "
                    f"the score is computed without it. Call labeled_scorer().set_score_request({name}={alias!r})."
                )
        if ROUTED_WEIGHT not in params:
            return params
        mapping = MethodMapping().add(caller="score", callee="score")
        router = MetadataRouter(owner=self).add(estimator=estimator, method_mapping=mapping)
        weight = {"sample_weight": params.pop(ROUTED_WEIGHT)}
        return params | router.route_params(caller="score", params=weight)["estimator"]["score"]
