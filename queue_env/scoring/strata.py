"""Size classes of the injected jobs, and which scenarios the largest-job decomposition holds for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.arrivals import Poisson, Renewal, arrival_process
from queue_env.distributions import Law
from queue_env.distributions.checks import refuse
from queue_env.scenarios import Scenario

__all__ = ["Runs", "Strata", "check_decomposable", "foreseen_time", "make_strata"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

_QUARTERS = (1.0, 0.75, 0.5, 0.25)  # P[S > x] at the first edges
_STEP, _FALL = 10 ** (1 / 12), 0.5  # edges grow by that ratio, or less so that P[S > x] falls to no less than half
_NEAR, _FAR = 10.0, 1000.0  # times c·t; jobs of more than that are above t nearly for sure, and need wider classes:
_LONG_STEP, _LONG_FALL = 10**0.25, 0.1
_NEGLIGIBLE = 1e-9  # of P[S > c·t]; the last class holds what is less probable
_LEAST_TAIL = 1e-300
_LEAST_UNIFORM = 1e-12


class Runs(NamedTuple):
    """The class of each run, the size that it injects, and the index of the state it starts from; each `(runs,)`."""

    classes: IntArray
    sizes: FloatArray
    states: IntArray


@dataclass(frozen=True)
class Strata:
    """Classes of sizes, (edge k, edge k+1].

    Attributes:
        sizes: their law.
        tails: shape (classes + 1,), P[S > edge], decreasing from 1.
    """

    sizes: Law
    tails: FloatArray

    def __len__(self) -> int:
        return len(self.tails) - 1

    @property
    def edges(self) -> FloatArray:
        """The edges, shape (classes + 1,); the last may be inf."""
        return np.asarray(self.sizes.tail_quantile(self.tails))

    @property
    def probabilities(self) -> FloatArray:
        """P[S in class], shape (classes,)."""
        return self.tails[:-1] - self.tails[1:]

    @property
    def medians(self) -> FloatArray:
        """The median size of each class, shape (classes,)."""
        return self.draw(np.arange(len(self)), np.full(len(self), 0.5))

    def draw(self, classes: IntArray, uniforms: FloatArray) -> FloatArray:
        """Return sizes within classes, by inversion, shape (count,): the larger the uniform, the smaller the size.

        Args:
            classes: shape (count,).
            uniforms: shape (count,), in (0, 1).
        """
        low, high = self.tails[classes + 1], self.tails[classes]
        return np.asarray(self.sizes.tail_quantile(low + uniforms * (high - low)))

    def expected_jobs(self, model: Scenario, first_cut: float) -> FloatArray:
        """A guess of the jobs that a run takes which injects a size of each class, shape (classes,).

        Args:
            model: the scenario.
            first_cut: time after which the run may be cut, and again whenever that time has doubled.
        """
        busy = foreseen_time(model, self.medians)
        busy = np.where(busy > first_cut, first_cut * (1 + np.log2(np.maximum(busy / first_cut, 1))), busy)
        return np.asarray(1 + model.arrival_rate * busy)

    def foreseen(self, model: Scenario, first_cut: float, own: FloatArray, pace: FloatArray) -> FloatArray:
        """Return what a run of each class adds at a pace, shape (classes, columns); NaN where it is not cut.

        Args:
            model: the scenario.
            first_cut: time after which a run may be cut.
            own: `(columns,)` what the injected job adds.
            pace: `(columns,)` what a unit of time adds.
        """
        lasts = foreseen_time(model, self.medians)[:, None]
        return np.where(lasts > first_cut, own + pace * lasts, np.nan)

    def draw_runs(self, rng: np.random.Generator, counts: FloatArray, states: int) -> Runs:
        """Draw which runs to make.

        The classes, each as long as its number of runs, lie side by side on a line, and one point is drawn in each
        interval of length one. So sizes are spread evenly within a class, and over the classes where there is but one
        run in several. Every state is used as often as every other, give or take one, whatever the class.

        Args:
            rng: source of randomness.
            counts: `(classes,)` expected runs of each class, > 0.
            states: number of states to start from.
        """
        ends = np.cumsum(counts)
        points = np.arange(np.ceil(ends[-1])) + rng.random(int(np.ceil(ends[-1])))
        points = points[points < ends[-1]]
        classes = np.searchsorted(ends, points, side="right")
        within = (points - (ends - counts)[classes]) / counts[classes]
        sizes = self.draw(classes, np.clip(within, _LEAST_UNIFORM, 1.0))
        return Runs(classes, sizes, rng.permutation(states)[rng.permutation(len(classes)) % states])


def foreseen_time(model: Scenario, sizes: FloatArray) -> FloatArray:
    """Return how long blocks with jobs of some sizes last, about, if these are large, shape (count,)."""
    return np.asarray(sizes / min(model.spare, 1.0))


def make_strata(sizes: Law, largest: float) -> Strata:
    """Return classes that grow by a factor of 10^(1/12), beyond ten times a size by 10^(1/4), and a last one.

    Args:
        sizes: law of the sizes, without atoms.
        largest: the size up to which jobs decide about the tail, c·t.
    """
    tails = list(_QUARTERS)
    edge = float(sizes.tail_quantile(tails[-1]))
    least = max(_NEGLIGIBLE * float(sizes.tail(largest)), _LEAST_TAIL)
    while edge < _FAR * largest:
        step, fall = (_STEP, _FALL) if edge < _NEAR * largest else (_LONG_STEP, _LONG_FALL)
        edge = min(edge * step, float(sizes.tail_quantile(max(tails[-1] * fall, least))))
        tail = float(sizes.tail(edge))
        if tail <= least or tail >= tails[-1]:
            break
        tails.append(tail)
    return Strata(sizes, np.array([*tails, 0.0]))


def check_decomposable(scenario: Scenario, caller: str) -> None:
    """Raise ValueError where the decomposition does not hold.

    Args:
        scenario: the model.
        caller: name for the message.
    """
    if scenario.patience is not None:
        refuse(caller, "patience of the scenario", "None: the tail is that of jobs that all stay", scenario.patience)
    if not scenario.load < 1:
        refuse(caller, "load of the scenario", "< 1", scenario.load)
    if scenario.sizes.has_atoms:
        allowed = "a law without atoms: of the jobs of a block one has to be the largest"
        refuse(caller, "sizes of the scenario", allowed, scenario.sizes.spec())
    if not isinstance(arrival_process(scenario.arrivals, scenario.arrival_rate), Poisson | Renewal):
        refuse(caller, "arrivals of the scenario", "poisson or renewal, which have no memory", scenario.arrivals)
