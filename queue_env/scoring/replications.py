"""What a replication of the largest-job decomposition has found, in sums over its runs."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.scoring.strata import Runs

__all__ = ["Cuts", "Replication", "make_replication"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


class Cuts(NamedTuple):
    """How runs have been cut: when the first cut may come, how long blocks are foreseen to last, and what was lost.

    Attributes:
        first: time after which a run may be cut.
        lasts: `(runs,)` time.
        lost: `(runs,)` foreseen time that cuts have taken off, less what runs have won that went on; weighted.
    """

    first: float
    lasts: FloatArray
    lost: FloatArray


class Replication(NamedTuple):
    """What one replication has found.

    Attributes:
        totals: `(classes, columns)` sums over runs of the wanted functions of the numbers of counted jobs above times.
        squares: `(classes, columns)` sums of their squares.
        lost: `(classes,)` sums of the time that cuts have taken off; its mean is zero.
        lost_squares: `(classes,)` sums of its squares.
        lost_totals: `(classes, columns)` sums of its products with the functions.
        paces: `(columns + 2,)` of runs that may be cut: what jobs that arrive during the block add and in what time,
            both weighted, and how many runs there have been.
        counts: `(classes,)` expected runs.
        jobs: `(classes,)` jobs simulated in runs.
        runs: `(classes,)` how many there have been.
        plain: jobs of the plain run.
    """

    totals: FloatArray
    squares: FloatArray
    lost: FloatArray
    lost_squares: FloatArray
    lost_totals: FloatArray
    paces: FloatArray
    counts: FloatArray
    jobs: IntArray
    runs: IntArray
    plain: int


def make_replication(
    runs: Runs,
    found: FloatArray,
    columns: FloatArray,
    cuts: Cuts,
    jobs: IntArray,
    counts: FloatArray,
    plain: int,
) -> Replication:
    """Sum up runs by their classes.

    Args:
        runs: that have been made.
        found: `(runs, times + 1)` jobs above exactly k of the times.
        columns: `(times, columns)`: what is wanted are these linear functions of the jobs above times.
        cuts: how runs have been cut.
        jobs: `(runs,)`.
        counts: `(classes,)` expected runs.
        plain: jobs of the plain run.
    """
    values = _above_each(found) @ columns

    def by_class(weights: NDArray[Any]) -> NDArray[Any]:
        sums = np.zeros((len(counts), *weights.shape[1:]), weights.dtype)
        np.add.at(sums, runs.classes, weights)
        return sums

    return Replication(
        totals=by_class(values),
        squares=by_class(values**2),
        lost=by_class(cuts.lost),
        lost_squares=by_class(cuts.lost**2),
        lost_totals=by_class(cuts.lost[:, None] * values),
        paces=_paces(values, columns.sum(axis=0), cuts),
        counts=counts.copy(),
        jobs=by_class(jobs),
        runs=np.bincount(runs.classes, minlength=len(counts)),
        plain=plain,
    )


def _paces(values: FloatArray, own: FloatArray, cuts: Cuts) -> FloatArray:
    """Return what runs that may be cut have found, but for the injected job, how long they have looked, and how many.

    The first two are weighted so that a run counts in proportion to its jobs, about: its time is weighted by up to 2^i
    after i chances of a cut, and so grows as the square of what it has simulated. What a larger job has ended early
    counts as if it had looked for as long as was foreseen; those are few.

    Args:
        values: `(runs, columns)`.
        own: `(columns,)` what a job adds that is above all times, as the injected one is.
        cuts: how runs have been cut.
    """
    long = cuts.lasts > cuts.first
    looked = (cuts.lasts - cuts.lost)[long]
    weights = 1.0 / np.sqrt(looked)
    return np.concatenate([weights @ (values[long] - own), [weights @ looked, np.sum(long)]])


def _above_each(found: FloatArray) -> FloatArray:
    """Return `(runs, times)` jobs above each time, from `(runs, times + 1)` jobs above exactly k of the times."""
    return np.cumsum(found[:, ::-1], axis=1)[:, ::-1][:, 1:]
