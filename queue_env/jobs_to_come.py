"""Where the jobs of one system come from: its endless stream, or a workload handed in for one episode."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from queue_env.config import EnvConfig
from queue_env.kernel.env_layout import GIANT_FACTOR, GIANT_SIZE, GIANT_WEIGHT, NEED_ARRIVALS, NEED_SIZES, Batch
from queue_env.kernel.env_supply import supply_arrivals, supply_sizes
from queue_env.kernel.layout import Array
from queue_env.workload import Workload

__all__ = ["CHUNK", "GIANTS", "JobsToCome", "giant_columns"]

# Jobs in memory; the same for every environment, so that rounding is the same too.
CHUNK = 500
GIANTS = 64  # first jobs of big-job episodes in memory


def giant_columns(config: EnvConfig, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what the kernel needs to know of first jobs of given sizes, shape (3, count).

    An episode whose first job has size x, drawn with density q (log-uniform), is weighted by f(x)/q(x).
    """
    low, high = config.big_sizes
    law = config.scenario.sizes
    columns = np.empty((3, len(sizes)))
    columns[GIANT_SIZE] = sizes
    columns[GIANT_FACTOR] = law.cdf(sizes)
    columns[GIANT_WEIGHT] = law.pdf(sizes) * sizes * np.log(high / low)
    return columns


class JobsToCome:
    """The jobs to come of one system, written into its rows of the kernel's memory when they are needed.

    Args:
        config: the environment's arguments.
        seed: of the stream; it is a function of the seed alone.
    """

    def __init__(self, config: EnvConfig, seed: np.random.SeedSequence) -> None:
        self._config = config
        self._stream = config.scenario.stream(seed)
        key = (*seed.spawn_key, _GIANT_KEY)
        self._giants = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=key))
        self._workload: Workload | None = None
        self._taken = 0

    def give(self, workload: Workload) -> None:
        """Let the jobs of the next episode be those of a workload."""
        self._workload, self._taken = workload, 0

    def open(self, memory: Batch, b: int) -> None:
        """Forget the jobs in memory; those of a workload that has been given come next, if there is one."""
        s = memory.systems[b]
        s["next"] = s["filled"] = s["next_size"] = s["sizes_filled"] = 0
        s["given"] = self._workload is not None
        s["last_chunk"] = 0

    def forget_giants(self, memory: Batch, b: int) -> None:
        """Forget the first jobs in memory."""
        memory.systems[b]["next_giant"] = memory.systems[b]["giants_filled"] = 0

    def close_workload(self, memory: Batch, b: int) -> None:
        """Go back to the stream."""
        self._workload = None
        self.open(memory, b)

    def fill(self, memory: Batch, b: int, need: int) -> None:
        """Write what is needed of `NEED_ARRIVALS` and `NEED_SIZES`; of a workload, the next jobs."""
        if self._workload is not None:
            self._fill_given(memory.systems[b], memory.chunks[b], self._workload)
            return
        if need & NEED_ARRIVALS:
            patience = _NONE
            if self._config.scenario.patience is not None:
                patience = self._stream.take("patience", CHUNK)
            supply_arrivals(memory.systems, memory.chunks, b, self._stream.take("arrivals", CHUNK), patience)
        if need & NEED_SIZES:
            supply_sizes(memory.systems, memory.chunks, b, self._stream.take("sizes", CHUNK))

    def begin_gap(self, memory: Batch, b: int) -> None:
        """Let the next job come a whole gap after the last arrival, which has been set to now; none in a workload.

        The gap that has begun in memory is passed over: it is known to be longer than what has passed of it.
        """
        s = memory.systems[b]
        s["next"] = min(s["next"] + 1, s["filled"])
        if s["next"] == s["filled"]:
            self.fill(memory, b, NEED_ARRIVALS)
        else:
            s["base"] = s["last_arrival"] - memory.chunks[b, s["next"] - 1]["arrival"]

    def next_size(self, memory: Batch, b: int, size: float) -> None:
        """Let the next job be of a given size."""
        s = memory.systems[b]
        if s["next_size"] == s["sizes_filled"]:
            self.fill(memory, b, NEED_SIZES)
        memory.chunks[b, s["next_size"]]["size"] = size

    def fill_giants(self, memory: Batch, b: int) -> None:
        """Write the next first jobs of big-job episodes."""
        low, high = np.log(self._config.big_sizes)
        sizes = np.exp(low + (high - low) * self._giants.random(GIANTS))
        memory.giants[b] = giant_columns(self._config, sizes)
        s = memory.systems[b]
        s["next_giant"], s["giants_filled"] = 0, GIANTS

    def state(self) -> dict[str, Any]:
        """Where the source is; `restore` continues from there bit for bit."""
        return {
            "stream": self._stream.state(),
            "giants": self._giants.bit_generator.state,
            "workload": self._workload,
            "taken": self._taken,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a `state()` of the source of an environment with the same arguments."""
        self._stream.restore(state["stream"])
        self._giants.bit_generator.state = state["giants"]
        self._workload, self._taken = state["workload"], state["taken"]

    def _fill_given(self, s: Any, chunk: Array, workload: Workload) -> None:
        part = slice(self._taken, self._taken + CHUNK)
        count = len(workload.sizes[part])
        chunk["arrival"][:count] = workload.arrival_times[part]
        chunk["size"][:count] = workload.sizes[part]
        if workload.patience is not None:
            chunk["patience"][:count] = workload.patience[part]
        elif self._config.scenario.patience is not None:
            chunk["patience"][:count] = np.inf
        self._taken += count
        # A workload's times count from its own zero, whatever the clock's origin is.
        s["base"] = -s["origin"]
        s["next"] = s["next_size"] = 0
        s["filled"] = s["sizes_filled"] = count
        s["last_chunk"] = self._taken == len(workload)


_NONE = np.zeros(0)
_GIANT_KEY = 2**31 + 3  # beside those of the stream
