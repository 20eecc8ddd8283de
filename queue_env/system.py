"""One simulated system under one policy: the kernel's memory, fed with chunks of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from queue_env.kernel import layout
from queue_env.kernel.entry_points import entry_point
from queue_env.scenarios import CLOCKS
from queue_env.settings import Setting
from queue_env.workload import Chunk

CLOCK_CODES = dict(zip(CLOCKS, (layout.QUEUE_CLOCK, layout.FRACTIONAL_CLOCK, layout.SOJOURN_CLOCK), strict=True))
FIRST_SLOTS = 256
_NO_PATIENCE = np.zeros(0)
_NEVER = 2**62


class System:
    """The state of one run of one policy.

    Args:
        setting: the policy, resolved for the system.
        clock: the patience clock, or None where no job has patience.
        counted: half-open range of job numbers that enter the statistics.
        rows: rows of statistics; counted jobs are cut into so many batches of equal length.
        recorded: jobs of which a record is kept, 0 for none; then `counted` is all of them.
        relative: whether the times of each chunk count from the last arrival of the chunk before.
        window_to: the job at whose arrival the window of time averages ends; None for the end of the run. It begins
            with the arrival of the first counted job.
        horizon: absolute time at which the run ends at the latest.
        slots: jobs there is room for at first.
        marks: times at which response times are counted besides.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        clock: str | None = None,
        counted: tuple[int, int],
        rows: int = 1,
        recorded: int = 0,
        relative: bool = False,
        window_to: int | None = None,
        horizon: float = np.inf,
        slots: int = FIRST_SLOTS,
        marks: NDArray[np.float64] | None = None,
    ) -> None:
        self.setting = setting
        user = setting.policy.user
        self._run = entry_point(setting.kernel["family"], None if user is None else user.function)
        self.memory = layout.allocate(slots, rows, recorded, setting.parameters.copy(), marks)
        values: dict[str, float] = dict(setting.kernel)
        values |= {
            "speed": setting.speed,
            "spare": setting.spare,
            "share": 1.0,
            "clock": layout.NO_CLOCK if clock is None else CLOCK_CODES[clock],
            "relative": relative,
            "horizon": horizon,
            "last_given": np.nan,
            "counted_from": counted[0],
            "counted_to": counted[1],
            "pending": counted[1] - counted[0],
            "rows": rows,
            "recording": recorded > 0,
            "window_from": counted[0],
            "window_to": _NEVER if window_to is None else window_to,
        }
        values |= dict.fromkeys(("anchor", "partial", "low_level", "high_full", "partial_level"), -1)
        values |= dict.fromkeys(("anchor_finish", "partial_finish", "switch_time"), np.inf)
        for name, value in values.items():
            self.memory.system[name] = value

    @property
    def pending(self) -> int:
        """Counted jobs that have not left yet."""
        return int(self.memory.system["pending"][0])

    @property
    def now(self) -> float:
        """Time since the workload's zero."""
        system = self.memory.system[0]
        return float(system["origin"] + (system["origin_low"] + system["now"]))

    def feed(self, chunk: Chunk) -> bool:
        """Run over a chunk of arrivals; returns whether the run is over.

        Raises:
            ValueError: a user's allocation set rates that are not allowed.
        """
        patience = _NO_PATIENCE if chunk.patience is None else chunk.patience
        return self._advance(chunk.arrival_times, chunk.sizes, patience)

    def drain(self) -> bool:
        """Let the jobs present go, with no more arrivals; returns True."""
        self.memory.system["draining"] = 1
        return self._advance(_NO_PATIENCE, _NO_PATIENCE, _NO_PATIENCE)

    def _advance(self, *arrays: NDArray[np.float64]) -> bool:
        self.memory.system["next"] = 0
        self.memory.system["fresh"] = 1
        status = layout.GROW
        while status == layout.GROW:
            status = self._run(self.memory, *arrays)
            if status == layout.GROW:
                self.memory = layout.enlarge(self.memory)
        if status == layout.BAD_RULE:
            raise ValueError(f"policy {self.setting.policy.label}: {self._bad_rule()}")
        return status == layout.DONE

    def _bad_rule(self) -> str:
        kernel = self.setting.kernel
        if kernel["family"] == layout.RATES:
            return (
                f"its rates are not allowed; allowed: 0 <= v <= 1 for every job, a sum of at most {kernel['servers']}, "
                "and a time to hold them that is positive and long enough for the clock to move"
            )
        return f"its {'rate' if kernel['family'] == layout.ANCHOR else 'index'} is NaN; allowed: a number"

    def counted_present(self) -> NDArray[np.int64]:
        """Return how many counted jobs are in the system, shape (rows,)."""
        system, jobs = self.memory.system[0], self.memory.jobs
        numbers = jobs["number"][(jobs["number"] >= system["counted_from"]) & (jobs["number"] < system["counted_to"])]
        span = system["counted_to"] - system["counted_from"]
        rows = (numbers - system["counted_from"]) * system["rows"] // span
        return np.bincount(rows, minlength=int(system["rows"]))

    def measures(self) -> dict[str, float]:
        """Return the length of the window of time averages, the areas in it, and how far Little's law is off.

        The law in its sample-path form: the integral of the number in system is the sum of the times that jobs spend
        in it.
        """
        system = self.memory.system[0]
        if system["window_state"] == 2:
            end, number, busy, served = (
                system[name] for name in ("window_end", "window_number_end", "window_busy_end", "window_served_end")
            )
        else:
            end = self.now
            number, busy, served = system["number_area"], system["busy_area"], system["served"]
        jobs = self.memory.jobs
        ages = system["now"] - jobs["arrival"][jobs["number"] >= 0]
        total = float(system["number_area"])
        gap = abs(total - float(system["sojourn"]) - float(ages.sum())) / total if total > 0 else 0.0
        return {
            "window": float(end - system["window_start"]),
            "number_area": float(number - system["window_number"]),
            "busy_area": float(busy - system["window_busy"]),
            "served_in_window": float(served - system["window_served"]),
            "little_gaps": gap,
        }

    def state(self) -> dict[str, NDArray[Any]]:
        """Return a copy of everything, between two chunks: `restore` continues from there bit for bit."""
        return {name: array.copy() for name, array in self.memory._asdict().items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a `state()` of a system with the same policy and servers.

        Raises:
            ValueError: the state is of another kind of system.
        """
        system = self.memory.system[0]
        for name in (*self.setting.kernel, "speed", "spare", "clock"):
            found, own = state["system"][name][0].item(), system[name].item()
            if found != own:
                raise ValueError(f"state: {name}={found}, allowed: {own}, that of {self.setting.policy.label}")
        if not np.array_equal(state["parameters"], self.setting.parameters):
            allowed = f"{self.setting.parameters}, those of {self.setting.policy.label}"
            raise ValueError(f"state: parameters={state['parameters']}, allowed: {allowed}")
        self.memory = layout.Memory(**{name: np.array(state[name]) for name in layout.Memory._fields})


def compile_for(setting: Setting, clock: str | None) -> None:
    """Run a policy over one job, so that the kernel is compiled for it before a run begins.

    Raises:
        ValueError: as `System.feed`.
    """
    one = np.ones(1)
    System(setting, clock=clock, counted=(0, 1))._advance(one, one, one)
