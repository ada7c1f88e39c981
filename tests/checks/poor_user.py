"""Runs Python as a user without a place to write to, such as a numeric user of a container."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import kernelweave

NUMBER = 54321  # a user of whom the system knows nothing else
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2


class PoorUser:
    """A user whose site-packages and home are read-only; only the current folder, `work`, can be written.

    Root writes where it likes. It becomes a numeric user where that user can reach the interpreter, and gives up the
    right to ignore permissions where it cannot (an interpreter within ``/root``).
    """

    def __init__(self, folder):
        self.folder, self.work = folder, folder / "work"
        library, home = folder / "lib", folder / "home"
        source = Path(kernelweave.__file__).parent
        shutil.copytree(source, library / "kernelweave", ignore=shutil.ignore_patterns("__pycache__"))
        home.mkdir()
        self.work.mkdir()
        for path in (library, *library.rglob("*"), home):
            path.chmod(0o555 if path.is_dir() else 0o444)
        folder.chmod(0o755)
        self.work.chmod(0o777)
        self.options = {}
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            self.options = {"user": NUMBER, "group": NUMBER, "extra_groups": []}
            if not self._can_start():
                self.options = {"preexec_fn": _obey_permissions}
        unwanted = ("NUMBA_", "XDG_", "PYTHON", "COV_", "COVERAGE")
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
        self.environment |= {"PYTHONPATH": str(library), "HOME": str(home / "none"), "PYTHONDONTWRITEBYTECODE": "1"}

    def _can_start(self):
        """Whether this user can read the interpreter and the packages."""
        try:
            command = [sys.executable, "-c", "import numba, sklearn"]
            return subprocess.run(command, capture_output=True, cwd=self.work, **self.options).returncode == 0
        except OSError:
            return False

    def python(self, *arguments, **environment):
        """Run Python with the arguments in the folder `work`; a variable that is None is left out."""
        variables = {key: value for key, value in (self.environment | environment).items() if value is not None}
        command = [sys.executable, *map(str, arguments)]
        return subprocess.run(
            command, env=variables, cwd=self.work, capture_output=True, text=True, encoding="utf-8", **self.options
        )

    def close(self):
        for path in (self.folder, *self.folder.rglob("*")):
            if path.is_dir():
                path.chmod(0o755)
        shutil.rmtree(self.folder, ignore_errors=True)


def _obey_permissions():
    libc = ctypes.CDLL(None)
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
