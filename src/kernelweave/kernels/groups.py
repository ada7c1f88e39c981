"""Several sources of features: one family of kernels for each, in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .base import Kernel
from .library import KernelLibrary
from .pointwise import RBF
from .wrappers import OnColumns


def one_kernel_per_group(
    groups: Any, kernels: Kernel | Sequence[Kernel] | None = None, *, missing: str = "error", separator: str = "_"
) -> KernelLibrary:
    """Return a library with the same kernels for each group of columns.

    Parameters
    ----------
    groups : mapping, frame or sequence
        A mapping from the name of a source to its columns (names, ``"prefix*"``, positions or a slice, as
        :class:`OnColumns` takes them). A frame, or a sequence of column names: columns whose names agree up to the last
        ``separator`` are a source; names without one are the source ``"other"``.
    kernels : Kernel or sequence of Kernel, optional
        The family each source gets; by default ``RBF()``, whose width follows from the source's own distances.
    missing : {"error", "center"}, default="error"
        How to treat a row that lacks a whole source, as in :class:`OnColumns`.
    separator : str, default="_"
        What ends the name of a source in the names of its columns; not used with a mapping.

    Returns
    -------
    KernelLibrary
        One entry for each source and kernel, named after the source (and the kernel where there are several).

    See Also
    --------
    OnColumns : A kernel on some of the columns.
    table_library : Several kernels for the columns of a table, also by source.

    Examples
    --------
    >>> from kernelweave import RBF, Linear, one_kernel_per_group
    >>> library = one_kernel_per_group({"genes": "gene_*", "clinic": ["age", "bmi"]}, [Linear(), RBF()])
    >>> library.names
    ('genes: Linear()', 'genes: RBF()', 'clinic: Linear()', 'clinic: RBF()')
    >>> one_kernel_per_group(["gene_1", "gene_2", "age"]).names
    ('gene', 'other')
    """
    family = [RBF()] if kernels is None else [kernels] if isinstance(kernels, Kernel) else list(kernels)
    entries = []
    for name, columns in _group_by_name(groups, separator).items():
        for kernel in family:
            label = name if len(family) == 1 else f"{name}: {kernel}"
            entries.append((label, OnColumns(kernel, columns, missing=missing, source=name)))
    return KernelLibrary(entries)


def _group_by_name(groups: Any, separator: str) -> dict[str, Any]:
    if isinstance(groups, Mapping):
        by_name = {str(name): columns for name, columns in groups.items()}
    else:
        names = list(getattr(groups, "columns", groups))
        strange = [name for name in names if not isinstance(name, str)]
        if strange:
            raise ValueError(
                f"Groups are read from column names, but {strange[0]!r} is not a string. Give a frame with named "
                'columns, or a mapping such as {"genes": slice(0, 100), "clinic": [100, 101]}.'
            )
        by_name = {}
        for name in names:
            head, cut, _ = name.rpartition(separator)
            by_name.setdefault(head if cut and head else "other", []).append(name)
    if not by_name:
        raise ValueError("one_kernel_per_group got no group of columns; give at least one.")
    return by_name
