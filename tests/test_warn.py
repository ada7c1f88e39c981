from pathlib import Path

import pytest
from joblib import Parallel, delayed

import kernelweave
from kernelweave.warn import warn_caller


def inside_the_package(source):
    """What `source` defines as `f`, as if it stood in a module of the package."""
    names = {"warn_caller": warn_caller}
    exec(compile(source, str(Path(kernelweave.__file__).parent / "estimators" / "deep.py"), "exec"), names)
    return names["f"]


def line_of(caught):
    (warning,) = caught
    return warning.filename, Path(warning.filename).read_text().splitlines()[warning.lineno - 1].strip()


@pytest.mark.parametrize("depth", [0, 1, 5])
def test_a_warning_is_at_the_line_that_called_the_package_however_deep_the_call_is(depth):
    f = inside_the_package("def f(depth):\n    f(depth - 1) if depth else warn_caller('a word')")
    with pytest.warns(UserWarning, match="a word") as caught:
        f(depth)
    assert line_of(caught) == (__file__, "f(depth)")


def test_a_warning_is_at_the_innermost_line_outside_of_the_package():
    def callback():
        inner()

    inner = inside_the_package("def f():\n    warn_caller('a word', FutureWarning)")
    outer = inside_the_package("def f(callback):\n    callback()")
    with pytest.warns(FutureWarning, match="a word") as caught:
        outer(callback)
    assert line_of(caught) == (__file__, "inner()")


def test_joblib_within_the_package_is_not_its_caller():
    f = inside_the_package("def f(run, warn):\n    run(map(warn, ['a word']))")
    with pytest.warns(UserWarning, match="a word") as caught:
        f(Parallel(n_jobs=1), delayed(warn_caller))
    assert line_of(caught) == (__file__, "f(Parallel(n_jobs=1), delayed(warn_caller))")


def test_a_warning_of_a_generator_is_where_it_is_asked_for_the_next():
    f = inside_the_package("def f():\n    warn_caller('a word')\n    yield 1")
    generator = f()
    with pytest.warns(UserWarning, match="a word") as caught:
        next(generator)
    assert line_of(caught) == (__file__, "next(generator)")


def test_a_folder_that_begins_like_the_package_is_outside_of_it():
    folder = Path(kernelweave.__file__).parent
    names = {"warn_caller": warn_caller}
    exec(compile("def f():\n    warn_caller('a word')", f"{folder}_more/own.py", "exec"), names)
    with pytest.warns(UserWarning, match="a word") as caught:
        names["f"]()
    assert caught[0].filename == f"{folder}_more/own.py"
