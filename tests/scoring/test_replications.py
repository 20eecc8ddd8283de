"""Sums over runs, on runs made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from queue_env.scoring.replications import Cuts, make_replication
from queue_env.scoring.strata import Runs

COLUMNS = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])  # the tail at two times, and its mean
CLASSES = np.array([0, 1, 1, 2])
FOUND = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 1.0], [3.0, 0.0, 1.0], [0.0, 5.0, 9.0]])  # above 0, 1 and 2 of the times
ABOVE = np.array([[0.0, 0.0], [3.0, 1.0], [1.0, 1.0], [14.0, 9.0]])
CUTS = Cuts(first=10.0, lasts=np.array([2.0, 16.0, 16.0, 64.0]), lost=np.array([0.0, 6.0, -6.0, 28.0]))
JOBS, COUNTS = np.array([5, 20, 40, 60]), np.array([1.0, 2.0, 0.5])


def test_sums_are_by_class() -> None:
    runs = Runs(CLASSES, np.array([1.0, 8.0, 8.0, 32.0]), np.zeros(4, np.int64))
    found = make_replication(runs, FOUND, COLUMNS, CUTS, JOBS, COUNTS, 77)
    values = ABOVE @ COLUMNS
    for k in range(3):
        mine = k == CLASSES
        np.testing.assert_allclose(found.totals[k], values[mine].sum(axis=0))
        np.testing.assert_allclose(found.squares[k], (values[mine] ** 2).sum(axis=0))
        np.testing.assert_allclose(found.lost_totals[k], CUTS.lost[mine] @ values[mine])
        assert found.lost[k] == CUTS.lost[mine].sum()
        assert found.lost_squares[k] == (CUTS.lost[mine] ** 2).sum()
        assert (found.jobs[k], found.runs[k]) == (JOBS[mine].sum(), mine.sum())
    assert found.plain == 77
    np.testing.assert_array_equal(found.counts, COUNTS)


def test_the_pace_is_of_what_long_runs_have_found_but_for_the_injected_job() -> None:
    """Runs that have added 0.25 and 0.125 jobs in a unit of the time for which they have looked, whatever was lost."""
    looked = CUTS.lasts - CUTS.lost
    above = np.column_stack([1 + 0.25 * looked, 1 + 0.125 * looked])
    exactly = np.column_stack([np.zeros(4), above[:, 0] - above[:, 1], above[:, 1]])
    runs = Runs(CLASSES, np.array([1.0, 8.0, 8.0, 32.0]), np.zeros(4, np.int64))
    paces = make_replication(runs, exactly, COLUMNS, CUTS, JOBS, COUNTS, 0).paces
    assert paces[-1] == 3  # the first is too short to be cut
    assert paces[-2] == pytest.approx(np.sqrt(looked[1:]).sum())
    np.testing.assert_allclose(paces[:-2] / paces[-2], [0.25, 0.125, 0.1875])
