"""What the figures of [I] show: limits of many impatient servers as curves, simulated systems as points.

[I] is Dong and Ibrahim, "On the SRPT scheduling discipline in many-server queues with impatient customers" (2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env import theory
from queue_env.distributions import Law, law
from queue_env.result import Result
from queue_env.scoring.impatient_runs import POLICIES, Runs, exponential, weibull
from queue_env.tail import Interval

__all__ = ["FIGURES", "Curve", "Panel", "PanelData", "Point", "impatient_curves"]

FloatArray: TypeAlias = NDArray[np.float64]

CURVE_POINTS = 81


@dataclass(frozen=True)
class Panel:
    """What one panel shows.

    Attributes:
        name: a word for files and tables.
        title: what is the same all over the panel.
        axis: what varies along it.
        quantity: "mean_waiting", or "throughput" as a share of the arrivals.
        sizes, patience: law of the sizes and of the patience for a shape.
        ends: least and largest shape of the curves.
        simulated: shapes of the points. Under Pareto laws not the smallest, for which a run would have to be very
            long: few jobs there make up most of the mean.
    """

    name: str
    title: str
    axis: str
    quantity: str
    sizes: Callable[[float], Law]
    patience: Callable[[float], Law]
    ends: tuple[float, float]
    simulated: Sequence[float]


@dataclass(frozen=True, eq=False)
class Curve:
    """The limit of a policy: shapes, and values, both of shape (points,)."""

    policy: str
    shape: FloatArray
    value: FloatArray


@dataclass(frozen=True)
class Point:
    """A simulated system: the value with its 95 % interval, and the limit of many servers."""

    policy: str
    servers: int
    shape: float
    found: Interval
    limit: float


@dataclass(frozen=True, eq=False)
class PanelData:
    """A panel, and what is drawn in it."""

    panel: Panel
    curves: Sequence[Curve]
    points: Sequence[Point]


def _pareto(alpha: float) -> Law:
    return law({"law": "pareto", "alpha": alpha, "mean": 1.0})


def _always(given: Law) -> Callable[[float], Law]:
    return lambda shape: given


_WEIBULL, _PARETO = (0.3, 3.0), (1.1, 4.0)
_SERVICE = (0.4, 0.6, 1.0, 1.5, 2.0, 3.0)
_DHR = _always(weibull(0.4))
_EXPONENTIAL = _always(exponential())

FIGURES: dict[str, tuple[Panel, ...]] = {
    "impatient-waiting": (
        Panel(
            "weibull-patience", "exponential service, Weibull patience", "shape of the patience", "mean_waiting",
            _EXPONENTIAL, weibull, _WEIBULL, _SERVICE,
        ),
        Panel(
            "pareto-patience", "exponential service, Pareto patience", "shape of the patience", "mean_waiting",
            _EXPONENTIAL, _pareto, _PARETO, (1.5, 2.0, 2.5, 3.0, 4.0),
        ),
    ),
    "impatient-throughput": (
        Panel(
            "weibull-service", "Weibull service, Weibull(0.4) patience", "shape of the service", "throughput",
            weibull, _DHR, _WEIBULL, _SERVICE,
        ),
        Panel(
            "pareto-service", "Pareto service, Weibull(0.4) patience", "shape of the service", "throughput",
            _pareto, _DHR, _PARETO, (2.0, 2.5, 3.0, 4.0),
        ),
    ),
    "impatient-service": (
        Panel(
            "weibull-0.4-patience", "Weibull service, Weibull(0.4) patience", "shape of the service", "mean_waiting",
            weibull, _DHR, _WEIBULL, _SERVICE,
        ),
        Panel(
            "exponential-patience", "Weibull service, exponential patience", "shape of the service", "mean_waiting",
            weibull, _EXPONENTIAL, _WEIBULL, _SERVICE,
        ),
    ),
}  # fmt: skip
"""The panels of [I], figures 1, 2 and 3, by the name of the figure. All laws have mean 1."""


def impatient_curves(name: str, runs: Runs) -> list[PanelData]:
    """Compute the limits that a figure shows, and simulate systems that tend to them.

    Args:
        name: one of `FIGURES`.
        runs: how systems are simulated.

    Raises:
        ValueError: as `Runs.simulate`.
        KeyboardInterrupt: interrupted.
    """
    panels = FIGURES[name]
    with runs.bar(sum(len(panel.simulated) for panel in panels) * len(runs.servers)) as advance:
        return [PanelData(panel, _curves(panel, runs.load), _points(name, panel, runs, advance)) for panel in panels]


def _curves(panel: Panel, load: float) -> list[Curve]:
    shapes = np.geomspace(*panel.ends, CURVE_POINTS)
    limits = [_limits(panel, load, float(shape)) for shape in shapes]
    return [Curve(policy, shapes, np.array([limit[policy] for limit in limits])) for policy in POLICIES]


def _points(name: str, panel: Panel, runs: Runs, advance: Callable[[int], None]) -> list[Point]:
    found = []
    for servers in runs.servers:
        for shape in panel.simulated:
            limits, label = _limits(panel, runs.load, shape), f"{name}-{panel.name}-{shape:g}"
            results = runs.simulate(label, servers, panel.sizes(shape), panel.patience(shape))
            found += [
                Point(policy, servers, shape, _measured(panel.quantity, result), limits[policy])
                for policy, result in results.items()
            ]
            advance(runs.jobs * len(results))
    return found


def _limits(panel: Panel, load: float, shape: float) -> dict[str, float]:
    """The limit of each policy.

    That of lcfs is proved for patience whose hazard rate does not decrease. [I] draws it for all patience, as if it
    were exponential, and so is it here: who is not served at once has all later jobs before him.
    """
    sizes, patience = panel.sizes(shape), panel.patience(shape)
    limits = {
        "fcfs": theory.fcfs_limit(load, patience),
        "lcfs": theory.lcfs_limit(load, exponential().scaled(patience.mean)),
        "srpt": theory.srpt_limit(load, sizes, patience),
    }
    return {policy: float(getattr(limit, panel.quantity)) for policy, limit in limits.items()}


def _measured(quantity: str, result: Result) -> Interval:
    """The value of a system; the throughput, as a share of the arrivals, is that of counted jobs that are served."""
    if quantity != "throughput":
        return result.interval(quantity)
    lost = result.interval("abandonment")
    return Interval(1.0 - lost.value, 1.0 - lost.high, 1.0 - lost.low, lost.level)
