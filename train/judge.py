"""The tail score of a policy under training on runs that stay the same, beside those of reference policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.scenarios import Scenario
from queue_env.scoring.agent_blocks import AgentBlocks, AgentPolicy
from queue_env.scoring.score import TAIL_RANGE
from train.objective import Objective, make_objective

__all__ = ["AGENT_RANGE", "REFERENCES", "Judge"]

FloatArray: TypeAlias = NDArray[np.float64]

REFERENCES = ("srpt", "dynasplit", "backlog-split")

_OWN = 7927  # beside the seed, so that no seed of another command gives the same random numbers
_CHECK, _FINAL = range(2)  # spawn keys of the seeds
AGENT_RANGE = (1.0, 100.0)  # of the score of an agent, which decides at every event in Python [mean service times]
_AGENT_SHARE = 0.05  # of the runs of a replication
_AGENT_SNAPSHOTS, _AGENT_WARMUP, _AGENT_APART = 128, 200, 100  # arrivals of each system before and between snapshots


@dataclass(frozen=True)
class Judge:
    """Scores policies by replications of a fixed design, on seeds that are always the same.

    A policy of the kernel meets the same jobs as the reference policies in every run, so that differences are known
    better than scores. An agent, such as a model of DQN, is run in the environment, by fewer runs on jobs of its own,
    and over times up to 100 mean service times only: a run to 10⁴ would take a minute.

    Attributes:
        models: the scenarios.
        replications: of each policy on each scenario; twice as many on the fresh seeds.
        seed: of the replications.
        pool: on which they run; results do not depend on it.
        for_agents: whether the policies under training are agents.
    """

    models: tuple[Scenario, ...]
    replications: int
    seed: int
    pool: ThreadPoolExecutor
    for_agents: bool = False
    objectives: list[Objective] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        tail_range = AGENT_RANGE if self.for_agents else TAIL_RANGE
        object.__setattr__(self, "objectives", [make_objective(model, tail_range) for model in self.models])

    def check(self, policies: Sequence[Any], advance: Callable[[], None] = lambda: None) -> FloatArray:
        """Return the scores of policies on the seeds of the training, shape (policies, scenarios).

        Args:
            policies: as for `simulate`, or agents.
            advance: called after each replication of a policy on a scenario.
        """
        return np.asarray(self._scores(policies, self._seeds(_CHECK, self.replications), advance).mean(axis=1))

    def fresh(self, policies: Mapping[str, Any], advance: Callable[[], None]) -> dict[str, dict[str, FloatArray]]:
        """Score policies on other seeds, by twice as many replications.

        Args:
            policies: as for `check`, by their names.
            advance: the same.

        Returns:
            For each scenario and each policy the scores by replication.
        """
        scores = self._scores(list(policies.values()), self._seeds(_FINAL, 2 * self.replications), advance)
        return {model.name: dict(zip(policies, scores[:, :, k], strict=True)) for k, model in enumerate(self.models)}

    def value(self, scores: FloatArray, srpt: FloatArray) -> float:
        """Return what is made small: the score, or with several scenarios the mean of the score over srpt's."""
        return float(scores[0]) if len(self.models) == 1 else float(np.mean(scores / srpt))

    def _seeds(self, key: int, count: int) -> list[np.random.SeedSequence]:
        return np.random.SeedSequence([self.seed, _OWN], spawn_key=(key,)).spawn(count)

    def _scores(
        self, policies: Sequence[Any], seeds: Sequence[np.random.SeedSequence], advance: Callable[[], None]
    ) -> FloatArray:
        """Return scores, shape (policies, seeds, scenarios)."""
        scores = np.empty((len(policies), len(seeds), len(self.models)))
        for k, objective in enumerate(self.objectives):
            for p, policy in enumerate(policies):
                if isinstance(policy, AgentPolicy):
                    for s, seed in enumerate(seeds):
                        scores[p, s, k] = _agent_score(objective, policy, seed)
                        advance()
                else:
                    scores[p, :, k] = objective.measures([policy], seeds, self.pool, advance)[0, :, 0]
        return scores


def _agent_score(objective: Objective, policy: AgentPolicy, seed: np.random.SeedSequence) -> float:
    """Return the score of an agent by one replication."""
    level, counts = 2 * objective.model.servers, _AGENT_SHARE * objective.counts
    segment = _AGENT_SNAPSHOTS * _AGENT_APART
    arguments = (level, _AGENT_WARMUP, segment, _AGENT_SNAPSHOTS, objective.columns)
    blocks = AgentBlocks(objective.model, policy, objective.strata, objective.times, *arguments)
    found = blocks.replicate(seed, counts)
    return float(blocks.probabilities @ (found.totals[:, 0] / counts))
