"""Optimality conditions recomputed from the problem alone, independently of any solver."""

import numpy as np


def lp_residuals(K, y, cost, coef, intercept, signed_dual, *, target=1.0, positive=False, offset="free"):
    """Residuals of the optimality conditions of SSMK (9)/(10) and CG-Boost (4)/(5), each zero at an optimum.

    K has the labelled rows and all columns of the problem (scaled, if it has column scales); coef belongs to them. The
    margins y f >= target have one row a point. The offset is "free", "penalized" or None.
    """
    f = K @ coef + intercept
    missing = target - y * f
    slack = np.maximum(0.0, missing)
    dual = y * signed_dual
    scores = K.T @ signed_dual
    active = np.abs(coef) > 1e-9 * max(1.0, np.abs(coef).max(initial=0.0))
    primal = np.abs(coef).sum() + cost @ slack + (abs(intercept) if offset == "penalized" else 0.0)
    return {
        "sign of the coefficients": max(0.0, -coef.min(initial=0.0)) if positive else 0.0,
        "dual sign": max(0.0, -dual.min()),
        "dual box": max(0.0, (dual / cost).max() - 1.0),
        "dual feasibility": max(0.0, (scores if positive else np.abs(scores)).max() - 1.0),
        "active columns are tight": np.abs(scores[active] - np.sign(coef[active])).max(initial=0.0),
        **offset_residuals(intercept, signed_dual, offset),
        "violated margins cost all": ((1.0 - dual / cost) * slack).max(),
        "slack margins cost nothing": (dual / cost * np.maximum(0.0, -missing)).max(),
        "no gap": abs(primal - (target * dual).sum()) / max(primal, np.finfo(float).tiny),
    }


def offset_residuals(intercept, signed_dual, offset):
    """Residuals of the conditions on the offset and on the sum of the signed duals."""
    imbalance = signed_dual.sum()
    if offset == "free":
        return {"balance": abs(imbalance) / max(np.abs(signed_dual).sum(), np.finfo(float).tiny)}
    if offset == "penalized":
        active = abs(intercept) > 1e-9
        return {
            "balance": max(0.0, abs(imbalance) - 1.0),
            "an active offset is tight": abs(imbalance - np.sign(intercept)) if active else 0.0,
        }
    return {"no offset": abs(intercept)}


def assert_lp_optimal(*problem, tol=1e-6, **form):
    """Fail with the name of the first condition that does not hold."""
    for name, residual in lp_residuals(*problem, **form).items():
        assert residual <= tol, f"{name}: {residual:.2e}"
