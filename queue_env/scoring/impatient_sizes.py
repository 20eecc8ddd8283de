"""Which sizes are served: P[served | size] of SRPT as the servers become many, which tends to a step at τ.

The step is the state-space collapse of [I], Dong and Ibrahim, "On the SRPT scheduling discipline in many-server queues
with impatient customers" (2021), Theorem 2: jobs up to τ do not wait, larger ones all abandon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from queue_env import theory
from queue_env.by_size import SizeClasses
from queue_env.result import Result
from queue_env.scoring.impatient_runs import Runs, exponential, weibull

__all__ = ["SizePanel", "served_by_size"]

POLICIES = ("srpt", "fcfs")
LEAST_JOBS = 400  # in a class that is shown
_ENDS = (1 / 8, 4.0)  # of the classes, in units of τ
_CLASSES = 80


@dataclass(frozen=True, eq=False)
class SizePanel:
    """P[served | size] for one law of sizes.

    Attributes:
        name: a word for files and tables.
        title: what is the same all over the panel.
        threshold: τ, where SRPT's limit falls from 1 to 0.
        blind: 1/ρ, the limit of fcfs for all sizes.
        curves: policy, number of servers, and what was found in classes of sizes.
    """

    name: str
    title: str
    threshold: float
    blind: float
    curves: Sequence[tuple[str, int, SizeClasses]]


def served_by_size(runs: Runs) -> list[SizePanel]:
    """Simulate SRPT for all numbers of servers, fcfs for the largest, with exponential and with Weibull(0.5) sizes.

    Patience is exponential, and all means are 1.

    Raises:
        ValueError: as `Runs.simulate`.
        KeyboardInterrupt: interrupted.
    """
    laws = {"exponential": exponential(), "weibull-0.5": weibull(0.5)}
    titles = {"exponential": "exponential service", "weibull-0.5": "Weibull(0.5) service"}
    panels = []
    with runs.bar(len(laws) * (len(runs.servers) + 1), policies=1) as advance:
        for name, sizes in laws.items():
            threshold, curves = theory.srpt_threshold(runs.load, sizes), []
            for servers in runs.servers:
                policies = POLICIES if servers == runs.servers[-1] else POLICIES[:1]
                results = runs.simulate(f"impatient-collapse-{name}", servers, sizes, exponential(), policies)
                advance(runs.jobs * len(results))
                curves += [(policy, servers, _classes(result, threshold)) for policy, result in results.items()]
            title = f"{titles[name]}, exponential patience"
            panels.append(SizePanel(name, title, threshold, 1.0 / runs.load, curves))
    return panels


def _classes(result: Result, threshold: float) -> SizeClasses:
    """P[served | size] around τ, in classes of at least `LEAST_JOBS` jobs."""
    fine = result.by_size(threshold * np.geomspace(*_ENDS, _CLASSES))
    edges, gathered = [fine.edges[0]], 0
    for edge, jobs in zip(fine.edges[1:], fine.jobs, strict=True):
        gathered += int(jobs)
        if gathered >= LEAST_JOBS:
            edges.append(edge)
            gathered = 0
    return result.by_size(edges if len(edges) > 1 else fine.edges[[0, -1]])
