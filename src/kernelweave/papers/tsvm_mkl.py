"""TSVM-MKL (Tian, Gasso, Canu, ESANN 2011): Tables 1 and 2."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.model_selection import KFold

from ..datasets import load, make_g50c_like
from ..estimators.lapsvm import LapSVMClassifier
from ..estimators.tsvm import TSVMClassifier, TSVMMKLClassifier
from ..kernels.manifold import manifold_family
from ..kernels.pointwise import RBF, Linear
from .data import Rows, rows
from .definition import Cell, Item, Measure, Paper
from .outside import acceptable, fit_outside, outside

SETS = {
    "G50c": "g50c",
    "Text": "text_macwin",
    "Link": "webkb_link",
    "Page": "webkb_page",
    "Pagelink": "webkb_pagelink",
}
WIDTHS = {"G50c": 17.5, "Text": 2.7}  # sigma of the Gaussian base kernels; linear ones elsewhere
N_LABELED = "50"  # of the original splits
PER_CLASS = {"G50c": (25, 25), "Text": (25, 25)}  # positive and negative labels of generated rows
WEBKB_PER_CLASS = (3, 9)
N_FOLDS, N_FAST_FOLDS = 4, 1  # that are held out in turn
N_FAST = 300  # rows of a fast run

COSTS, ENDS = (10.0, 100.0, 1000.0), (0.0, 0.2, 0.4, 0.6)  # as printed
SUPERVISED_COSTS, RATIOS = (0.1, 1.0, 10.0, 100.0), (1.0, 100.0, 1e4)
N_NEIGHBORS, DEGREE = 50, 5  # of LapSVM
# Those with the least mean error on the unlabelled rows of Table 1; for SVM the same come out on those of Table 2. C of
# the transductive machines is the paper's, for unit trace.
SVM_CHOSEN = {"G50c": 1.0, "Text": 10.0, "Link": 1.0, "Page": 10.0, "Pagelink": 10.0}  # C
LAPSVM_CHOSEN = {  # C, ratio
    "G50c": (1.0, 1e4),
    "Text": (1.0, 1e4),
    "Link": (10.0, 1e4),
    "Page": (10.0, 1e4),
    "Pagelink": (10.0, 100.0),
}
LAPSVM_CHOSEN_INDUCTIVE = {  # for Table 2
    "G50c": (1.0, 100.0),
    "Text": (10.0, 1e4),
    "Link": (1.0, 1e4),
    "Page": (10.0, 1e4),
    "Pagelink": (10.0, 100.0),
}
TSVM_CHOSEN = {  # C, s
    "G50c": (100.0, 0.6),
    "Text": (1000.0, 0.4),
    "Link": (100.0, 0.2),
    "Page": (1000.0, 0.6),
    "Pagelink": (1000.0, 0.6),
}
TSVM_MKL_CHOSEN = {  # C, s
    "G50c": (100.0, 0.4),
    "Text": (1000.0, 0.4),
    "Link": (100.0, 0.4),
    "Page": (100.0, 0.6),
    "Pagelink": (100.0, 0.6),
}
METHODS = ("SVM", "LapSVM", "TSVM", "TSVM-MKL")
TSVM_DEFAULT, DEFAULT, BY_FOLDS = "TSVM, default", "TSVM-MKL, default", "TSVM-MKL, by folds"


def draw(cell: Cell, fast: bool) -> tuple[Rows, np.ndarray]:
    """Return the rows of a set with classes 0 and 1, and which are labelled in the trial: the same for every method."""
    data = rows(SETS[cell.row], fast, partial(generated, cell.row))
    classes = (data.y > 0).astype(int)
    numbers = labeled_rows(cell, classes, data.source)
    kept = np.arange(len(classes))
    if fast:
        others = np.setdiff1d(kept, numbers)
        more = np.random.default_rng(cell.seed("row", "trial")).permutation(others)[: N_FAST - len(numbers)]
        kept = np.sort(np.concatenate([numbers, more]))
    return Rows(data.X[kept], classes[kept], data.source), np.isin(kept, numbers)


def labeled_rows(cell: Cell, classes: np.ndarray, source: str) -> np.ndarray:
    """Return the labelled rows of the trial: the original ones, or so many of each class, by the trial's number.

    Not by :meth:`Cell.seed`: these are the draws on which the settings above were chosen.
    """
    if cell.row in WIDTHS and source == "original":
        splits = load(SETS[cell.row], download_if_missing=False).splits[N_LABELED]
        if cell.trial >= len(splits):
            raise ValueError(
                f"{cell.row} has {len(splits)} original splits, and none for trial {cell.trial}, counted from 0. Ask "
                f"for at most {len(splits)} trials."
            )
        original: np.ndarray = splits[cell.trial][0]
        return original
    rng = np.random.default_rng(cell.trial)
    counts = PER_CLASS.get(cell.row, WEBKB_PER_CLASS)
    parts = [np.flatnonzero(classes == number) for number in (1, 0)]
    return np.concatenate([rng.choice(part, n, replace=False) for part, n in zip(parts, counts, strict=True)])


def generated(row: str, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """Return rows like those of a set: two Gaussians, or pages of words that two topics use more or less often."""
    if row == "G50c":
        made = make_g50c_like(N_FAST, random_state=rng)
        return made.data, made.target
    y = np.where(rng.random(N_FAST) < (0.5 if row in WIDTHS else 0.22), 1, -1)
    often = rng.gamma(0.3, size=(2, 400))
    words = rng.poisson(0.8 * often.mean(axis=0) + 0.2 * often[(y > 0).astype(int)]).astype(float)
    return csr_array(words / np.maximum(np.linalg.norm(words, axis=1, keepdims=True), 1.0)), y


def model(cell: Cell, n_rows: int) -> Any:
    """Return a method of the tables for so many labelled and unlabelled rows."""
    seed = cell.seed("row", "trial")
    if cell.method == TSVM_DEFAULT:
        return TSVMClassifier(random_state=seed)
    if cell.method == DEFAULT:
        return TSVMMKLClassifier(random_state=seed)
    if cell.method == BY_FOLDS:
        return TSVMMKLClassifier(C="cv", ramp="cv", random_state=seed)
    gaussian = cell.row in WIDTHS
    base = RBF(gamma=0.5 / WIDTHS[cell.row] ** 2) if gaussian else Linear()
    metric = "euclidean" if gaussian else "cosine"
    if cell.method == "SVM":
        return LapSVMClassifier(base, C=SVM_CHOSEN[cell.row], ratio=0.0, random_state=seed)
    if cell.method == "LapSVM":
        C, ratio = (LAPSVM_CHOSEN_INDUCTIVE if cell.item == "table 2" else LAPSVM_CHOSEN)[cell.row]
        return LapSVMClassifier(
            base, C=C, n_neighbors=N_NEIGHBORS, degree=DEGREE, ratio=ratio, metric=metric, random_state=seed
        )
    C, s = (TSVM_CHOSEN if cell.method == "TSVM" else TSVM_MKL_CHOSEN)[cell.row]
    options: dict[str, Any] = {"C": C / n_rows, "ramp": s, "class_prior": "labeled", "annealing": False}
    options["random_state"] = seed
    if cell.method == "TSVM":
        return TSVMClassifier(base, **options)
    return TSVMMKLClassifier([base, *manifold_family(base, metric=metric)], norm=1, **options)


def fit(cell: Cell, X: Any, y: np.ndarray, labeled: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return the fitted method, and what it says of the rows that it was given."""
    given = outside(cell.method)
    if given is None:
        fitted = fit_outside(model(cell, len(y)), X, y, labeled)
        return fitted, fitted.transduction_
    fitted = fit_outside(given, X, y, labeled)
    return fitted, fitted.predict(acceptable(fitted, X))


def transductive(cell: Cell, fast: bool) -> dict[str, Any]:
    """Measure the error on the unlabelled rows."""
    data, labeled = draw(cell, fast)
    _, said = fit(cell, data.X, data.y, labeled)
    return {"data": data.source, "unlabelled error": error(said[~labeled], data.y[~labeled])}


def inductive(cell: Cell, fast: bool) -> dict[str, Any]:
    """Measure the errors on unlabelled and on unseen rows, a quarter of those without labels held out in turn."""
    data, labeled = draw(cell, fast)
    others = np.flatnonzero(~labeled)
    errors = []
    for _, part in list(KFold(N_FOLDS, shuffle=True, random_state=0).split(others))[: N_FAST_FOLDS if fast else None]:
        held = others[part]
        train = np.setdiff1d(np.arange(len(data.y)), held)
        unlabeled = ~labeled[train]
        fitted, said = fit(cell, data.X[train], data.y[train], labeled[train])
        unseen = fitted.predict(acceptable(fitted, data.X[held]))
        errors.append((error(said[unlabeled], data.y[train][unlabeled]), error(unseen, data.y[held])))
    means = np.mean(errors, axis=0)
    return {"data": data.source, "unlabelled error": means[0], "test error": means[1]}


def error(said: np.ndarray, y: np.ndarray) -> float:
    """Return the share of rows that are classified wrongly, in %."""
    return 100.0 * float(np.mean(said != y))


DRAWS = (
    "G50c and Text: the ten original splits, with 50 labels. Link, Page and Pagelink: 3 positive and 9 negative "
    "labels, drawn anew for each trial. Base kernels are Gaussian with sigma 17.5 (G50c) and 2.7 (Text), with a graph "
    "of Euclidean neighbours, and linear elsewhere, with cosine neighbours. SVM: the base kernel. LapSVM: its "
    "deformation with 50 neighbours and degree 5. TSVM: the base kernel, C* = C; unlabelled "
    "rows have the shares of the labelled ones. TSVM-MKL: the base kernel and four "
    "deformations, with 20 or 50 neighbours, degree 2 or 5 and ratio 1, and weights that sum to one. "
)
SCALES = (
    "The paper's C belongs to kernels of unit trace; ours is that divided by the number of labelled and unlabelled "
    "rows, for centred kernels of mean diagonal 1. C of SVM and LapSVM belongs to the latter."
)
NOTES = (
    "The draws of labels of Link, Page and Pagelink are not at hand: these rows are compared on other draws.",
    "The paper prints neither its pool of kernels nor the widths, neighbours and degrees. Our pool, and the default "
    "kernels and norm of our classifiers, were settled while looking at these five sets; their default cost and shares "
    "of the classes on others.",
    "How the words of pages and links were joined for Pagelink is not printed; here they stand side by side.",
)
TAKEN_OVER = (
    "Not known: the printed number is taken over from Sindhwani, Niyogi and Belkin (2005), without a deviation, and is "
    "lower than that of Table 1 although fewer unlabelled rows are seen. No setting of our grid reaches it."
)
SETTINGS = {
    "rows": "all",
    "labels of Link, Page, Pagelink": WEBKB_PER_CLASS,
    "sigma": WIDTHS,
    "grid of C for TSVM and TSVM-MKL": COSTS,
    "grid of s": ENDS,
    "grid of C for SVM and LapSVM": SUPERVISED_COSTS,
    "grid of the ratio": RATIOS,
    "neighbours and degree for LapSVM": (N_NEIGHBORS, DEGREE),
    "chosen for SVM: C": SVM_CHOSEN,
    "chosen for LapSVM: C, ratio": LAPSVM_CHOSEN,
    "chosen for TSVM: C, s": TSVM_CHOSEN,
    "chosen for TSVM-MKL: C, s": TSVM_MKL_CHOSEN,
}

TABLE_1 = Item(
    kind="table",
    number=1,
    caption="Transductive setting: error on unlabelled rows",
    rows=tuple(SETS),
    methods=(*METHODS, TSVM_DEFAULT, DEFAULT, BY_FOLDS),
    own=(TSVM_DEFAULT, DEFAULT, BY_FOLDS),
    measures=(Measure("unlabelled error", "%", "lower"),),
    run=transductive,
    trials=10,
    protocol=DRAWS
    + "C, s and the ratio are those of the grids with the least mean error on the unlabelled rows of these very "
    "trials, for each set and method. The paper's grid of C and s is the same, and where it says how it chooses, it "
    "is by that error; such numbers are optimistic. Default: TSVMClassifier() and TSVMMKLClassifier() as they are, "
    "with C = 10, estimated shares of the classes, annealing, kernels of their own and weights of 1.5-norm one. By "
    "folds: TSVMMKLClassifier(C='cv', ramp='cv'), "
    "which sees no label but the given ones. " + SCALES,
    settings=SETTINGS,
    version=2,
    method_versions={TSVM_DEFAULT: 2, DEFAULT: 2, BY_FOLDS: 2},
    fast_settings={"rows": N_FAST},
    why={
        ("G50c", "TSVM-MKL"): "Not known: the pool of kernels is not printed. With ours not even the best C and s of "
        "each split by itself reach the printed number on average (benchmarks/tsvm_mkl).",
        ("Pagelink", "SVM"): "Not known: other labels are drawn, and how pages and links were joined is not printed. "
        "The paper's own Table 2 has 25.1 for an SVM on this set, so that ours lies between its two numbers.",
    },
    notes=NOTES,
    outside=True,
)

TABLE_2 = Item(
    kind="table",
    number=2,
    caption="Inductive setting: error on unlabelled and on unseen rows",
    rows=tuple(SETS),
    methods=(*METHODS, DEFAULT),
    own=(DEFAULT,),
    measures=(Measure("unlabelled error", "%", "lower"), Measure("test error", "%", "lower")),
    run=inductive,
    trials=10,
    protocol=DRAWS
    + "The rows without labels are cut into quarters; each is held out in turn, for the test, and the others are the "
    "unlabelled ones. A trial is the mean over the four. For SVM and LapSVM C and the ratio are those of the grids "
    "with the least mean error on the unlabelled rows of these very trials, as the paper chooses. For TSVM and "
    "TSVM-MKL C and s are those of Table 1: chosen by the error on rows among which the test rows of this table are. "
    "Both ways are optimistic. Default: TSVMMKLClassifier() as it is. " + SCALES,
    settings=SETTINGS | {"chosen for LapSVM: C, ratio": LAPSVM_CHOSEN_INDUCTIVE, "quarters held out": N_FOLDS},
    version=2,
    method_versions={DEFAULT: 2},
    fast_settings={"rows": N_FAST, "quarters held out": N_FAST_FOLDS},
    why={
        ("G50c", "LapSVM"): TAKEN_OVER,
        ("Text", "LapSVM"): TAKEN_OVER,
    },
    notes=(
        *NOTES,
        "G50c, TSVM-MKL is judged with the printed deviations of 5.0 and 5.2, which may be misprints, as Table 1 has "
        "0.7: with a tenth of them our errors would be worse than the printed ones.",
    ),
    outside=True,
)

PAPER = Paper(
    name="tsvm-mkl",
    title="A Multi-kernel Framework for Inductive Semi-supervised Learning",
    reference="X. Tian, G. Gasso, S. Canu. ESANN 2011.",
    items=(TABLE_1, TABLE_2),
)
