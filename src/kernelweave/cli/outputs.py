"""What the commands write: names of copies, checks before the work, and the files beside a copy."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import ErrorCode, KernelweaveError
from ..files import Source, check_output
from ..labeling.job import Labeling
from ..labeling.problem import encode
from ..labeling.table import STANDARD
from ..persistence import pack, require_skops
from .display import as_json
from .page import learned_page
from .reading import Given, describe_run

WORKBOOKS = (".xlsx", ".xlsm")
STDIN_NUMBER = 0  # also where sys.stdin is another stream


def check_outputs(outputs: Sequence[Path], *inputs: Path) -> None:
    """Refuse outputs that cannot be written, that are inputs, or that are the same file."""
    for path in outputs:
        for source in inputs:
            check_output(path, None if str(source) == STANDARD else source)
    if len({os.path.realpath(path) for path in outputs}) < len(outputs):
        raise KernelweaveError(
            f"A file is named twice among the outputs {', '.join(map(str, outputs))}; give each its own name.",
            ErrorCode.SAME_FILE,
        )


def name_sources(tables: Sequence[Path]) -> list[Source]:
    """Return the files that outputs are made from, to be as secret: standard input by the number that it always has."""
    return [STDIN_NUMBER if str(table) == STANDARD else table for table in tables]


def name_copy(table: Path, what: str) -> Path:
    """Return the name of the copy where no other is given."""
    if str(table) == STANDARD:
        return table
    folder = table.absolute().parent
    if (table.exists() and not table.is_file()) or {Path("/dev"), Path("/proc")} & {folder, *folder.parents}:
        raise KernelweaveError(
            f"'{table}' is not an ordinary file, so the copy has no default name; name the copy with -o.",
            ErrorCode.BAD_OPTION,
        )
    if table.suffix.lower() == ".gz":
        inner = Path(table.stem)
        return table.with_name(f"{inner.stem}.{what}{inner.suffix}{table.suffix}")
    suffix = ".csv" if table.suffix.lower() in WORKBOOKS else table.suffix
    return table.with_name(f"{table.stem}.{what}{suffix}")


def check_skops() -> None:
    """Refuse to save or load a model without the package that does it."""
    try:
        require_skops()
    except ImportError as error:
        raise KernelweaveError(str(error), ErrorCode.BAD_OPTION) from None


def make_files(
    given: Given,
    labeling: Labeling,
    report: dict[str, Any],
    about: dict[str, Any],
    paths: tuple[Path | None, Path | None, Path | None],
) -> list[tuple[Path, bytes]]:
    """Return record, model and page, by their paths; what has no path is left out.

    ``about`` is saved with the model, beside the target and the task.
    """
    record, model, page = paths
    files = []
    if record is not None:  # JSON has the same escapes
        files.append((record, (as_json(report) + "\n").encode("utf-8", "backslashreplace")))
    if model is not None:
        about = {"target": given.options.target, "task": labeling.report["task"], **about}
        files.append((model, pack(labeling.model, **about)))
    if page is not None:
        seen = given.take(labeling.learned)
        X = encode(labeling.model[0], seen.frame)
        files.append((page, learned_page(seen, X, labeling.model[-1], report)))
    return files


def rename_taken(extra: dict[str, Any], taken: list[str]) -> dict[str, Any]:
    """Give appended columns names that the table does not have yet."""
    free: dict[str, Any] = {}
    for name, texts in extra.items():
        new, number = name, 2
        while new in taken or new in free:
            new, number = f"{name}_{number}", number + 1
        free[new] = texts
    return free


def make_record(
    paths: Sequence[Path], given: Given, unlabeled: str | None, report: dict[str, Any], extra: dict[str, Any]
) -> dict[str, Any]:
    """Return the report, and what is needed to repeat the run with the same output."""
    record = describe_run(paths, given.options, unlabeled) | {"appended": list(extra), **report}
    return record | {"warnings": given.notes + record["warnings"]}
