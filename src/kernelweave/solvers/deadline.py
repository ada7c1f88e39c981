"""When a fit has to end: seconds since its start, and the error where nothing was reached by then."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


class OutOfTimeError(ValueError):
    """The time was over before there was anything to return."""


@dataclass(frozen=True)
class Deadline:
    """Seconds that a fit may take, from when this is made.

    Solvers look at it between the steps of which each takes a small part of the time, and return the best that they
    have; where they have nothing yet, `check` raises.

    Parameters
    ----------
    seconds : float or None
        None: no limit.
    started : float
        On the clock of ``time.perf_counter``.

    Examples
    --------
    >>> Deadline().is_over, Deadline(1e-9).is_over, Deadline(60.0).is_over
    (False, True, False)
    """

    seconds: float | None = None
    started: float = field(default_factory=lambda: time.perf_counter())

    @property
    def left(self) -> float:
        """Seconds that are left: 0 if it is over, infinite without limit."""
        if self.seconds is None:
            return float("inf")
        return max(0.0, self.started + self.seconds - time.perf_counter())

    @property
    def is_over(self) -> bool:
        """Whether the fit has to end."""
        return self.left == 0.0

    def part(self, share: float) -> Deadline:
        """Return the deadline of what may take a share of the whole time, from the same start."""
        return self if self.seconds is None else Deadline(share * self.seconds, self.started)

    def check(self, what: str) -> None:
        """Refuse to go on where the time is over before ``what`` is done."""
        if self.is_over:
            raise OutOfTimeError(
                f"max_time={self.seconds:g} s was over before {what}: nothing can be predicted yet. Raise max_time."
            )


NO_DEADLINE = Deadline()
