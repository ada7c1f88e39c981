"""A random problem of ordinary size whose optimum a slow oracle knows: the certificate must cover the difference."""

import warnings

import numpy as np
from oracles import reference
from sklearn.exceptions import ConvergenceWarning

import kernelweave as kw
from kernelweave.kernels.graph import EDGE_WEIGHTS, neighbor_graph
from kernelweave.solvers.margin import classification_rows, one_class_rows, regression_rows

ORACLE = 1e-6  # relative accuracy of the conic and of the linear oracle
SMALLEST = 1e-2  # of an optimum that they find so accurately: they stop at a gap of 1e-8 to 1e-11 where it is 0
ANY = [kw.RBF(0.5), kw.RBF(3.0), kw.Linear(), kw.Polynomial(3), kw.Sigmoid(0.3, 0.1)]  # the last one is indefinite
DEFINITE = ANY[:4]


def compare(rng):
    """One case."""
    problem, (other,) = PROBLEMS[rng.integers(len(PROBLEMS))], rng.spawn(1)
    model, arguments, bounds = (manifold_machine if other.random() < 0.1 else problem)(rng)
    about = {"about": " ".join(repr(model).split()), "also": ["compared with an oracle"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(*arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            complaints = list(bounds(model))
    except RuntimeError as error:
        return {"about": about["about"], "ended": "oracle gave up", "said": str(error)}
    ended = "converged" if model.status_.converged else "limit said"
    return about | {"ended": ended} | ({"defect": "; ".join(complaints)} if complaints else {})


def complain(model, best, above=True):
    """The optimum is between objective less gap and objective; ``above``: the objective is no less than it, too."""
    objective, gap = float(np.sum(model.objective_)), model.certificate_.gap
    slack = ORACLE * max(abs(best), SMALLEST)
    if objective - gap > best + slack:
        yield f"certified {objective - gap:.10g}, but {best:.10g} can be had"
    if above and objective < best - slack:
        yield f"objective {objective:.10g} is below the optimum {best:.10g}"


def draw_kernels(rng, kinds):
    return [kinds[k] for k in rng.choice(len(kinds), size=rng.integers(1, 4), replace=False)]


def draw_rows(rng):
    """Rows, a number that depends on them, and weights or None."""
    n = int(rng.integers(6, 22))
    X = rng.normal(size=(n, 3))
    if rng.random() < 0.3:
        X[rng.integers(n, size=n // 3)] = X[0]
    numbers = np.sin(X[:, 0]) + X[:, 1] ** 2 / 2 + 0.2 * rng.normal(size=n)
    return X, numbers, rng.uniform(0.2, 2.0, n) if rng.random() < 0.4 else np.ones(n)


def columns_of(kernels, X, weight):
    bound = kw.KernelLibrary(kernels).bind(X, np.random.default_rng(0), weight)
    return bound.columns(np.arange(bound.n_columns))


def mixture(rng):
    """SSMK and CG-Boost in all their forms: 1-norm, 2-norm, norm of the spaces; costs, chosen margins, numbers."""
    X, numbers, weight = draw_rows(rng)
    signs = np.where(numbers > np.median(numbers), 1.0, -1.0)
    penalty = ["l1", "l1", "l2", "rkhs"][rng.integers(4)]
    kernels = draw_kernels(rng, DEFINITE[:3] if penalty == "rkhs" else ANY)
    C, nu, epsilon = 10.0 ** rng.uniform(-2, 2), rng.uniform(0.2, 0.8), rng.uniform(0.0, 0.3)
    form = {"intercept": ["free", "penalized", None][rng.integers(3)]}
    if penalty != "rkhs":
        form["positive"] = bool(rng.integers(2))
    options = {"column_scale": None, "tol": 10.0 ** rng.uniform(-8, -1)}
    boosted = options | form | {"penalty": penalty}
    task = rng.integers(3 if penalty == "rkhs" else 5)
    chooses = task in (3, 4)
    if task == 0:
        model, y = kw.CGBoostClassifier(kernels, C=C, **boosted), signs
        rows = classification_rows(signs, C * weight)
    elif task == 1:
        model, y = kw.CGBoostRegressor(kernels, C=C, epsilon=epsilon, **boosted), numbers
        rows = regression_rows(numbers, epsilon, C * weight)
    elif task == 2:  # some rows are centres only
        labels = (signs, None) if rng.spawn(1)[0].random() < 0.5 else (numbers, epsilon)
        return unlabelled_mixture(rng, X, labels, weight, draw_kernels(rng, ANY), C, options)
    elif task == 3:
        model, y = kw.CGBoostClassifier(kernels, nu=nu / 2, **boosted), signs
        rows = classification_rows(signs, np.minimum(1.0, weight / (nu / 2 * weight.sum())))
    else:
        form["intercept"] = boosted["intercept"] = None
        model, y = kw.CGBoostOneClass(kernels, nu=nu, **boosted), None
        rows = one_class_rows(len(X), np.minimum(1.0, weight / (nu * weight.sum())))
    K = columns_of(kernels, X, weight)

    def bounds(model):
        if penalty == "rkhs":
            grams = np.hsplit(K, len(kernels))
            best = reference.full_rkhs(grams, grams, rows, **form).objective
        else:
            name = {"l1": "full_lp", "l2": "full_qp"}[penalty].replace("full_", "full_nu_" if chooses else "full_")
            best = getattr(reference, name)(K, rows, **form).objective
        yield from complain(model, best)

    return model, (X, y, weight), bounds


def unlabelled_mixture(rng, X, labels, weight, kernels, C, options):
    """SSMK with rows that have no label; ``labels`` are signs and None, or numbers and the width of the tube."""
    y, epsilon = labels
    known = rng.random(len(X)) < 0.6
    known[[np.argmax(y), np.argmin(y)]] = True
    K, cost = columns_of(kernels, X, weight)[known], (C * weight)[known]
    if epsilon is None:
        model, rows = kw.SSMKClassifier(kernels, C=C, **options), classification_rows(y[known], cost)
    else:
        model = kw.SSMKRegressor(kernels, C=C, epsilon=epsilon, centers="all", **options)
        rows = regression_rows(y[known], epsilon, cost)
    y = np.where(known, y, np.nan)
    return model, (X, y, weight), lambda model: complain(model, reference.full_lp(K, rows).objective)


def machine(rng):
    """Machines with learned or equal weights: no weights are better than certified, and J(w) is what it is."""
    X, numbers, weight = draw_rows(rng)
    kernels = draw_kernels(rng, DEFINITE[:3])
    C, epsilon = 10.0 ** rng.uniform(-2, 2), rng.uniform(0.0, 0.3)
    options = {
        "C": C,
        "tol": 10.0 ** rng.uniform(-8, -2),
        "weighting": "learned",
        "solver": ["newton", "projected_gradient", "reduced_gradient", "group_lasso"][rng.integers(4)],
    }
    norm = float(rng.spawn(1)[0].choice([1.0, 1.0, 1.5, 3.0]))
    if options["solver"] != "reduced_gradient":  # which is for the norm 1
        options["norm"] = norm
    if rng.integers(2):
        model, y = kw.MKLRegressor(kernels, epsilon=epsilon, **options), numbers
        rows = regression_rows(y, epsilon, C * weight)
    else:
        model, y = kw.MKLClassifier(kernels, **options), np.where(numbers > np.median(numbers), 1.0, -1.0)
        rows = classification_rows(y, C * weight)
    share = weight / weight.sum()
    grams = [
        K / (share @ K.diagonal() - share @ K @ share) for K in np.hsplit(columns_of(kernels, X, weight), len(kernels))
    ]

    def bounds(model):
        def value(weights):
            K = sum(w * G for w, G in zip(weights, grams, strict=True))
            return reference.full_rkhs([K], [K], rows).objective

        yield from complain(model, value(model.weights_))
        equal = np.full(len(grams), len(grams) ** (-1.0 / model.norm))
        for weights in [equal, *np.eye(len(grams))]:
            yield from complain(model, value(weights), above=False)

    return model, (X, y, weight), bounds


def manifold_machine(rng):
    """LapSVM: the machine on the deformed kernel."""
    X, numbers, _ = draw_rows(rng)
    X = X + 1e-3 * rng.normal(size=X.shape)  # neighbours of equal rows are any of them
    known = rng.random(len(X)) < 0.6
    known[[np.argmax(numbers), np.argmin(numbers)]] = True
    signs = np.where(numbers > np.median(numbers), 1.0, -1.0)
    graph = {"n_neighbors": int(rng.integers(1, 8)), "degree": int(rng.integers(1, 3)), "metric": "euclidean"}
    graph["ratio"] = float(10.0 ** rng.uniform(-1, 2))
    C, base = 10.0 ** rng.uniform(-2, 2), DEFINITE[rng.integers(3)]
    model = kw.LapSVMClassifier(base, C=C, tol=10.0 ** rng.uniform(-8, -2), **graph)
    K = columns_of([kw.ManifoldKernel(base, **graph)], X, None)
    K = (K / (K.diagonal().mean() - K.mean()))[np.ix_(known, known)]
    rows = classification_rows(signs[known], np.full(known.sum(), C))

    def bounds(model):
        yield from complain(model, reference.full_rkhs([K], [K], rows).objective)

    return model, (X, np.where(known, signs, np.nan)), bounds


def discriminant(rng):
    """Discriminants with learned weights, and learned or given ridge, in the exact and in the joint form."""
    X, numbers, _ = draw_rows(rng)
    X = X + 1e-3 * rng.normal(size=X.shape)
    n_classes = int(rng.integers(2, 4))
    codes = np.argsort(np.argsort(numbers)) * n_classes // len(X)
    kernels = draw_kernels(rng, DEFINITE)
    ridge = None if rng.integers(2) else float(10.0 ** rng.uniform(-3, 0))
    joint = bool(rng.integers(2))
    model = kw.RKDAClassifier(
        kernels, ridge="learned" if ridge is None else ridge, formulation="joint" if joint else "exact"
    )
    shares = np.bincount(codes) / len(codes)
    H = (np.eye(n_classes)[codes] - shares) / np.sqrt(shares)
    matrices = [_unit(K) for K in np.hsplit(columns_of(kernels, X, None), len(kernels))]

    def bounds(model):
        program = reference.joint_discriminant_sdp if joint else reference.discriminant_sdp
        best = program(matrices, H, ridge).objective / (1.0 if ridge is None else ridge)
        yield from complain(model, best)

    return model, (X, codes), bounds


def _unit(K):
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    return 0.5 * (K + K.T) / np.trace(K)


def harmonic(rng):
    """Harmonic functions against the linear system."""
    X, numbers, _ = draw_rows(rng)
    n, n_known = len(X), int(rng.integers(1, len(X)))
    n_neighbors, weights = int(rng.integers(1, n)), rng.choice(EDGE_WEIGHTS)
    model = kw.HarmonicRegressor(n_neighbors, metric="euclidean", edge_weights=weights)
    W = neighbor_graph(X, n_neighbors, edge_weights=weights).toarray()
    L = np.diag(W.sum(axis=1)) - W

    def bounds(model):
        if np.linalg.cond(L[n_known:, n_known:]) > 1e8:  # parts without a label, which have no value
            return
        expected = np.linalg.solve(L[n_known:, n_known:], W[n_known:, :n_known] @ numbers[:n_known])
        error = np.abs(model.transduction_[n_known:] - expected).max()
        if error > (model.certificate_.gap + 1e-7) * max(np.ptp(numbers[:n_known]), np.abs(numbers).max()):
            yield f"values are {error:.3g} from those of the linear system; {model.certificate_}"

    return model, (X, np.where(np.arange(n) < n_known, numbers, np.nan)), bounds


PROBLEMS = (mixture, mixture, mixture, machine, discriminant, harmonic)
