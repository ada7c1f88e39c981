"""Optimality conditions recomputed from the problem alone, independently of any solver."""

import numpy as np


def lp_residuals(K, y, cost, coef, intercept, signed_dual):
    """Residuals of the optimality conditions of SSMK (9)/(10), each zero at an optimum.

    K has the labelled rows and all columns of the problem (scaled, if it has column scales); coef belongs to them.
    """
    f = K @ coef + intercept
    slack = np.maximum(0.0, 1.0 - y * f)
    dual = y * signed_dual
    scores = K.T @ signed_dual
    active = np.abs(coef) > 1e-9 * max(1.0, np.abs(coef).max(initial=0.0))
    primal = np.abs(coef).sum() + cost @ slack
    return {
        "dual sign": max(0.0, -dual.min()),
        "dual box": max(0.0, (dual / cost).max() - 1.0),
        "balance": abs(signed_dual.sum()) / dual.sum(),
        "dual feasibility": max(0.0, np.abs(scores).max() - 1.0),
        "active columns are tight": np.abs(scores[active] - np.sign(coef[active])).max(initial=0.0),
        "violated margins cost all": ((1.0 - dual / cost) * slack).max(),
        "slack margins cost nothing": (dual / cost * np.maximum(0.0, y * f - 1.0)).max(),
        "no gap": abs(primal - dual.sum()) / primal,
    }


def assert_lp_optimal(*problem, tol=1e-6):
    """Fail with the name of the first condition that does not hold."""
    for name, residual in lp_residuals(*problem).items():
        assert residual <= tol, f"{name}: {residual:.2e}"
