"""Tail curves from short replications, for tests; and their standard errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from queue_env import TailCurve, tail_curve
from queue_env.scoring import curve as curve_module
from queue_env.scoring import pilot
from queue_env.scoring import strata as strata_module

Floats = NDArray[np.float64]

LEVEL = 0.999


@contextmanager
def short_replications(segment: int = 30_000, snapshots: int = 128, replications: int = 20) -> Iterator[None]:
    """Replications whose plain run is short, few classes of sizes, and a pilot to match."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curve_module, "_WARMUP", 5_000)
        patch.setattr(curve_module, "_SEGMENT", segment)
        patch.setattr(curve_module, "_SNAPSHOTS", snapshots)
        patch.setattr(pilot, "FIRST_BATCH", replications)
        patch.setattr(pilot, "_JOBS", 1_000)
        patch.setattr(pilot, "_SHARES", (0.2,))
        patch.setattr(strata_module, "_LEAST_TAIL", 1e-12)
        yield


def small_curve(policy: Any, source: Any, t_grid: Any, **arguments: Any) -> TailCurve:
    """A curve of wide precision from few jobs."""
    with short_replications():
        defaults = {"rel_half_width": 0.2, "most_jobs": 2e6, "threads": 2}
        return tail_curve(policy, source, t_grid, **(defaults | arguments))


def student(level: float, replications: int) -> float:
    """Half of a two-sided interval in standard errors."""
    return float(special.stdtrit(replications - 1, (1 + level) / 2))


def standard_error(curve: TailCurve) -> Floats:
    """Of the tail, shape (times,)."""
    return (curve.high - curve.normalised_tail) * curve.bound / student(0.95, curve.replications)


def total_within(curve: TailCurve, level: float = LEVEL) -> bool:
    """Whether the estimate of one is within its interval."""
    value, half = curve.total
    return abs(value - 1) <= half * student(level, curve.replications) / student(0.95, curve.replications)
