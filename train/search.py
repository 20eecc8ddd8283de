"""The search of a network's weights by CMA-ES, generation by generation, and what is kept to go on with it.

Source: N. Hansen, The CMA Evolution Strategy: A Tutorial (2016), as in the library `cmaes`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from cmaes import CMA
from numpy.typing import NDArray

from queue_env.distributions.checks import refuse
from queue_env.network import Network, network_policy
from queue_env.scenarios import Scenario, scenario
from queue_env.scoring.score import TAIL_RANGE
from train.objective import make_objective

__all__ = ["REFERENCES", "Generation", "Search", "Task"]

FloatArray: TypeAlias = NDArray[np.float64]
Advance: TypeAlias = Callable[[], None]

REFERENCES = ("srpt", "dynasplit", "backlog-split")
GUARDS = ("srpt", "dynasplit")  # the tail is not to be above the worse of them, or not far above the first
STATE = (
    "anchor_size",
    "anchor_remaining",
    "anchor_age",
    "next_remaining",
    "next_age",
    "least_remaining",
    "others_work",
    "crowd",
)
MODEL = ("servers", "load", "spare")  # seen where they differ between scenarios

VALIDATION = 8  # replications on the same seeds in every generation
FRESH = 32  # replications at the end, on seeds that had no part in the search
STARTS = ("rule", "zero")
SIGMA, HIDDEN_SIGMA = 0.5, 0.3  # the first step size from a rule, without and with hidden layers
ZERO_SIGMA = 1.0  # the first step size from zero
_SEVERITY = 4.0  # what the share by which a tail exceeds the guards counts
_INPUT_SCALE = 0.5  # of weights that features are multiplied with, which go up to about ten
_KAPPA = 0.3  # of the first network, which is near backlog-split(n-1, kappa)
_SLOPE, _HIDDEN_SLOPE, _STEEP = 3.0, 1.5, 4.0  # of its switch: without a hidden layer, in it, and after it
_OWN = 7919  # beside the seed, so that no seed of another command gives the same random numbers
_CHECK, _FINAL, _SEARCH, _CMA = range(4)  # spawn keys of the seeds


@dataclass(frozen=True)
class Task:
    """What is searched, and with how much work. The result is a function of it.

    Attributes:
        scenarios: names of the scenarios; one network is for all of them.
        hidden: widths of the hidden layers.
        population: candidates of a generation.
        replications: of each candidate on each scenario.
        seed: of all random numbers.
        start: where the search begins: at a "rule" that is known to be good, or with "zero" weights.
        tail_range: times over which the tail score averages, in mean service times; it begins at 100 at most.
        within: share by which R(t) may be above srpt's, from where the range begins to 100; if not given, it may be as
            high as the worse of srpt's and dynasplit's.
    """

    scenarios: tuple[str, ...]
    hidden: tuple[int, ...]
    population: int
    replications: int
    seed: int
    start: str = "rule"
    tail_range: tuple[float, float] = TAIL_RANGE
    within: float | None = None

    @property
    def models(self) -> tuple[Scenario, ...]:
        """The scenarios."""
        return tuple(scenario(name) for name in self.scenarios)

    @property
    def features(self) -> tuple[str, ...]:
        """What the network sees."""
        seen = {"servers": "servers", "load": "load", "spare": "spare"}
        differ = [name for name in MODEL if len({getattr(model, seen[name]) for model in self.models}) > 1]
        return (*STATE, *differ)

    @property
    def scales(self) -> FloatArray:
        """What the coordinates of the search are multiplied with to be weights, shape (weights,)."""
        widths = (len(self.features), *self.hidden, 1)
        parts = [np.ones((outputs, inputs + 1)) for inputs, outputs in pairwise(widths)]
        parts[0][:, 1:] = _INPUT_SCALE
        return np.concatenate([part.ravel() for part in parts])

    @property
    def sigma(self) -> float:
        """The first step size."""
        if self.start == "zero":
            return ZERO_SIGMA
        return HIDDEN_SIGMA if self.hidden else SIGMA

    @property
    def first(self) -> FloatArray:
        """Where the search begins, in its coordinates, shape (weights,)."""
        return np.zeros(len(self.scales)) if self.start == "zero" else self._rule()

    def _rule(self) -> FloatArray:
        """Return a rule that is known to be good, shape (weights,).

        A logistic rule begins near backlog-split(n-1, 0.3), for n-1 servers are left to the others. With two numbers in
        every hidden layer, the anchor also has its server where less remains of it than of the next job, as under srpt;
        each has one of the numbers.
        """
        widths = (len(self.features), *self.hidden, 1)
        parts = [np.zeros((outputs, inputs + 1)) for inputs, outputs in pairwise(widths)]
        either = min(self.hidden, default=1) >= 2
        slope = _HIDDEN_SLOPE if self.hidden else _SLOPE
        parts[0][0, 0] = slope * np.mean([np.log(max(model.servers - 1, 1)) for model in self.models])
        parts[0][0, 1 + self.features.index("anchor_size")] = _KAPPA * slope
        parts[0][0, 1 + self.features.index("others_work")] = -slope
        if either:
            parts[0][1, 1 + self.features.index("anchor_remaining")] = -slope
            parts[0][1, 1 + self.features.index("next_remaining")] = slope
        for part in parts[1:]:
            for unit in range(1 + either):
                part[min(unit, len(part) - 1), 1 + unit] = 1.0
        if self.hidden:
            parts[-1] *= _STEEP
            parts[-1][0, 0] = (_STEEP - 1.0) * either
        return np.asarray(np.concatenate([part.ravel() for part in parts]) / self.scales)

    def network(self, coordinates: FloatArray) -> Network:
        """Return the network of a point."""
        return Network.from_vector(self.features, self.hidden, coordinates * self.scales)

    def seeds(self, *key: int, count: int) -> list[np.random.SeedSequence]:
        """Return seeds of one use, which `queue_env.score` has under no seed."""
        return np.random.SeedSequence([self.seed, _OWN], spawn_key=key).spawn(count)


@dataclass(frozen=True)
class Generation:
    """One generation.

    Attributes:
        number: from 1.
        values: of the candidates, smaller is better: the score, or the mean over scenarios of the score over srpt's,
            each larger by four times the largest share by which the tail is above what it may be.
        validation: the value of the mean of the distribution, on the same seeds in every generation.
        sigma: step size.
        point: the mean of the distribution.
    """

    number: int
    values: tuple[float, ...]
    validation: float
    sigma: float
    point: FloatArray = field(repr=False)


class Search:
    """A search that is under way.

    Args:
        task: what is searched.
        pool: on which replications run; the result does not depend on how many at once.
        file: where it is kept after every generation.
        resume: whether to go on from the file.

    Attributes:
        generations: those that there are.
        references: values of the reference policies on the seeds of the validation.

    Raises:
        ValueError: there is no decomposition for a scenario, the file is there and not to be resumed, or is of another
            search.
    """

    def __init__(self, task: Task, pool: ThreadPoolExecutor, file: Path, *, resume: bool = False) -> None:
        self.task, self._pool, self._file = task, pool, file
        kept = self._read(resume)
        self._objectives = [make_objective(model, task.tail_range) for model in task.models]
        self._check = task.seeds(_CHECK, count=VALIDATION)
        self._check_guards = self._guards(self._check, lambda: None)
        if kept is None:
            self._scales, self.references = self._measure_references()
        else:
            self._scales, self.references = np.array(kept["scales"]), kept["references"]
        seed = int(task.seeds(_CMA, count=1)[0].generate_state(1)[0])
        self._cma = CMA(task.first, task.sigma, seed=seed, population_size=task.population)
        self.generations: list[Generation] = []
        for values, validation in kept["history"] if kept else ():
            self._cma.tell(list(zip(self._ask(), values, strict=True)))
            self._note(values, validation)

    @property
    def best(self) -> Generation:
        """The generation of the least value on the seeds of the validation."""
        return min(self.generations, key=lambda generation: generation.validation)

    def steps(self, generations: int) -> int:
        """Return the replications that are still to make for so many generations and the last evaluation."""
        each = (self.task.population + len(GUARDS)) * self.task.replications + VALIDATION
        later = max(generations - len(self.generations), 0)
        return (later * each + FRESH * (1 + len(REFERENCES))) * len(self._objectives)

    def run(self, generations: int, advance: Advance) -> Iterator[Generation]:
        """Go on until there are so many generations; yield each when it is kept.

        Args:
            generations: in all.
            advance: called after each replication.
        """
        task = self.task
        while len(self.generations) < generations:
            points = self._ask()
            seeds = task.seeds(_SEARCH, len(self.generations), count=task.replications)
            values = self._values(points, seeds, self._guards(seeds, advance), advance).tolist()
            self._cma.tell(list(zip(points, values, strict=True)))
            validation = float(self._values([self._cma.mean], self._check, self._check_guards, advance)[0])
            self._note(values, validation)
            self._write()
            yield self.generations[-1]

    def final(self, advance: Advance) -> dict[str, dict[str, FloatArray]]:
        """Evaluate the best once more, and the references, on fresh seeds.

        Returns:
            For each scenario and each policy, "learned" first, the scores by replication, shape (FRESH,).
        """
        seeds = self.task.seeds(_FINAL, count=FRESH)
        learned = network_policy(self.task.network(self.best.point), name="learned")
        policies = {"learned": learned, **{name: name for name in REFERENCES}}
        found = {}
        for objective in self._objectives:
            scores = objective.measures(list(policies.values()), seeds, self._pool, advance)[:, :, 0]
            found[objective.model.name] = dict(zip(policies, scores, strict=True))
        return found

    # ---- values ----------------------------------------------------------------------------------

    def _ask(self) -> list[FloatArray]:
        return [self._cma.ask() for _ in range(self.task.population)]

    def _note(self, values: Sequence[float], validation: float) -> None:
        number, point = len(self.generations) + 1, self._cma.mean.copy()
        self.generations.append(Generation(number, tuple(values), validation, float(self._cma._sigma), point))

    def _values(
        self, points: Sequence[FloatArray], seeds: Sequence[Any], guards: Sequence[FloatArray], advance: Advance
    ) -> FloatArray:
        """Return the values of points, shape (points,)."""
        policies = [network_policy(self.task.network(point), name="learned") for point in points]
        return self._combined(self._guarded(policies, seeds, guards, advance), self._scales)

    def _guarded(
        self, policies: Sequence[Any], seeds: Sequence[Any], guards: Sequence[FloatArray], advance: Advance
    ) -> FloatArray:
        """Return the scores of policies, each larger by what its tail exceeds the guard by, (policies, scenarios)."""
        columns = []
        for objective, guard in zip(self._objectives, guards, strict=True):
            found = objective.measures(policies, seeds, self._pool, advance).mean(axis=1)
            excess = np.max(found[:, 1:] / guard, axis=1) - 1
            columns.append(found[:, 0] * (1 + _SEVERITY * np.maximum(excess, 0.0)))
        return np.column_stack(columns)

    def _guards(self, seeds: Sequence[Any], advance: Advance) -> list[FloatArray]:
        """Return for each scenario what the normalised tail is not to be above, shape (curve,)."""
        found = [made.measures(GUARDS, seeds, self._pool, advance).mean(axis=1)[:, 1:] for made in self._objectives]
        if self.task.within is None:
            return [tails.max(axis=0) for tails in found]
        return [(1 + self.task.within) * tails[GUARDS.index("srpt")] for tails in found]

    def _measure_references(self) -> tuple[FloatArray, dict[str, float]]:
        scores = self._guarded(REFERENCES, self._check, self._check_guards, lambda: None)
        scales = scores[0] if len(self._objectives) > 1 else np.ones(1)
        return scales, dict(zip(REFERENCES, self._combined(scores, scales).tolist(), strict=True))

    @staticmethod
    def _combined(scores: FloatArray, scales: FloatArray) -> FloatArray:
        return np.asarray(scores @ (1 / scales) / scores.shape[1])

    # ---- what is kept ----------------------------------------------------------------------------

    def _identity(self) -> dict[str, Any]:
        scenarios = [model.to_dict() for model in self.task.models]
        return json.loads(json.dumps({**asdict(self.task), "scenarios": scenarios}))  # type: ignore[no-any-return]

    def _read(self, resume: bool) -> Mapping[str, Any] | None:
        if not resume:
            if self._file.exists():
                found = f"train.es: {str(self._file)!r} is there, of an earlier search"
                raise ValueError(f"{found}: --resume must be given, or that file moved away")
            return None
        try:
            kept = json.loads(self._file.read_text(encoding="utf-8"))
            identity = kept["task"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"train.es: {str(self._file)!r} is no search to resume: {error}") from error
        for name, value in self._identity().items():
            if identity.get(name) != value:
                refuse("train.es", name, f"{identity.get(name)}, that of the search in {str(self._file)!r}", value)
        return dict(kept)

    def _write(self) -> None:
        document = {
            "task": self._identity(),
            "scales": self._scales.tolist(),
            "references": self.references,
            "history": [[generation.values, generation.validation] for generation in self.generations],
        }
        beside = self._file.with_name(self._file.name + ".part")
        beside.write_text(json.dumps(document), encoding="utf-8")
        os.replace(beside, self._file)
