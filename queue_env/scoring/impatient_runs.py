"""Runs of many overloaded servers with impatient jobs, at several numbers of servers, which can be interrupted."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from queue_env.comparison import Comparison
from queue_env.distributions import Law, law
from queue_env.distributions.checks import refuse
from queue_env.progress import Advance, job_progress
from queue_env.scenarios import Scenario
from queue_env.simulator import simulate
from queue_env.workload import check_servers

__all__ = ["DEFAULT_LOAD", "DEFAULT_SERVERS", "POLICIES", "Runs", "exponential", "weibull"]

POLICIES = ("fcfs", "lcfs", "srpt")
DEFAULT_LOAD = 1.4
DEFAULT_SERVERS = (50, 200, 1000)
STREAMS = 10  # independent streams, whose spread gives the intervals
SETTLED = 100  # mean service times of the warm-up: large jobs hold their servers for long


@dataclass(frozen=True, kw_only=True)
class Runs:
    """How systems are simulated, the same for all points of a figure.

    Attributes:
        load: ρ, above 1.
        servers: numbers of servers, increasing.
        jobs: counted jobs of each system under each policy, at least one a stream.
        seed: of the streams: all systems of one figure meet the same random numbers.
        threads: to run on; one for each core if not given.
        progress: whether to show a bar; only on a terminal, if not given.
        checkpoint: directory that keeps what is finished of each system, and from which the same runs go on.

    Raises:
        ValueError: an argument is not allowed.
    """

    load: float = DEFAULT_LOAD
    servers: Sequence[int] = DEFAULT_SERVERS
    jobs: int = 4_000_000
    seed: int = 0
    threads: int | None = None
    progress: bool | None = None
    checkpoint: Path | None = None

    def __post_init__(self) -> None:
        if not self.load > 1:
            refuse("impatient", "load", "above 1 (overload)", self.load)
        if self.jobs < STREAMS:
            refuse("impatient", "jobs", f"at least {STREAMS}, one for each stream", self.jobs)
        if not self.servers:
            refuse("impatient", "servers", "at least one number", self.servers)
        object.__setattr__(self, "servers", tuple(sorted({check_servers(number) for number in self.servers})))

    def simulate(
        self, label: str, servers: int, sizes: Law, patience: Law, policies: Sequence[str] = POLICIES
    ) -> Comparison:
        """Simulate one system of laws of mean 1 under several policies.

        Args:
            label: what tells the system from the others of the figure, apart from the number of servers.
            servers: number of servers.
            sizes: law of the sizes.
            patience: law of the patience.
            policies: names of policies.

        Raises:
            ValueError: the checkpoint is of other runs.
            KeyboardInterrupt: interrupted; says where to go on from.
        """
        model = Scenario(f"{label}-{servers}", servers, self.load, sizes, patience)
        options: dict[str, Any] = {"jobs": self.jobs, "seed": self.seed, "threads": self.threads, "streams": STREAMS}
        options["warmup"] = math.ceil(SETTLED * model.arrival_rate)
        kept = None if self.checkpoint is None else self.checkpoint / f"{quote(model.name, safe='=,')}.npz"
        try:
            results: Comparison = simulate(model, list(policies), **options, progress=False, checkpoint=kept)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._where_to_go_on()) from None
        if any(result.interrupted for result in results.values()):
            raise KeyboardInterrupt(self._where_to_go_on())
        return results

    @contextmanager
    def bar(self, systems: int, policies: int = len(POLICIES)) -> Iterator[Advance]:
        """Show how far so many systems under so many policies are; yields what is to be told of jobs simulated."""
        with job_progress(systems * policies * self.jobs, "simulating", self.progress) as advance:
            yield advance

    def _where_to_go_on(self) -> str:
        also = "" if self.checkpoint is None else f"; the same command goes on from what is in {self.checkpoint}"
        return f"no figure was drawn{also}"


def weibull(shape: float) -> Law:
    """The Weibull law of this shape and of mean 1."""
    return law({"law": "weibull", "shape": shape, "mean": 1.0})


def exponential() -> Law:
    """The exponential law of mean 1."""
    return weibull(1.0)
