"""What the kernel runs on: finite workloads, and endless streams of jobs cut into chunks."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from queue_env.arrivals import ArrivalProcess
from queue_env.distributions import Law
from queue_env.distributions.checks import positive, refuse

__all__ = ["MAX_SERVERS", "Chunk", "Stream", "Workload"]

FloatArray: TypeAlias = NDArray[np.float64]

MAX_SERVERS = 10_000

# A stream draws its numbers in blocks of these lengths, each twice the one before: small for short episodes,
# long enough in long runs for the cost per block to vanish.
_FIRST_BLOCK, _LAST_BLOCK = 256, 16_384

# Spawn keys of a stream's generators, above any number of children that SeedSequence.spawn() will have
# counted, so that the seed can have children of its own and the same seed always gives the same stream.
_FIRST_KEY = 2**31


class Rule(NamedTuple):
    """What a value of one kind has to satisfy: a vectorised test, and the same in words."""

    holds: Callable[[FloatArray], NDArray[np.bool_]]
    allowed: str


RULES: Mapping[str, Rule] = {
    "arrival_times": Rule(lambda x: np.isfinite(x) & (x >= 0), "finite and >= 0"),
    "sizes": Rule(lambda x: np.isfinite(x) & (x > 0), "finite and > 0"),
    "patience": Rule(lambda x: x >= 0, ">= 0 (inf is allowed)"),
}


@dataclass(frozen=True, eq=False, init=False)
class Workload:
    """A finite list of jobs: when each arrives, how large it is and, if need be, how patient.

    Args:
        arrival_times: shape (jobs,), nondecreasing, finite and >= 0, at least one job.
        sizes: shape (jobs,), finite and > 0; the service time at rate one.
        patience: shape (jobs,), >= 0 (inf: never leaves), or None where all jobs wait for ever.

    The arrays are kept as read-only float64 copies.

    Raises:
        ValueError: names the argument, the first row that is not allowed, its value and what is allowed.
    """

    arrival_times: FloatArray
    sizes: FloatArray
    patience: FloatArray | None

    def __init__(self, arrival_times: ArrayLike, sizes: ArrayLike, patience: ArrayLike | None = None) -> None:
        columns = {"arrival_times": _column("arrival_times", arrival_times), "sizes": _column("sizes", sizes)}
        if patience is not None:
            columns["patience"] = _column("patience", patience)
        jobs = len(columns["arrival_times"])
        if jobs == 0:
            refuse("workload", "arrival_times", "of at least one job", arrival_times)
        for name, values in columns.items():
            _check_column(name, values, jobs)
        row = first_decrease(columns["arrival_times"])
        if row is not None:
            before, value = columns["arrival_times"][row - 1 : row + 1].tolist()
            refuse("workload", f"arrival_times[{row}]", f"at least the one before it, {before}", value)
        object.__setattr__(self, "arrival_times", columns["arrival_times"])
        object.__setattr__(self, "sizes", columns["sizes"])
        object.__setattr__(self, "patience", columns.get("patience"))

    def __len__(self) -> int:
        return self.sizes.size

    def load(self, servers: int) -> float:
        """Total work per server and per unit of time, from the first arrival to the last.

        Raises:
            ValueError: servers is not allowed, or all jobs arrive at the same time.
        """
        speed = check_servers(servers)
        first, last = float(self.arrival_times[0]), float(self.arrival_times[-1])
        if first == last:
            refuse("workload", "arrival_times", "not all the same, for a load to be defined", first)
        return float(self.sizes.sum()) / (speed * (last - first))

    def rescaled(self, load: float, servers: int) -> Workload:
        """The same jobs at another load: the gaps between arrivals are stretched by one factor.

        Sizes and patience belong to the jobs and stay as they are; the first job arrives when it did.

        Raises:
            ValueError: load or servers is not allowed, or all jobs arrive at the same time.
        """
        factor = self.load(servers) / positive("workload", "load", load)
        start = self.arrival_times[0]
        return Workload(start + (self.arrival_times - start) * factor, self.sizes, self.patience)


class Chunk(NamedTuple):
    """Successive jobs of a stream: float64 arrays of shape (count,), in the order of `Workload`'s arguments.

    `arrival_times` count from the arrival of the last job of the chunk before (from 0 for the first chunk),
    so that they stay small however long the stream runs, and lose no digits. `patience` is None where all
    jobs wait for ever.
    """

    arrival_times: FloatArray
    sizes: FloatArray
    patience: FloatArray | None


class Stream:
    """An endless source of jobs, cut into chunks.

    Gaps, sizes and patience come from three generators of their own, so the sizes do not change with the
    arrivals. Each is drawn in blocks of lengths that do not depend on the chunks: the gaps, sizes and
    patience of the jobs are the same, bit for bit, whatever the chunking, for every process and law. The
    stream is a function of its arguments alone; `arrivals` and `seed` are copied and not changed.
    """

    def __init__(
        self, arrivals: ArrivalProcess, sizes: Law, patience: Law | None, seed: np.random.SeedSequence
    ) -> None:
        arrivals = copy.deepcopy(arrivals)
        self._sources = {
            "arrivals": _Source(arrivals.gaps, _generator(seed, 0), arrivals),
            "sizes": _Source(sizes.sample, _generator(seed, 1)),
        }
        if patience is not None:
            self._sources["patience"] = _Source(patience.sample, _generator(seed, 2))

    def chunk(self, count: int) -> Chunk:
        """The next `count` jobs.

        Raises:
            ValueError: count < 1.
        """
        patience = self.take("patience", count) if "patience" in self._sources else None
        return Chunk(np.cumsum(self.take("arrivals", count)), self.take("sizes", count), patience)

    def take(self, name: str, count: int) -> FloatArray:
        """The next `count` numbers of one kind: gaps between "arrivals", "sizes" or "patience".

        Raises:
            ValueError: count < 1, or there are no numbers of this kind.
        """
        if count < 1:
            refuse("stream", "count", ">= 1", count)
        if name not in self._sources:
            refuse("stream", "name", f"one of {', '.join(self._sources)}", name)
        return self._sources[name].take(count)

    def state(self) -> dict[str, Any]:
        """Where the stream is, JSON-able: `restore` continues from there bit for bit."""
        return {name: source.state() for name, source in self._sources.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state()` of a stream with the same arrival process and laws, of any seed.

        Raises:
            ValueError: the state is not one of a stream with the same parts (patience or none).
        """
        if set(state) != set(self._sources):
            refuse("stream", "state", f"of {', '.join(self._sources)}", list(state))
        for name, source in self._sources.items():
            source.restore(state[name])


class _Source:
    """Numbers of one kind, drawn in blocks; its state is that before the present block, and a position."""

    def __init__(
        self,
        draw: Callable[[np.random.Generator, int], FloatArray],
        rng: np.random.Generator,
        process: ArrivalProcess | None = None,
    ) -> None:
        self._draw, self._rng, self._process = draw, rng, process
        self._open_block(_FIRST_BLOCK)

    def take(self, count: int) -> FloatArray:
        if self._used + count <= self._block.size:  # the usual case, without a copy
            self._used += count
            return self._block[self._used - count : self._used]
        parts: list[FloatArray] = []
        while count > 0:
            if self._used == self._block.size:
                self._open_block(min(2 * self._block.size, _LAST_BLOCK))
            part = self._block[self._used : self._used + count]
            parts.append(part)
            self._used += part.size
            count -= part.size
        return np.concatenate(parts)

    def state(self) -> dict[str, Any]:
        return {**self._before, "block": self._block.size, "used": self._used}

    def restore(self, state: Mapping[str, Any]) -> None:
        block, used = state["block"], state["used"]
        if not 1 <= block <= _LAST_BLOCK or not 0 <= used <= block:
            refuse("stream", "state", f"of a block of 1 to {_LAST_BLOCK} and a position in it", (block, used))
        self._rng.bit_generator.state = state["generator"]
        if self._process is not None:
            self._process.restore(state["process"])
        self._open_block(block)
        self._used = used

    def _open_block(self, length: int) -> None:
        self._before: dict[str, Any] = {"generator": self._rng.bit_generator.state}
        if self._process is not None:
            self._before["process"] = self._process.state()
        self._block = self._draw(self._rng, length)
        self._used = 0


def check_servers(servers: int) -> int:
    """The number of servers as an int; a ValueError unless it is an integer from 1 to MAX_SERVERS."""
    allowed = not isinstance(servers, bool) and hasattr(servers, "__index__")
    if not allowed or not 1 <= operator.index(servers) <= MAX_SERVERS:
        refuse("queue", "servers", f"an integer from 1 to {MAX_SERVERS}", servers)
    return operator.index(servers)


def first_decrease(arrival_times: FloatArray) -> int | None:
    """The first index whose arrival is before the one of the index before, or None where all are in order."""
    rows = np.flatnonzero(arrival_times[1:] < arrival_times[:-1])
    return int(rows[0]) + 1 if rows.size else None


def _column(name: str, values: ArrayLike) -> FloatArray:
    try:
        column = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        refuse("workload", name, "an array of numbers", values)
    if column.ndim != 1:
        refuse("workload", f"shape of {name}", "one-dimensional", column.shape)
    column.flags.writeable = False
    return column


def _check_column(name: str, values: FloatArray, jobs: int) -> None:
    if len(values) != jobs:
        refuse("workload", f"length of {name}", f"{jobs}, that of arrival_times", len(values))
    rule = RULES[name]
    rows = np.flatnonzero(~rule.holds(values))
    if rows.size:
        refuse("workload", f"{name}[{rows[0]}]", rule.allowed, float(values[rows[0]]))


def _generator(seed: np.random.SeedSequence, index: int) -> np.random.Generator:
    key = (*seed.spawn_key, _FIRST_KEY + index)
    return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=key, pool_size=seed.pool_size))
