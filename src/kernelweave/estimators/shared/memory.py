"""What a fit will have in memory at its peak, from sizes alone, and refusals of what is more than there is.

Estimates are made before anything large is formed. They are of what is added to the rows that were given, in bytes:
what is kept of the rows, and the largest of what is needed for a while. The measured growth of a fit that needs more
than 200 MB is at most 1.2 times its estimate (``benchmarks/memory``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config

from ...kernels.base import BLOCK_SHARE, Kernel
from ...kernels.bound_library import BoundLibrary
from ...kernels.cluster import SpectralKernel
from ...kernels.forest import ForestKernel
from ...kernels.library import KernelLibrary
from ...kernels.manifold import MAX_PAIRED_ROWS, ManifoldKernel, count_landmarks
from ...kernels.pointwise import Linear
from ...kernels.wrappers import OnColumns, Preprocessed
from ...short_text import count_of
from ...solvers.machines.box_programs import MAX_KEPT_ENTRIES
from ...solvers.machines.kernel_stack import MAX_DENSE_POINTS
from .sample import Sample

MEMORY_SHARE = 0.8  # of the memory that is free, or of the machine's, that a fit may take
FLOAT = 8  # bytes
# Blocks of kernel values that are in memory at a time: the values, what they are made of, and what is made of them;
# with the width that the working memory is divided by where they are cut.
PREDICTION_COPIES = 3
ANCHOR_COPIES, ANCHOR_WIDTH = 5, 2
PAIR_COPIES, PAIR_WIDTH = 7, 4
EDGE_BYTES = 90  # of a graph, for each neighbour of a row, while it is made
SEARCH_COPIES = 2
SEARCH_VALUES = 300  # distances of a row that are in memory at a time while its neighbours are looked for
KEPT_EDGE_BYTES = 24  # ... and of it, as the matrix of both directions, and of its Laplacian
JOINED_COPIES = 4  # of a matrix of all pairs of rows, that an elimination has in memory
SQUARE_COPIES = 3  # of a matrix of all rows that are in memory at a time
ROW_VECTORS = 40  # of numbers of all rows, that solvers and predictions have
MAX_SUPPORT = 4000  # columns of a kernel that a prediction of all rows evaluates at a time
# Of a mixture: columns that working sets rarely grow beyond, and how often their values are in memory while they do;
# what a problem keeps of every column that competes; matrices of labelled rows for each kernel with an RKHS norm.
WORKING_COLUMNS, WORKING_COPIES, COLUMN_VECTORS, RKHS_COPIES = 1000, 4, 10, 3
VECTOR_COPIES = 3  # of eigenvectors at all rows, while they are found
OUTPUT_COPIES = 5  # of probabilities of all rows, while they are mixed
STORED_SHARE = 1.5  # of the bytes of a stored number, that it takes with its place
ROW_COPIES = 3  # of the rows, where kernels or graphs compute with rows that are moved or scaled
CONTROL_GROUP = Path("/sys/fs/cgroup")
MEMINFO = Path("/proc/meminfo")
STATM = Path("/proc/self/statm")


def require_memory(n_bytes: float, what: str, advice: str | Callable[[], str]) -> None:
    """Refuse what would not fit into the memory that is free.

    Parameters
    ----------
    n_bytes : float
        That will be taken in addition.
    what : str
        What needs them: a sentence without its end.
    advice : str or callable
        What to do instead: sentences, or what returns them.
    """
    free = free_memory()
    if n_bytes > MEMORY_SHARE * free:
        needed, limit, all_free = (f"{size / 2**30:.2f} GB" for size in (n_bytes, MEMORY_SHARE * free, free))
        raise MemoryError(
            f"{what}, about {needed} of the {limit} that a fit may take, {MEMORY_SHARE:.0%} of the {all_free} that are "
            f"free. {advice if isinstance(advice, str) else advice()}"
        )


def advise(remedies: Iterable[tuple[str, float]], *others: str) -> str:
    """Return a sentence with what to use instead: the remedies with which the bytes are there, and others.

    Parameters
    ----------
    remedies : iterable of (str, float)
        In words, each with the bytes that the fit then needs; of several such numbers the largest counts.
    *others : str
        What needs less in any case.
    """
    needed: dict[str, float] = {}
    for text, n_bytes in remedies:
        needed[text] = max(n_bytes, needed.get(text, 0.0))
    words = ["fewer rows", *(text for text, n_bytes in needed.items() if fits_now(n_bytes)), *filter(None, others)]
    return f"Use {', '.join(words[:-1])}{', or ' if len(words) > 1 else ''}{words[-1]}."


def fits_now(n_bytes: float) -> bool:
    """Return whether a fit may take so much of the memory that is free."""
    return n_bytes <= MEMORY_SHARE * free_memory()


def fits_machine(n_bytes: float) -> bool:
    """Return whether a fit may take so much of the memory of this machine: always the same, whatever else runs."""
    return n_bytes <= MEMORY_SHARE * machine_memory()


def machine_memory() -> float:
    """Return the bytes that this process may have: those of the machine, of its control group, its own limit."""
    limits = [_process_limit(), *(limit for limit, _ in _group_sizes())]
    with suppress(AttributeError, ValueError, OSError):  # not known on this system
        limits.append(float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    return min(limits)


def free_memory() -> float:
    """Return the bytes that this process may still take."""
    free = [machine_memory(), _process_limit() - _own_size(), *(limit - used for limit, used in _group_sizes())]
    free.append(1024 * _read_sizes(MEMINFO).get("MemAvailable:", np.inf))
    return max(0.0, min(free))


def _process_limit() -> float:
    """Return the limit on the address space, which ``ulimit -v`` sets."""
    try:
        import resource
    except ImportError:  # not known on this system
        return np.inf
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return np.inf if limit == resource.RLIM_INFINITY else float(limit)


def _own_size() -> float:
    """Return the address space that is taken."""
    try:
        return float(STATM.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


def _group_sizes() -> Iterator[tuple[float, float]]:
    """Give the limit of the control group that containers set, and what is used of it, where there is one."""
    for limit, used, cache in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "total_inactive_file"),
    ):
        folder = (CONTROL_GROUP / limit).parent
        try:
            most, now = float((CONTROL_GROUP / limit).read_text()), float((CONTROL_GROUP / used).read_text())
        except (OSError, ValueError):  # no group, or one without a limit
            continue
        yield most, max(0.0, now - _read_sizes(folder / "memory.stat").get(cache, 0.0))


def _read_sizes(path: Path) -> dict[str, float]:
    """Return the numbers of a file of lines of a name and a number."""
    try:
        words = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {line[0]: float(line[1]) for line in words if len(line) > 1 and line[1].isdigit()}


def require_stack_memory(
    owner: str, bound: BoundLibrary, n_rows: int, dtype: str, advice: str, by_features: bool = False
) -> None:
    """Refuse a fit whose kernels, at so many rows, and what is computed with them would not fit into the memory.

    ``by_features``: whether the fit forms no matrix of all rows where kernels are given by features.
    """
    ranks = [kernel.rank for kernel in bound.kernels]

    def count_bytes(ranks: Sequence[int | None], dtype: str) -> float:
        return stack_bytes(n_rows, ranks, dtype, by_features=by_features)

    fewer = [("fewer kernels", count_bytes([rank], dtype)) for rank in ranks if len(ranks) > 1]
    require_memory(
        count_bytes(ranks, dtype),
        f"{owner} keeps {count_of(len(ranks), 'kernel')} of {n_rows:,} rows in memory",
        lambda: advise([*fewer, *_halved(dtype, count_bytes(ranks, "float32"))], advice),
    )


def _halved(dtype: str, n_bytes: float) -> list[tuple[str, float]]:
    return [] if dtype == "float32" else [('dtype="float32"', n_bytes)]


def require_machine_memory(
    owner: str,
    library: KernelLibrary,
    sample: Sample,
    n_rows: int,
    dtype: str,
    advice: str,
    *,
    by_features: bool,
    smaller: Iterable[tuple[str, KernelLibrary]] | None = None,
) -> None:
    """Refuse a fit before its kernels are tied to rows, where these and a machine would not fit into the memory.

    Parameters
    ----------
    owner : str
    library : KernelLibrary
    sample : Sample
        To whose rows kernels are tied.
    n_rows : int
        Of these, that the machine is trained on.
    dtype : str
    advice : str
        What needs less memory in any case.
    by_features : bool
    smaller : iterable of (str, KernelLibrary), optional
        Libraries to use instead if they fit, in words; by default one kernel of several.
    """

    def count_bytes(library: KernelLibrary, dtype: str) -> float:
        recipes = [entry.kernel for entry in library.entries]
        ranks = [recipe_rank(recipe, sample.n_rows, sample.X.shape[1]) for recipe in recipes]
        return (
            binding_bytes(recipes, sample.n_rows, count_values(sample.X))
            + stack_bytes(n_rows, ranks, dtype, by_features=by_features)
            + block_bytes(sample.n_rows, min(n_rows, MAX_SUPPORT))
            + FLOAT * ROW_VECTORS * float(sample.n_rows)
        )

    def list_remedies() -> str:
        others = fewer_kernels(library) if smaller is None else smaller
        by_size = [(text, count_bytes(each, dtype)) for text, each in others]
        return advise([*by_size, *_halved(dtype, count_bytes(library, "float32"))], advice)

    require_memory(
        count_bytes(library, dtype),
        f"{owner} needs {count_of(len(library.entries), 'kernel')} of {sample.n_rows:,} rows, {n_rows:,} of them in "
        "its machines",
        list_remedies,
    )


def fewer_kernels(library: KernelLibrary) -> list[tuple[str, KernelLibrary]]:
    """Return what is left of several kernels, each alone."""
    return [("fewer kernels", KernelLibrary([entry.kernel])) for entry in library.entries if len(library.entries) > 1]


def landmark_remedies(library: KernelLibrary) -> Iterator[tuple[str, KernelLibrary]]:
    """Give the kernels replaced by their features of few and fewer landmarks."""
    for n_landmarks in (1000, 100):
        kernels = [ManifoldKernel(entry.kernel, ratio=0.0, n_landmarks=n_landmarks) for entry in library.entries]
        yield f"ManifoldKernel(kernel, ratio=0, n_landmarks={n_landmarks})", KernelLibrary(kernels)


def require_mixture_memory(owner: str, library: KernelLibrary, sample: Sample, params: Mapping[str, Any]) -> None:
    """Refuse a mixture before its kernels are tied to rows, where these and its columns would not fit into the memory.

    Parameters
    ----------
    owner : str
    library : KernelLibrary
    sample : Sample
        The labelled rows and those that may be centres.
    params : mapping
        Parameters of the estimator: ``cache_size``, ``max_columns``, and ``penalty`` if it has one.
    """
    less = {"max_columns": 100}, {"cache_size": 0}, {"max_columns": 100, "cache_size": 0}

    def list_remedies() -> str:
        fewer = [(text, mixture_bytes(each, sample, params)) for text, each in fewer_kernels(library)]
        limits = [(_name_options(each), mixture_bytes(library, sample, {**params, **each})) for each in less]
        fits = [each for each in limits[:2] if fits_now(each[1])]
        return advise([*fewer, *(fits or limits)])

    require_memory(
        mixture_bytes(library, sample, params),
        f"{owner} needs {count_of(len(library.entries), 'kernel')} of {sample.n_rows:,} rows, "
        f"{sample.partition.n_labeled:,} of them with labels",
        list_remedies,
    )


def _name_options(options: Mapping[str, Any]) -> str:
    return " with ".join(f"{name}={value}" for name, value in options.items())


def mixture_bytes(library: KernelLibrary, sample: Sample, params: Mapping[str, Any]) -> float:
    """Return the bytes of a mixture: of kernels that are tied to rows, and of columns."""
    recipes = [entry.kernel for entry in library.entries]
    n_rows, n_labeled = sample.n_rows, sample.partition.n_labeled
    n_columns = len(recipes) * n_rows
    n_working = min(n_columns, params["max_columns"] or WORKING_COLUMNS)
    values = FLOAT * float(n_labeled) * n_columns
    n_bytes = (
        binding_bytes(recipes, n_rows, count_values(sample.X))
        + min(params["cache_size"] * 2**20, values)
        + block_bytes(n_labeled, n_columns)
        + WORKING_COPIES * FLOAT * float(n_labeled) * n_working
        + FLOAT * (ROW_VECTORS * float(n_rows) + COLUMN_VECTORS * float(n_columns))
    )
    if params.get("penalty") == "rkhs":
        n_bytes += RKHS_COPIES * FLOAT * len(recipes) * float(n_labeled) ** 2
    return n_bytes


def require_vector_memory(
    owner: str, recipes: Sequence[Kernel], sample: Sample, n_vectors: int, n_landmarks: int
) -> None:
    """Refuse to tie kernels to rows, and to find eigenvectors there, where that would not fit into the memory.

    Predictions of all rows evaluate kernels at the labelled ones.
    """
    n_rows, n_support = sample.n_rows, min(sample.partition.n_labeled, MAX_SUPPORT)
    n_bytes = (
        binding_bytes(recipes, n_rows, count_values(sample.X))
        + VECTOR_COPIES * FLOAT * float(n_rows) * n_vectors
        + SQUARE_COPIES * FLOAT * float(n_landmarks) ** 2
        + block_bytes(n_rows, max(n_landmarks, n_support))
        + FLOAT * ROW_VECTORS * float(n_rows)
    )
    require_memory(
        n_bytes,
        f"{owner} needs {len(recipes)} kernels of {n_rows:,} rows, and {n_vectors} eigenvectors of {n_landmarks:,}",
        "Use fewer kernels or rows, or smaller n_eigenvectors and n_landmarks.",
    )


def require_square_memory(owner: str, n_rows: int) -> None:
    """Refuse eigenvectors of a kernel at all rows where it would not fit into the memory."""
    require_memory(
        SQUARE_COPIES * FLOAT * float(n_rows) ** 2,
        f"{owner} with n_landmarks=None keeps the kernel of all {n_rows:,} rows",
        'Pass n_landmarks="auto", or a number.',
    )


def require_labeled_memory(owner: str, n_kernels: int, n_labeled: int) -> None:
    """Refuse to align whole kernels of more labelled rows than fit into the memory."""
    require_memory(
        SQUARE_COPIES * FLOAT * n_kernels * float(n_labeled) ** 2,
        f"{owner} keeps {n_kernels} kernels of {n_labeled:,} labelled rows",
        "Use fewer kernels, or labels.",
    )


def require_graph_memory(owner: str, n_rows: int, n_features: int, n_neighbors: int | None) -> None:
    """Refuse to spread labels over a graph of more rows than fit into the memory.

    ``n_neighbors``: of each row; None where a kernel joins all pairs.
    """
    if n_neighbors is None:
        require_memory(
            FLOAT * JOINED_COPIES * float(n_rows) ** 2,
            f"{owner} joins all pairs of {n_rows:,} rows where a kernel is given",
            "Pass kernel=None for the graph of nearest neighbours, or fewer rows.",
        )
        return
    edges = float(n_rows) * min(n_neighbors, n_rows)
    require_memory(
        graph_bytes(n_rows, n_features, n_neighbors) + KEPT_EDGE_BYTES * edges,
        f"{owner} joins {n_rows:,} rows with {n_neighbors} neighbours each",
        "Pass fewer rows or a smaller n_neighbors.",
    )


def require_search_memory(owner: str, sample: Sample, n_outputs: int) -> None:
    """Refuse to label more rows than fit into the memory; candidates, which see some of them, ask for theirs."""
    n_rows = sample.n_given
    require_memory(
        FLOAT * float(n_rows) * (ROW_COPIES * count_values(sample.rows.X) + OUTPUT_COPIES * n_outputs + ROW_VECTORS)
        + block_bytes(n_rows, MAX_SUPPORT),
        f"{owner} labels {n_rows:,} rows",
        "Pass fewer unlabelled rows, and the others to predict in parts.",
    )


def count_values(X: Any) -> int:
    """Return how many numbers a row takes in memory; of sparse rows what is stored, with its places, in the mean."""
    if not issparse(X):
        return int(X.shape[1])
    return int(np.ceil(STORED_SHARE * X.nnz / max(1, X.shape[0])))


def graph_bytes(n_rows: int, n_features: int, n_neighbors: int) -> float:
    """Return the bytes that the graph of nearest neighbours takes while it is made."""
    edges = float(n_rows) * min(n_neighbors, n_rows)
    blocks = block_bytes(n_rows, SEARCH_VALUES, SEARCH_COPIES)
    return EDGE_BYTES * edges + ROW_COPIES * FLOAT * float(n_rows * n_features) + blocks


def stack_bytes(n_rows: int, ranks: Sequence[int | None], dtype: str, *, by_features: bool) -> float:
    """Return the bytes of kernels at so many rows, and of their sum.

    Parameters
    ----------
    n_rows : int
    ranks : sequence of int or None
        Columns of the features of each kernel; None where it is a matrix.
    dtype : str
        In which they are kept.
    by_features : bool
        Whether no matrix of many rows is formed where kernels are given by features.
    """
    n_values = sum(n_rows * float(n_rows if rank is None else rank) for rank in ranks)
    low_rank = by_features and n_rows > MAX_DENSE_POINTS and None not in ranks
    kept = n_values * np.dtype(dtype).itemsize
    if not low_rank:
        return kept + 3 * FLOAT * float(n_rows) ** 2
    return kept + FLOAT * (n_values + (float(n_rows) ** 2 if n_rows**2 <= MAX_KEPT_ENTRIES else 0.0))


def binding_bytes(recipes: Iterable[Kernel], n_rows: int, n_features: int) -> float:
    """Return the bytes of what kernels keep of rows when they are tied to them, and of what that takes.

    Parameters
    ----------
    recipes : iterable of Kernel
    n_rows : int
    n_features : int
    """
    kept: dict[object, float] = {}
    for_a_while = [ROW_COPIES * FLOAT * float(n_rows * n_features)]
    for recipe in recipes:
        for part in recipe.walk():
            _add_parts(part, n_rows, n_features, kept, for_a_while)
    return sum(kept.values()) + max(for_a_while)


def block_bytes(n_rows: int, n_columns: int, copies: float = PREDICTION_COPIES, width: int = 1) -> float:
    """Return the bytes of blocks of so many rows and columns in all, which the working memory bounds.

    ``copies`` of a block are in memory at a time; its size is bounded as if it were so many times as wide.
    """
    bounded = BLOCK_SHARE * get_config()["working_memory"] * 2**20 / width
    return copies * min(float(bounded), FLOAT * float(n_rows) * n_columns)


def recipe_rank(recipe: Kernel, n_rows: int, n_features: int) -> int | None:
    """Return how many features give a kernel of so many rows; None where it is a matrix of all pairs."""
    if isinstance(recipe, ManifoldKernel):
        rank = recipe.count_anchors(n_rows)
        if rank == n_rows and recipe.ratio == 0:
            return recipe_rank(recipe.base, n_rows, n_features)
    elif isinstance(recipe, SpectralKernel):
        rank = recipe.n_vectors(count_landmarks(recipe.n_landmarks, n_rows))
    elif isinstance(recipe, Linear):
        rank = n_features
    elif isinstance(recipe, Preprocessed | OnColumns):
        return recipe_rank(recipe.kernel, n_rows, n_features)
    else:
        return None
    return rank if 2 * rank <= n_rows else None


def _add_parts(
    recipe: Kernel, n_rows: int, n_features: int, kept: dict[object, float], for_a_while: list[float]
) -> None:
    """Add what one recipe keeps, by what it is, since kernels share it, and what it takes for a while."""
    if isinstance(recipe, ManifoldKernel):
        n_anchors = recipe.count_anchors(n_rows)
        if n_anchors == n_rows and recipe.ratio == 0:
            return
        features = FLOAT * float(n_rows) * n_anchors
        square = SQUARE_COPIES * FLOAT * float(n_anchors) ** 2
        kept["anchors", recipe.base, n_anchors] = features
        for_a_while.append(square + block_bytes(n_rows, n_anchors, ANCHOR_COPIES, ANCHOR_WIDTH))
        if recipe.ratio > 0:
            edges = float(n_rows) * min(int(recipe.n_neighbors), n_rows)
            kept["graph", recipe.graph_key(n_anchors)] = KEPT_EDGE_BYTES * edges
            for_a_while.append(graph_bytes(n_rows, n_features, int(recipe.n_neighbors)))
            if recipe.metric == "kernel" and n_rows <= MAX_PAIRED_ROWS:
                for_a_while.append(block_bytes(n_rows, n_rows, PAIR_COPIES, PAIR_WIDTH))
            elif recipe.metric == "kernel":
                for_a_while.append(graph_bytes(n_rows, n_anchors, int(recipe.n_neighbors)))
            for_a_while.append(features + 2 * KEPT_EDGE_BYTES * edges + square)
    elif isinstance(recipe, SpectralKernel):
        n_landmarks = count_landmarks(recipe.n_landmarks, n_rows)
        kept["vectors", recipe.base, n_landmarks] = FLOAT * float(n_rows) * recipe.n_vectors(n_landmarks)
        for_a_while.append(SQUARE_COPIES * FLOAT * float(n_landmarks) ** 2 + block_bytes(n_rows, n_landmarks))
    elif isinstance(recipe, ForestKernel):
        kept["leaves", recipe] = 4 * float(n_rows) * recipe.n_trees
    elif isinstance(recipe, Preprocessed | OnColumns):
        kept["columns", recipe] = FLOAT * float(n_rows * n_features)
