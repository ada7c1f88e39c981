"""What is drawn of fitted models is tested beside the Displays, in tests/inspection."""

import numpy as np
from matplotlib.figure import Figure

from kernelweave.report.curves import draw_certificate, draw_path, draw_reliability

STEPS = np.arange(3)


def test_a_problem_that_is_solved_early_counts_with_its_last_values():
    long = ("a", STEPS, np.array([9.0, 4.0, 3.0]), np.array([1.0, 2.0, 3.0]), np.array([0.9, 0.5, 0.0]))
    short = ("b", STEPS[:2], np.array([5.0, 2.0]), np.array([0.0, 2.0]), np.array([1.0, 0.0]))
    _, axes = draw_certificate(Figure().subplots(2), [long, short])
    objective, bound = axes[0].get_lines()
    assert objective.get_ydata().tolist() == [14.0, 6.0, 5.0]
    assert bound.get_ydata().tolist() == [1.0, 4.0, 5.0]
    assert axes[0].get_legend().get_texts()[0].get_text() == "objective, sum of 2 problems"


def test_stages_are_lines_between_their_steps():
    problem = ("", STEPS, np.ones(3), None, np.full(3, 0.1))
    _, axes = draw_certificate(Figure().subplots(2), [problem], stages=[1, 2])
    for panel in axes:
        at = [line.get_xdata()[0] for line in panel.get_lines() if line.get_linestyle() == ":"]
        assert at == [0.5, 1.5]


def test_a_path_leaves_out_what_is_not_known():
    values = np.array([1.0, np.nan, 3.0])
    _, axes = draw_path(Figure().subplots(1), np.array([1.0, 10.0, 100.0]), [("score", values, None, False)])
    assert axes[0].containers[0].lines[0].get_xdata().tolist() == [1.0, 100.0]


def test_reliability_has_the_diagonal_and_bars_as_wide_as_the_bins():
    half = np.array([0.5])
    edges, counts = np.array([0.25, 0.75]), np.array([4])
    _, axes = draw_reliability(Figure().subplots(2), half, half, half - 0.2, half + 0.2, counts, edges)
    assert axes[0].get_lines()[0].get_ydata().tolist() == [0, 1]
    (bar,) = axes[1].patches
    assert (bar.get_x(), bar.get_width(), bar.get_height()) == (0.25, 0.5, 4)
