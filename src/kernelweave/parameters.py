"""Constraints of parameters: one table a class, one function that checks it, one kind of sentence.

scikit-learn has such tables too, but they are private to it, they cannot say what to do instead, and their sentences
are not the ones that the rest of this package speaks in.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from .short_text import short_repr

T = TypeVar("T")


@dataclass(frozen=True)
class Constraint:
    """What a parameter must be.

    Attributes
    ----------
    holds : callable
        ``holds(value)`` is true for an allowed value.
    words : tuple of str
        The allowed values, in words: one entry for each alternative.

    Examples
    --------
    >>> from kernelweave.parameters import COUNT, check_parameters, one_of
    >>> check_parameters("Model", {"n": 3}, {"n": one_of(None, "auto") | COUNT})
    >>> check_parameters("Model", {"n": 0}, {"n": one_of(None, "auto") | COUNT})
    Traceback (most recent call last):
        ...
    ValueError: Model got n=0; expected None, "auto" or a whole number, 1 or more.
    """

    holds: Callable[[Any], bool]
    words: tuple[str, ...]

    @property
    def expected(self) -> str:
        """The allowed values as one phrase."""
        *first, last = self.words
        comma = "," if any("," in words for words in first) else ""
        return f"{', '.join(first)}{comma} or {last}" if first else last

    def __or__(self, other: Constraint) -> Constraint:
        return Constraint(lambda value: self.holds(value) or other.holds(value), self.words + other.words)


def one_of(*options: str | None) -> Constraint:
    """Return the constraint that a value is one of some strings, or None if that is among them."""
    words = tuple("None" if option is None else f'"{option}"' for option in options)
    return Constraint(lambda value: (value is None or isinstance(value, str)) and value in options, words)


def check_parameters(owner: str, values: Mapping[str, Any], constraints: Mapping[str, Constraint]) -> None:
    """Refuse the first value that its constraint does not allow, in one sentence.

    Parameters
    ----------
    owner : str
        Whose parameters they are.
    values : mapping from names to values
    constraints : mapping from names to Constraint
        One for each of the values.
    """
    for name, constraint in constraints.items():
        require(owner, name, values[name], constraint.holds(values[name]), constraint.expected)


def read_options(kind: type[T], values: Mapping[str, Any], **others: Any) -> T:
    """Return options, a dataclass: ``others``, and the parameters that its further fields are named after."""
    named = {field.name: values[field.name] for field in fields(kind) if field.name in values}  # type: ignore[arg-type]
    return kind(**(named | others))


def require(owner: str, name: str, value: Any, holds: bool, expected: str) -> None:
    """Refuse a parameter with one sentence."""
    if not holds:
        raise ValueError(f"{owner} got {name}={short_repr(value)}; expected {expected}.")


def is_positive(value: Any) -> bool:
    """Return whether a parameter is a positive finite number."""
    return 0 < as_float(value) < np.inf


def is_nonnegative(value: Any, kind: Any = numbers.Real) -> bool:
    """Return whether a parameter is a finite number of a kind, 0 or more."""
    return isinstance(value, kind) and 0 <= as_float(value) < np.inf


def as_float(value: Any) -> float:
    """Return a parameter as a float; NaN where it is no number, or too large for one."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.nan


def is_count(value: Any) -> bool:
    """Return whether a parameter is a whole number, 1 or more."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 1


POSITIVE = Constraint(is_positive, ("a positive finite number",))
NON_NEGATIVE = Constraint(is_nonnegative, ("a number, 0 or more",))
AT_LEAST_ONE = Constraint(lambda value: as_float(value) >= 1, ("a number, 1 or more",))
SHARE = Constraint(lambda value: 0 < as_float(value) < 1, ("a number between 0 and 1",))
FINITE = Constraint(lambda value: bool(np.isfinite(as_float(value))), ("a finite number",))
SHARE_OF_ROWS = Constraint(
    lambda value: isinstance(value, float) and 0 < value <= 1,
    ("a share of the rows, above 0 and at most 1",),
)
COUNT = Constraint(is_count, ("a whole number, 1 or more",))
WHOLE = Constraint(lambda value: is_nonnegative(value, numbers.Integral), ("a whole number, 0 or more",))
BOOLEAN = Constraint(lambda value: isinstance(value, bool | np.bool_), ("True or False",))
NONE = one_of(None)
CALLBACK = NONE | Constraint(callable, ("a function of the state of the solver",))
VERBOSE = Constraint(lambda value: isinstance(value, numbers.Integral), ("a whole number: 0 (silent), 1 or 2",))
LANDMARKS = one_of("auto", None) | COUNT
JOBS = NONE | Constraint(
    lambda value: isinstance(value, numbers.Integral) and value != 0, ("a whole number, -1 for all cores",)
)
# Checked where it is read, against the data or by the part that takes it: recipes, markers, seeds, classes.
READ_LATER = Constraint(lambda value: True, ("anything",))
