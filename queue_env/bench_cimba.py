"""The M/M/1 queue in cimba, the yardstick of `queue-env bench`.

Run as a process of its own, ``python -m queue_env.bench_cimba JOBS``: cimba extends numba's type inference, and does
not compile its models where another library's records are in it already.
"""

import json
import sys
import time
from typing import Any

import cimba
from cimba import inputs

LOAD = 0.9


class MM1(cimba.Model):
    """One server, first come first served, as in cimba's own documentation: the mean queue is all it measures."""

    interarrival: cimba.Input[float] = inputs.dist.exponential(mean=1 / LOAD)
    service_time: cimba.Input[float] = inputs.dist.exponential(mean=1)
    queue: cimba.Container
    mean_queue: cimba.Output[float]

    @cimba.process
    def arrivals(self) -> None:
        """Let jobs arrive."""
        while True:
            cimba.hold(self.interarrival.next())
            self.queue.put(1)

    @cimba.process
    def server(self) -> None:
        """Serve them."""
        while True:
            self.queue.get(1)
            cimba.hold(self.service_time.next())

    @cimba.on_end  # type: ignore[untyped-decorator]
    def measure(self) -> None:
        """Keep the mean number of waiting jobs."""
        self.mean_queue = self.queue.mean_level()


def measure_cimba(jobs: int) -> dict[str, Any]:
    """Run cimba's M/M/1 for about so many jobs in one replication, after a brief run that compiles it."""
    model = MM1()
    _run(model, 1000)
    began = time.perf_counter()
    mean_queue = _run(model, jobs)
    seconds = time.perf_counter() - began
    return {
        "model": "M/M/1, load 0.9",
        "policy": "fcfs (cimba)",
        "threads": 1,
        "jobs_per_second": jobs / seconds,
        "mean_response": mean_queue / LOAD + 1,
    }


def _run(model: MM1, jobs: int) -> float:
    window = cimba.Window(warmup=0, duration=jobs / LOAD)
    results = cimba.Experiment(model, replications=1, window=window, seed=1).run()
    return float(results[model].mean_queue.values.item())


if __name__ == "__main__":
    print(json.dumps(measure_cimba(int(sys.argv[1]))))
