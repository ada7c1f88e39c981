r"""Times of day and durations, written as text, in seconds.

A time of day is ``09:30``, ``09:30:15`` or ``9:30 pm``: of two digits before the colon, or with am or pm. A duration is
``9:30``, ``36:15``, ``1:02:10``, ``2 h 30 min``, ``1 day 02:03:04`` or ``PT2H30M``. Where some cells have two colons,
those with one are minutes and seconds; else they are hours and minutes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from .numbers import Floats

__all__ = ["DAY", "DURATION_FORMS", "parse_durations", "parse_times"]

DAY = 86_400  # seconds
MAX_LENGTH = 40  # of a text that may be a time
DURATION_FORMS = ("h:m", "m:s")
TIME = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d(?:\.\d{1,9})?))?(?P<half> ?[ap]\.?m\.?)?"
)
CLOCK = re.compile(r"(?P<first>\d{1,6}):(?P<second>[0-5]\d)(?::(?P<third>[0-5]\d(?:\.\d{1,9})?))?")
DAYS_AND_CLOCK = re.compile(r"(?P<days>\d{1,6}) days?,? \+?(?P<clock>[\d:.]+)")
ISO = re.compile(
    r"P(?:(?P<d>\d{1,6})D)?(?:T(?:(?P<h>\d{1,6})H)?(?:(?P<m>\d{1,6})M)?(?:(?P<s>\d{1,6}(?:\.\d{1,9})?)S)?)?"
)
WORD = re.compile(r"(\d{1,9}(?:[.,]\d{1,9})?) ?([a-z]+)\.? ?")
SECONDS = {
    word: seconds
    for words, seconds in (
        ("w week weeks", 7 * DAY),
        ("d day days", DAY),
        ("h hr hrs hour hours", 3600),
        ("m min mins minute minutes", 60),
        ("s sec secs second seconds", 1),
    )
    for word in words.split()
}


def parse_times(levels: Sequence[str], form: str = "") -> Floats:
    """Return the seconds since midnight of each text; NaN if it is no time of day.

    Examples
    --------
    >>> parse_times(["09:30", "9:30 pm", "12:05 am", "9:30", "24:00"]).tolist()
    [34200.0, 77400.0, 300.0, nan, nan]
    """
    return np.array([_read_time(level.lower()) for level in levels], dtype=np.float64)


def _read_time(text: str) -> float:
    match = TIME.fullmatch(text) if len(text) <= MAX_LENGTH else None
    if match is None:
        return math.nan
    hour, half = int(match["hour"]), (match["half"] or "").strip()
    if half:
        if not 1 <= hour <= 12:
            return math.nan
        hour = hour % 12 + 12 * half.startswith("p")
    elif len(match["hour"]) < 2 or hour >= 24:
        return math.nan
    return 3600.0 * hour + 60.0 * int(match["minute"]) + float(match["second"] or 0)


def parse_durations(levels: Sequence[str], form: str) -> Floats:
    """Return the seconds that each text stands for, NaN if it is no duration; ``form`` is one of `DURATION_FORMS`.

    Examples
    --------
    >>> parse_durations(["1:30", "1:30:05", "2 h 30 min", "1 day 00:01", "PT1H", "3 kg"], "h:m").tolist()
    [5400.0, 5405.0, 9000.0, 86460.0, 3600.0, nan]
    """
    return np.array([_read_duration(level, form) for level in levels], dtype=np.float64)


def _read_duration(text: str, form: str) -> float:
    if not text or len(text) > MAX_LENGTH:
        return math.nan
    sign = -1.0 if text[0] == "-" else 1.0
    text = text.lstrip("-")
    if text == "0":  # in any unit
        return 0.0
    if match := CLOCK.fullmatch(text):
        first, second, third = float(match["first"]), float(match["second"]), match["third"]
        if third is None and form == "m:s":
            return sign * (60 * first + second)
        return sign * (3600 * first + 60 * second + float(third or 0))
    if match := DAYS_AND_CLOCK.fullmatch(text):
        return sign * (DAY * float(match["days"]) + _read_duration(match["clock"], "h:m"))
    if match := ISO.fullmatch(text):
        parts = [(match[key], SECONDS[key]) for key in "dhms" if match[key]]
        return sign * sum(float(number) * seconds for number, seconds in parts) if parts else math.nan
    return sign * _read_words(text.lower())


def _read_words(text: str) -> float:
    """Return the seconds of a text such as ``2 h 30 min``."""
    total, at = 0.0, 0
    while at < len(text):
        match = WORD.match(text, at)
        if match is None or match[2] not in SECONDS:
            return math.nan
        total += float(match[1].replace(",", ".")) * SECONDS[match[2]]
        at = match.end()
    return total
