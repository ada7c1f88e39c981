"""Check what would be published: ``python .ci/release.py`` in the root of a working tree.

Wheel and sdist are built in two copies of the tree at different places and times of their files. Both must be equal in
every byte and pass ``twine check --strict``. The sdist must be complete: the wheel built from it is the same wheel, and
tests of it run in its folder. The files are left in ``dist``.
"""

import filecmp
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ["tests/test_release.py", "tests/test_init.py", "tests/test_architecture.py", "tests/docs/test_sources.py"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        places = [scratch / "a", scratch / "another place"]
        first, second = (build(copy_tree(place / "tree"), place / "dist") for place in places)
        same_files(first, second)
        print("two builds are equal:", *(file.name for file in first))
        run("twine", "check", "--strict", *first)
        sdist = next(file for file in first if file.name.endswith(".tar.gz"))
        with tarfile.open(sdist) as archive:
            archive.extractall(scratch / "unpacked", filter="data")
        unpacked = next((scratch / "unpacked").iterdir())
        wheel = build(unpacked, scratch / "again", "--wheel")
        same_files([file for file in first if file.suffix == ".whl"], wheel)
        print("the sdist builds the same wheel")
        run("pytest", "-q", "-p", "no:cacheprovider", *TESTS, cwd=unpacked)
        shutil.rmtree(ROOT / "dist", ignore_errors=True)
        shutil.copytree(first[0].parent, ROOT / "dist")


def copy_tree(target):
    """Copy what git would publish, tracked or new, with today's times."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    for name in [name for name in listed if (ROOT / name).is_file()]:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target / name)
        shutil.copymode(ROOT / name, target / name)
    return target


def build(tree, target, *what):
    run("build", "--no-isolation", "--outdir", target, *what, cwd=tree, quiet=True)
    return sorted(target.iterdir())


def same_files(first, second):
    differing = [a.name for a, b in zip(first, second, strict=True) if a.name != b.name or not filecmp.cmp(a, b, False)]
    if differing:
        sys.exit(f"Two builds of the same tree differ: {differing}")


def run(module, *arguments, cwd=ROOT, quiet=False):
    """Run a module; its date is fixed, so that nothing depends on the clock."""
    environment = {"SOURCE_DATE_EPOCH": "1577836800"} | os.environ
    command = [sys.executable, "-m", module, *map(str, arguments)]
    subprocess.run(command, cwd=cwd, env=environment, check=True, stdout=subprocess.DEVNULL if quiet else None)


if __name__ == "__main__":
    main()
