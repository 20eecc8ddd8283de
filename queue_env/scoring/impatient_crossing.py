"""Where FCFS and SRPT wait equally long: shapes of Weibull patience and service, in the limit and for many servers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env import theory
from queue_env.scoring.impatient_runs import Runs, weibull
from queue_env.tail import Interval

__all__ = ["Crossing", "CrossingData", "impatient_crossing"]

FloatArray: TypeAlias = NDArray[np.float64]

SERVICE_SHAPES = (0.5, 1.0, 2.0)
"""Shapes of the service for which the crossing in the shape of the patience is sought."""

PATIENCE_SHAPES = (0.4, 0.6)
"""Shapes of the patience for which the crossing in the shape of the service is sought."""

CURVE_ENDS, CURVE_POINTS = (0.3, 4.0), 81
_PATIENCE_RANGE = (0.25, 1.0)  # at 1 SRPT is never behind; farther down means are made by too few jobs
_SERVICE_RANGE = (0.3, 6.0)
_STEP = 1.05  # to both sides of a crossing, for the slope
_PRECISION = 0.002  # of the logarithm of a crossing, before its interval
_MOST_SYSTEMS = 14  # simulated for one crossing


@dataclass(frozen=True)
class Crossing:
    """Where E[W] of fcfs is that of srpt.

    Attributes:
        varied: "patience" or "service", whose Weibull shape was varied.
        fixed: the shape of the other.
        servers: number of servers, or None for the limit.
        shape: the shape at the crossing, with its 95 % interval (both ends are the value in the limit); or None where
            there is no crossing in the range that was searched.
        mean_waiting: E[W] there, under srpt, in mean service times; NaN without a crossing.
    """

    varied: str
    fixed: float
    servers: int | None
    shape: Interval | None
    mean_waiting: float


@dataclass(frozen=True, eq=False)
class CrossingData:
    """The limit as a curve, service shapes and patience shapes of shape (points,), and single crossings."""

    load: float
    service: FloatArray
    patience: FloatArray
    crossings: Sequence[Crossing]


def impatient_crossing(runs: Runs) -> CrossingData:
    """Find the crossings of fcfs and srpt, in the limit and for each number of servers.

    A finite system's crossing is where the difference of both policies' mean waiting on the same jobs is zero, by
    Brent's method; all shapes are simulated with the same random numbers, so that the difference varies smoothly.
    The half-width of its interval is that of the difference over the slope.

    Raises:
        ValueError: as `Runs.simulate`.
        KeyboardInterrupt: interrupted.
    """
    service = np.geomspace(*CURVE_ENDS, CURVE_POINTS)
    patience = np.array([theory.patience_crossing(runs.load, weibull(float(shape))) for shape in service])
    sought = [("patience", shape) for shape in SERVICE_SHAPES] + [("service", shape) for shape in PATIENCE_SHAPES]
    crossings = [_limit(varied, fixed, runs.load) for varied, fixed in sought]
    with runs.bar(len(sought) * len(runs.servers) * _MOST_SYSTEMS, policies=2) as advance:
        for varied, fixed in sought:
            for servers in runs.servers:
                search = _Search(varied, fixed, servers, runs, advance)
                crossings.append(search.result())
                advance(2 * runs.jobs * (_MOST_SYSTEMS - search.simulated))
    return CrossingData(runs.load, service, patience, crossings)


def _limit(varied: str, fixed: float, load: float) -> Crossing:
    if varied == "patience":
        sizes, shape = weibull(fixed), theory.patience_crossing(load, weibull(fixed))
    else:
        found = theory.service_crossing(load, weibull(fixed))
        assert found is not None  # the hazard rate of these shapes decreases
        sizes, shape = weibull(found), found
    waiting = theory.srpt_limit(load, sizes, weibull(1.0)).mean_waiting
    assert waiting is not None
    return Crossing(varied, fixed, None, Interval(shape, shape, shape, 0.95), waiting)


class _Search:
    """The search for one crossing; what was simulated for a shape is kept."""

    def __init__(self, varied: str, fixed: float, servers: int, runs: Runs, advance: Callable[[int], None]) -> None:
        self._varied, self._fixed, self._servers = varied, fixed, servers
        self._runs, self._advance = runs, advance
        self._known: dict[float, tuple[Interval, float]] = {}

    @property
    def simulated(self) -> int:
        """Systems simulated so far."""
        return len(self._known)

    def result(self) -> Crossing:
        """Find the crossing, and its interval."""
        from scipy.optimize import brentq

        low, high = (math.log(end) for end in (_PATIENCE_RANGE if self._varied == "patience" else _SERVICE_RANGE))
        if self._difference(low) * self._difference(high) > 0:
            return Crossing(self._varied, self._fixed, self._servers, None, math.nan)
        root = float(brentq(self._difference, low, high, xtol=_PRECISION, rtol=1e-9))
        step = math.log(_STEP)
        slope = (self._difference(root + step) - self._difference(root - step)) / (2 * step)
        difference, waiting = self._at(root)
        half, shape = difference.half_width / abs(slope), math.exp(root - difference.value / slope)
        found = Interval(shape, shape * math.exp(-half), shape * math.exp(half), difference.level)
        return Crossing(self._varied, self._fixed, self._servers, found, waiting)

    def _difference(self, log_shape: float) -> float:
        return self._at(log_shape)[0].value

    def _at(self, log_shape: float) -> tuple[Interval, float]:
        """E[W] of fcfs less that of srpt, and that of srpt."""
        if log_shape not in self._known:
            shape = math.exp(log_shape)
            varied, fixed = weibull(shape), weibull(self._fixed)
            sizes, patience = (fixed, varied) if self._varied == "patience" else (varied, fixed)
            label = f"impatient-crossing-{self._varied}-{self._fixed:g}-{shape:.6f}"
            results = self._runs.simulate(label, self._servers, sizes, patience, ("fcfs", "srpt"))
            difference = results.difference("fcfs", "srpt", "mean_waiting")
            self._known[log_shape] = difference, results["srpt"].mean_waiting
            self._advance(2 * self._runs.jobs)
        return self._known[log_shape]
