"""How many runs of each class: against another optimiser; and what replications make of them.

Of the statistical assertions, ten are of 99.99 % intervals: correct code would fail for a fraction of at most 0.001
of the choices of seeds.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

from queue_env import law
from queue_env.scoring import pilot
from queue_env.scoring.blocks import Replication
from queue_env.scoring.decomposition import _sums
from queue_env.scoring.pilot import Replicator
from queue_env.scoring.strata import Strata

Floats = NDArray[np.float64]

STRATA = Strata(law({"law": "pareto", "alpha": 1.5, "mean": 1.0}), np.array([1.0, 0.5, 0.1, 0.02, 1e-3, 0.0]))
Z = 3.9  # two-sided, 99.99 %


def moments(seed: int, columns: int = 3) -> pilot._Moments:
    rng = np.random.default_rng(seed)
    mean = rng.uniform(0.2, 1, (len(STRATA), columns)) * np.array([1, 3, 10, 30, 200])[:, None]
    variance = (mean * rng.uniform(0.2, 2, mean.shape)) ** 2
    return pilot._Moments(mean, variance, mean, np.full(len(STRATA), 0.2), np.array([1.0, 3, 20, 100, 2000]))


def sums(values: list[Floats], lost: list[Floats] | None = None) -> pilot.Seen:
    """Sums over runs that have found these values, `(runs, columns)` of each class, and taken three jobs each."""
    lost = [np.zeros(len(v)) for v in values] if lost is None else lost
    runs = np.array([len(v) for v in values])
    return pilot.Seen(
        totals=np.array([v.sum(axis=0) for v in values]),
        squares=np.array([(v**2).sum(axis=0) for v in values]),
        lost=np.array([part.sum() for part in lost]),
        lost_squares=np.array([(part**2).sum() for part in lost]),
        lost_totals=np.array([part @ v for part, v in zip(lost, values, strict=True)]),
        paces=np.zeros(values[0].shape[1] + 2),
        jobs=3 * runs,
        runs=runs,
    )


@pytest.mark.parametrize("seed", range(5))
def test_no_other_numbers_of_runs_take_fewer_jobs(seed: int) -> None:
    """Beside SciPy's optimiser for constraints; no variance is believed to be very small."""
    found, wanted = moments(seed), np.array([0.02, 0.04, 0.03])
    probabilities = STRATA.probabilities
    allowed = pilot.PLANNED * (probabilities @ found.mean * wanted / pilot._FACTOR) ** 2
    counts = pilot._least_counts(found, probabilities, wanted)
    within = probabilities[:, None] ** 2 * (found.variance + (0.2 * found.mean) ** 2)
    assert np.all((within / counts[:, None]).sum(axis=0) <= allowed * (1 + 1e-9))
    best = optimize.minimize(
        lambda logs: np.log(np.exp(logs) @ found.jobs),
        np.log(counts) + 0.5,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda logs: 1 - (within / np.exp(logs)[:, None]).sum(axis=0) / allowed},
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert best.success
    assert counts @ found.jobs == pytest.approx(np.exp(best.fun), rel=0.02)


@pytest.mark.parametrize("counts", [[3.0, 2.5, 0.4, 0.3, 0.2], [0.5, 0.2, 0.2, 0.05, 0.01]])
def test_classes_are_drawn_as_often_as_is_asked_for(counts: list[float]) -> None:
    rng, repetitions = np.random.default_rng(1), 20_000
    drawn = np.zeros(len(STRATA))
    for _ in range(repetitions):
        runs = STRATA.draw_runs(rng, np.array(counts), 4)
        drawn += np.bincount(runs.classes, minlength=len(STRATA))
        assert np.all(runs.sizes >= STRATA.edges[runs.classes] * (1 - 1e-9))
        assert np.all(runs.sizes <= STRATA.edges[runs.classes + 1] * (1 + 1e-9))
    # The number of a class varies by less than a Poisson number.
    assert np.all(abs(drawn / repetitions - counts) <= Z * np.sqrt(np.array(counts) / repetitions))


@pytest.mark.parametrize("counts", [[3.0, 2.5, 0.4, 0.3, 0.2], [0.5, 0.2, 0.2, 0.05, 0.01]])
@pytest.mark.parametrize("thought", [1.0, 0.5, 0.0])
def test_what_is_thought_of_a_run_does_not_move_the_mean(thought: float, counts: list[float]) -> None:
    """Of runs that find the mean of their class, less what they have lost by cuts, and a normal deviation.

    The thought helps.
    """
    rng, repetitions, found = np.random.default_rng(2), 20_000, moments(7, columns=2)
    made, none, pace = [], np.zeros((len(STRATA), 2)), np.array([2.0, 0.5])
    for _ in range(repetitions):
        classes = STRATA.draw_runs(rng, np.array(counts), 4).classes
        totals, runs = none.copy(), np.bincount(classes, minlength=len(STRATA))
        noise = rng.standard_normal((len(classes), 2)) * np.sqrt(found.variance[classes])
        coins = 2.0 * rng.integers(2, size=len(classes)) - 1.0
        np.add.at(totals, classes, found.mean[classes] + noise - coins[:, None] * pace)
        lost = np.bincount(classes, coins, len(STRATA))
        made.append(Replication(totals, none, lost, lost, none, none, np.array(counts), runs, runs, 0))
    known = pilot.Known(thought * found.mean, thought * pace)
    sums = _sums(made, [known] * repetitions, cast(Replicator, STRATA))
    exact = STRATA.probabilities @ found.mean
    assert np.all(abs(sums.mean(axis=0) - exact) <= Z * sums.std(axis=0) / np.sqrt(repetitions))
    foreseen = (STRATA.probabilities[:, None] ** 2 * found.variance / np.array(counts)[:, None]).sum(axis=0)
    squares = (sums - exact) ** 2
    error = Z * squares.std(axis=0) / np.sqrt(repetitions)
    if thought == 1.0:  # then which classes happen to have a run does not matter
        assert np.all(abs(squares.mean(axis=0) - foreseen) <= error)


def test_moments_of_classes_with_many_runs_are_their_own() -> None:
    rng = np.random.default_rng(3)
    values = [rng.normal(k, 1 + k / 4, (400, 2)) for k in range(4)]
    found = pilot._moments(sums(values), Nothing())
    np.testing.assert_allclose(found.mean, [v.mean(axis=0) for v in values])
    np.testing.assert_allclose(found.variance, [v.var(axis=0, ddof=1) for v in values])
    np.testing.assert_allclose(found.jobs, 3.0)


def test_a_class_with_few_runs_takes_the_variance_within_its_neighbours() -> None:
    """Each about the mean of its own, or where the mean rises, classes would seem to vary by that."""
    values = [np.array([[1.0], [3.0]] * 20), np.array([[102.0]]), np.array([[201.0], [203.0]] * 20), np.array([[9.0]])]
    found = pilot._moments(sums(values), Short())
    assert found.variance[1, 0] == pytest.approx(80 / 78)  # of 40 values one away from their mean, twice
    assert found.known[[0, 2], 0].tolist() == [2.0, 202.0]
    assert found.known[[1, 3], 0].tolist() == [0.0, 0.0]  # few runs of its own are no knowledge


def test_what_is_not_known_of_a_class_gives_it_runs() -> None:
    found, wanted = moments(3), np.array([0.02, 0.04, 0.03])
    counts = pilot._least_counts(found, STRATA.probabilities, wanted)
    found.known[3] = 0.0
    assert pilot._least_counts(found, STRATA.probabilities, wanted)[3] > 1.2 * counts[3]


def test_a_class_whose_runs_have_all_found_the_same_may_yet_find_what_the_next_does() -> None:
    values = [np.zeros((400, 1)), np.zeros((400, 1)), np.array([[0.0], [1.0]] * 200), np.ones((400, 1))]
    variance = pilot._moments(sums(values), Nothing()).variance[:, 0]
    assert variance[2] == pytest.approx(100 / 399)
    np.testing.assert_allclose(variance, variance[2] / np.array([16, 4, 1, 4]))


def test_long_runs_that_few_have_been_of_are_foreseen_at_a_pace() -> None:
    """The pace of those that there have been, with what cuts have taken off."""
    rng = np.random.default_rng(4)
    coins = 2.0 * rng.integers(2, size=40) - 1.0
    values = [np.zeros((40, 1)), np.zeros((40, 1)), 5.0 - 3.0 * coins[:, None], np.full((2, 1), 9.0)]
    seen = sums(values, [np.zeros(40), np.zeros(40), coins, np.zeros(2)])._replace(paces=np.array([6.0, 2.0, 42.0]))
    found = pilot._moments(seen, Nothing())
    assert seen.pace.tolist() == [3.0]
    assert found.mean[2, 0] == pytest.approx(5.0)  # as if no cut had taken anything off
    assert found.variance[:3, 0] == pytest.approx(0.0, abs=1e-12)
    assert found.mean[3, 0] == found.known[3, 0] == 1.0 + 100.0 * 3.0
    assert found.spread[3] == pilot._SPREAD_AT_A_PACE
    few = seen._replace(paces=np.array([6.0, 2.0, pilot._FEW - 1.0]))
    assert few.pace.tolist() == [0.0]
    assert pilot._moments(few, Nothing()).known[3, 0] == 0.0  # a pace that few have shown is none


class Nothing:
    """Four classes whose runs have found nothing above any time; the last is of runs that may be cut."""

    level = 2

    probabilities = np.array([0.5, 0.4, 0.09, 0.01])
    sizes = np.array([1.0, 2.0, 10.0, 100.0])

    def expected_jobs(self) -> Floats:
        return 2.0 * self.sizes

    def foreseen(self, pace: Floats) -> Floats:
        return np.where(self.sizes[:, None] > 50, 1.0 + 100.0 * pace, np.nan)

    def check(self) -> None:
        raise NotImplementedError

    def replicate(self, seed: np.random.SeedSequence, counts: Floats) -> Replication:
        raise NotImplementedError


class Short(Nothing):
    """The same of short runs."""

    sizes = np.array([1.0, 1.1, 1.2, 1.3])


def test_where_nothing_has_been_seen_all_classes_get_runs() -> None:
    seen = sums([np.zeros((3, 2))] * 4)._replace(jobs=3 * np.array([2, 4, 20, 200]))
    counts, known, work = pilot.allocate_runs(seen, Short(), np.array([0.1, 0.1]), most_jobs=1000.0)
    assert np.all(counts > 0)
    assert not known.mean.any()
    assert work == pytest.approx(1000.0)
