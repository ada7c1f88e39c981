"""Times of day and durations against the standard library."""

from datetime import datetime, timedelta

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kernelweave.labeling.clock import DAY, parse_durations, parse_times


def test_times_are_those_that_the_standard_library_reads():
    seconds = np.random.default_rng(0).integers(0, DAY, 50)
    moments = [datetime(2024, 1, 1) + timedelta(seconds=int(second)) for second in seconds]
    assert_array_equal(parse_times([moment.strftime("%H:%M:%S") for moment in moments]), seconds)
    assert_array_equal(parse_times([moment.strftime("%H:%M") for moment in moments]), seconds // 60 * 60)
    assert_array_equal(parse_times([moment.strftime("%I:%M:%S %p") for moment in moments]), seconds)


@pytest.mark.parametrize(
    "text", ["9:30", "24:00", "12:60", "13:00 pm", "0:15 am", "12:30:61", "noon", "", "1" * 99_999]
)
def test_what_is_no_time_of_day_is_not_read(text):
    assert np.isnan(parse_times([text])).all()


@pytest.mark.parametrize(
    "text, delta",
    [
        ("1:30", timedelta(hours=1, minutes=30)),
        ("0", timedelta(0)),
        ("100:05:09", timedelta(hours=100, minutes=5, seconds=9)),
        ("-0:30", -timedelta(minutes=30)),
        ("2h30m", timedelta(hours=2, minutes=30)),
        ("1.5 hours", timedelta(hours=1.5)),
        ("1 week 2 days", timedelta(days=9)),
        ("90 sec.", timedelta(seconds=90)),
        ("2 days 01:02:03", timedelta(days=2, hours=1, minutes=2, seconds=3)),
        ("P1DT2H3M4.5S", timedelta(days=1, hours=2, minutes=3, seconds=4.5)),
    ],
)
def test_durations_are_seconds(text, delta):
    assert parse_durations([text], "h:m")[0] == pytest.approx(delta.total_seconds(), rel=1e-15)


def test_beside_cells_of_three_parts_two_are_minutes_and_seconds():
    assert_array_equal(parse_durations(["59:30", "1:00:00"], "m:s"), [3570, 3600])


@pytest.mark.parametrize("text", ["3 kg", "P", "PT", "1:75", "h", "", "5 days 5", "1 h" * 50_000])
def test_what_is_no_duration_is_not_read(text):
    assert np.isnan(parse_durations([text], "h:m")).all()
