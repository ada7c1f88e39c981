"""``kernelweave info``: versions, what is not installed and how to get it, threads, caches, cores and memory."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from joblib import cpu_count
from rich.markup import escape
from threadpoolctl import threadpool_info

from .display import make_grid, open_console, print_json
from .harmless import harmless
from .options import Json

EXTRAS = {
    "cli": "the command, and tables in Parquet and .xlsx",
    "io": "model files: label --model, predict",
    "report": "figures and pages",
    "ann": "fast graphs of neighbours of many rows",
}
CORE = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "highspy", "numba")
GIGABYTE = 2**30
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def info(json_: Json = False) -> None:
    """Say which versions are installed, what is missing, and what the computer offers.

    Example: kernelweave info
    """
    found = describe_installation()
    print_json(found) if json_ else show_info(found)


def describe_installation() -> dict[str, Any]:
    """Return versions, extras, threads, caches, cores and memory as plain data."""
    import sklearn.utils._openmp_helpers  # noqa: F401 - so that its threads are listed

    extras = {name: _describe_extra(name, purpose) for name, purpose in EXTRAS.items()}
    return {
        "kernelweave": _find_version("kernelweave"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "executable": sys.executable,
        "versions": {name: _find_version(name) for name in CORE},
        "extras": extras,
        "threads": {each["internal_api"]: each["num_threads"] for each in threadpool_info()},
        "cores": {"computer": os.cpu_count(), "usable": cpu_count()},
        "memory": _describe_memory(),
        "cache": {"compiled": find_cache(), "data": os.environ.get("KERNELWEAVE_DATA")},
    }


def _find_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _describe_extra(extra: str, purpose: str) -> dict[str, Any]:
    """Return the versions of an extra's packages, those that are missing, and what installs them."""
    wanted = [text for text in requires("kernelweave") or () if re.search(rf"extra == .{extra}.$", text)]
    names = [re.split(r"[\s<>=!~;\[(]", text, maxsplit=1)[0] for text in wanted]
    found = {name: _find_version(name) for name in names}
    missing = [name for name, known in found.items() if known is None]
    install = f"pip install 'kernelweave[{extra}]'" if missing else None
    return {"for": purpose, "versions": found, "missing": missing, "install": install}


def find_cache() -> str:
    """Return the folder in which numba keeps compiled loops: its own variable, the package's folder, or the user's."""
    if folder := os.environ.get("NUMBA_CACHE_DIR"):
        return folder
    package = Path(__file__).parents[1] / "solvers"
    kept = package / "__pycache__"
    if os.access(kept if kept.exists() else package, os.W_OK):
        return str(kept)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "numba")


def _describe_memory() -> dict[str, float | None]:
    """Return gigabytes of the computer, those free, and the limit of this process's group; None where not known."""

    def pages(name: str) -> float | None:
        try:
            return round(os.sysconf(name) * os.sysconf("SC_PAGE_SIZE") / GIGABYTE, 2)
        except (AttributeError, ValueError, OSError):  # Windows has no such names
            return None

    limit = None
    for path in CGROUP_LIMITS:
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            continue
        if text.isdigit() and int(text) < 2**60:
            limit = round(int(text) / GIGABYTE, 2)
    return {"computer": pages("SC_PHYS_PAGES"), "free": pages("SC_AVPHYS_PAGES"), "limit": limit}


def show_info(found: dict[str, Any]) -> None:
    """Print what is installed for people."""
    found, console = harmless(found), open_console()
    console.print(f"[bold]kernelweave {escape(str(found['kernelweave']))}[/], Python {escape(found['python'])}")
    console.print(f"{found['platform']}\n{found['executable']}", markup=False, soft_wrap=True)
    console.print(", ".join(f"{name} {known or 'missing'}" for name, known in found["versions"].items()), markup=False)
    grid = make_grid(extra="left", _="left", versions="left")
    grid.columns[1].header = "for"
    for name, extra in found["extras"].items():
        known = ", ".join(f"{package} {number or 'missing'}" for package, number in extra["versions"].items())
        grid.add_row(escape(name), escape(extra["for"]), escape(known))
    console.print(grid)
    missing = [extra["install"] for extra in found["extras"].values() if extra["install"]]
    for command in missing:
        console.print(f"missing: {command}", markup=False)
    if not missing:
        console.print("no extra is missing")
    threads = ", ".join(f"{name} {number}" for name, number in found["threads"].items()) or "not known"
    cores, memory = found["cores"], found["memory"]
    console.print(f"threads: {threads}", markup=False)
    console.print(f"cores: {cores['usable']} usable of {cores['computer']}", markup=False)
    sizes = {"": memory["computer"], " free": memory["free"], " limit": memory["limit"]}
    known = ", ".join(f"{size:g} GB{what}" for what, size in sizes.items() if size is not None)
    console.print(f"memory: {known or 'not known'}", markup=False)
    console.print(f"compiled loops are kept in {found['cache']['compiled']}", markup=False, soft_wrap=True)
    data = found["cache"]["data"]
    console.print(
        f"benchmark data: {data}" if data else "benchmark data: KERNELWEAVE_DATA names no folder",
        markup=False,
        soft_wrap=True,
    )
