"""A run that can be stopped, looked at, saved and continued bit for bit: `Simulation`."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from queue_env.distributions.checks import refuse, whole
from queue_env.kernel.layout import Memory
from queue_env.plan import CHUNK, make_plan, signature
from queue_env.result import Result
from queue_env.scenarios import scenario
from queue_env.settings import set_up
from queue_env.system import System

__all__ = ["Simulation"]

_ENDLESS = 2**62


class Simulation:
    """One endless stream of a scenario's jobs under one policy: the first stream of `simulate` with the same seed.

    Args:
        source: a scenario: its name, a mapping, or a `Scenario`.
        policy: as for `simulate`.
        seed: of the stream.
        warmup: jobs that do not enter the statistics.

    Raises:
        ValueError: an argument is not allowed.

    Examples:
        >>> import queue_env
        >>> run = queue_env.Simulation("high-load-2", "dynasplit", seed=1)
        >>> run.run(10_000)
        >>> saved = run.state()
        >>> run.run(10_000)
        >>> again = queue_env.Simulation("high-load-2", "dynasplit", seed=1)
        >>> again.restore(saved)
        >>> again.run(10_000)
        >>> again.result().mean_response == run.result().mean_response
        True
    """

    def __init__(self, source: Any, policy: Any = "srpt", *, seed: int = 0, warmup: int = 0) -> None:
        self.scenario = scenario(source)
        plan = make_plan(self.scenario, [policy], jobs=1, seed=seed, warmup=warmup)
        self.seed, self.seconds = plan.seed, 0.0
        setting = set_up(plan.settings[0].policy, plan.servers, plan.spare, plan.sizes)
        self._system = System(setting, clock=plan.clock, counted=(warmup, _ENDLESS), relative=True)
        self._stream = self.scenario.stream(np.random.SeedSequence(self.seed).spawn(1)[0])

    @property
    def policy(self) -> str:
        """The policy's label."""
        return self._system.setting.policy.label

    @property
    def arrived(self) -> int:
        """Jobs that have arrived."""
        return int(self._system.memory.system["arrived"][0])

    @property
    def present(self) -> int:
        """Jobs in the system."""
        return int(self._system.memory.system["number"][0])

    @property
    def now(self) -> float:
        """Time since the start, that of the last arrival."""
        return self._system.now

    def run(self, jobs: int) -> None:
        """Go on until so many more jobs have arrived.

        Raises:
            ValueError: jobs is not a positive integer.
        """
        jobs = whole("run", "jobs", jobs, 1)
        began = time.perf_counter()
        while jobs > 0:
            count = min(jobs, CHUNK)
            self._system.feed(self._stream.chunk(count))
            jobs -= count
        self.seconds += time.perf_counter() - began

    def result(self) -> Result:
        """Return the statistics of the counted jobs that have left so far; with one row, so without intervals."""
        system, plan = self._system, self.scenario
        memory, measures = system.memory, system.measures()
        stats = memory.stats.copy()
        stats["present"] = system.counted_present()
        return Result(
            policy=self.policy,
            scenario=plan.to_dict(),
            servers=plan.servers,
            spare=plan.spare,
            load=plan.load,
            seed=self.seed,
            jobs=int(stats["counted"].sum() + stats["present"].sum()),
            simulated=self.arrived,
            streams=1,
            seconds=self.seconds,
            interrupted=False,
            sizes=plan.sizes,
            stats=stats,
            response_counts=memory.response_counts.copy(),
            slowdown_counts=memory.slowdown_counts.copy(),
            size_counts=memory.size_counts.copy(),
            **{name: np.array([value]) for name, value in measures.items()},  # type: ignore[arg-type]
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that the run's future depends on, as arrays."""
        stream = json.dumps({"stream": self._stream.state(), "identity": self._identity()})
        return {**self._system.state(), "source": np.array(stream)}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a `state()` of a simulation of the same scenario, policy and seed.

        Raises:
            ValueError: the state is of another scenario, policy or seed, or is none.
        """
        missing = [name for name in (*Memory._fields, "source") if name not in state]
        if missing:
            refuse("simulation", "state", f"one with {', '.join(missing)}", sorted(state))
        kept = json.loads(str(state["source"]))
        if kept["identity"] != self._identity():
            refuse("simulation", "state", f"of {self._identity()}", kept["identity"])
        self._system.restore(state)
        self._stream.restore(kept["stream"])

    def save(self, path: str | Path) -> None:
        """Write the state to an ``.npz`` file, beside and then renamed."""
        path = Path(path)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **self.state())  # type: ignore[arg-type]
        beside = path.with_name(path.name + ".part")
        beside.write_bytes(buffer.getvalue())
        os.replace(beside, path)

    def load(self, path: str | Path) -> None:
        """Continue from a file that `save` wrote.

        Raises:
            ValueError: as `restore`.
        """
        with np.load(path) as file:
            self.restore(dict(file))

    def _identity(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario.to_dict(),
            "policy": signature(self._system.setting.policy),
            "seed": self.seed,
        }
