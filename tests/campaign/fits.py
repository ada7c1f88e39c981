"""A random fit ends in a model whose certificate and status are honest, or in one of our own sentences."""

import linecache
import signal
import traceback
import warnings

import numpy as np
from campaign.draws import SLOW, draw_fit
from campaign.optimum import compare
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from kernelweave.estimators.shared.formulation import TOLERANCES
from kernelweave.solvers.result import Status

SEARCHES = 5.0  # times as long as a fit, that a search of many may take
ONE_IN = 10  # cases, whose objective is compared with a slow oracle
KINDS = ("duality gap", "stationarity", "KKT residual")
ROUNDING = 1e-11  # of the largest value, which a sum of some may be off
SAY_NOTHING = (Status.VALIDATION, Status.CALLBACK)  # what the user asked for
CHECKS = (
    "utils/validation.py",
    "utils/multiclass.py",
    "model_selection/_split.py",
)  # of scikit-learn, which say what is wrong
OWN = ("/kernelweave/", *(f"/sklearn/{file}" for file in CHECKS))


def run(number):
    """One case; every tenth is an ordinary problem whose optimum is known."""
    rng = np.random.default_rng([1, number])
    if number % ONE_IN == 0:
        return compare(rng)
    fit = draw_fit(rng)
    about = {"about": str(fit)}
    if type(fit.model).__name__ in SLOW:
        allow_more_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit.model.fit(fit.X, fit.y, **({} if fit.weight is None else {"sample_weight": fit.weight}))
            complaints = list(judge(fit, caught))
        except Exception as error:  # noqa: BLE001 - which one it is, is the question
            return about | refusal(error)
        try:
            complaints += judge_outputs(fit)
        except Exception as error:  # noqa: BLE001 - likewise
            return about | {"also": ["fitted"]} | refusal(error, "refused to predict")
    complaints += [
        f"numpy warns: {w.message} ({w.filename.rpartition('/src/')[2]}:{w.lineno})" for w in caught if is_noise(w)
    ][:1]
    if not fit.is_sound:
        complaints.append("rows that are not finite were learned from")
    is_whole = not hasattr(fit.model, "status_") or fit.model.status_.converged  # calibration has none
    ended = "converged" if is_whole else "limit said"
    return about | {"ended": ended} | ({"defect": "; ".join(complaints)} if complaints else {})


def allow_more_time():
    """Have the time end later, if the runner has set an end: a search is up to a hundred fits."""
    left, _ = signal.getitimer(signal.ITIMER_PROF)
    if left > 0:
        signal.setitimer(signal.ITIMER_PROF, SEARCHES * left)


def refusal(error, ended="refused"):
    """How an error ends a case: well, if it is a sentence that this package raised itself, or a check of the rows."""
    trace = traceback.extract_tb(error.__traceback__)
    last = trace[-1]
    is_own = any(part in last.filename for part in OWN) and "raise" in linecache.getline(last.filename, last.lineno)
    text = str(error)
    if isinstance(error, ValueError | TypeError) and is_own and text and type(error).__name__ != "LinAlgError":
        return {"ended": ended, "said": text[:200]}
    return {"ended": "failed", "defect": "".join(traceback.format_exception(error))[-4000:]}


def is_noise(warning):
    """Whether a warning is one of numpy's about a computation."""
    return issubclass(warning.category, RuntimeWarning) and "kernelweave" in warning.filename


def judge(fit, caught):
    """What is wrong with the certificate and the status of a model."""
    if not hasattr(fit.model, "certificate_"):  # calibration, of a model that is judged elsewhere
        return
    model, certificate = fit.model, fit.model.certificate_
    # Before its second step nothing is known of where a descent from above is; the status says that it was stopped.
    is_unknown = certificate.gap == np.inf and certificate.kind == "stationarity" and not model.status_.converged
    if not np.isfinite(model.objective_).all() or not (np.isfinite(certificate.gap) or is_unknown):
        yield f"objective {model.objective_}, gap {certificate.gap}"
    if certificate.kind not in KINDS or certificate.gap < 0:
        yield f"certificate {certificate}"
    tol = getattr(model, "tol", 1e-6) or TOLERANCES[getattr(model, "penalty", "l1")]
    is_relative = certificate.kind != "KKT residual"
    if model.status_.converged and is_relative and certificate.relative > tol and not is_rounding(fit, certificate):
        yield f"converged at {certificate.relative:.3g} of the objective {certificate.objective:.3g}, tol {tol:.3g}"
    said = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    if not model.status_.converged and model.status_ not in SAY_NOTHING and not said:
        yield f"{model.status_} without a warning"


def is_rounding(fit, certificate):
    """Whether a gap is nothing against the values of the kernels, by which a chosen margin is measured; it may be 0."""
    if getattr(fit.model, "nu", None) is None and certificate.objective != 0.0:
        return False
    bound = fit.model.library_.bind(fit.X, np.random.default_rng(0), fit.weight)
    largest = np.abs(bound.columns(np.arange(bound.n_columns))).max()
    is_square = getattr(fit.model, "penalty", None) == "l2"  # the gap is a sum of squares of values
    return certificate.gap <= ROUNDING * (largest**2 if is_square else largest)


def judge_outputs(fit):
    """What is wrong with what a model holds and gives out, at the rows of the fit and at others."""
    model = fit.model
    for name, value in vars(model).items():
        if isinstance(value, float | np.ndarray) and np.asarray(value).dtype.kind == "f" and np.isnan(value).any():
            yield f"{name} holds NaN"
    for X in (fit.X, fit.new):
        for name in ("decision_function", "predict_proba", "transform", "predict", "score_samples"):
            if hasattr(model, name):
                yield from check_values(name, getattr(model, name)(X), model)
    if is_classifier(model) and hasattr(model, "transduction_"):
        given = np.array([label is not None and label == label and label != -1 for label in fit.y])
        # A row of no weight takes no part, so its label need not be kept.
        given &= True if fit.weight is None else np.asarray(fit.weight) > 0
        if any(a != b for a, b in zip(model.transduction_[given], np.asarray(fit.y, dtype=object)[given], strict=True)):
            yield "a given label is changed"


def check_values(name, values, model):
    """Predictions are classes of the fit, or finite numbers; probabilities sum to one."""
    values = np.asarray(values)
    if name == "predict" and is_classifier(model):
        if not np.isin(values, model.classes_).all():
            yield f"predict gives {set(values.tolist()) - set(model.classes_.tolist())}"
    elif not np.isfinite(values).all():
        yield f"{name} gives {(~np.isfinite(values)).sum()} of {values.size} values that are not finite"
    elif name == "predict_proba" and (np.abs(values.sum(axis=1) - 1).max() > 1e-9 or values.min() < 0):
        yield "probabilities do not sum to one"
