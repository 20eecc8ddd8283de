"""The largest-job decomposition of a finite list of jobs, slowly and in plain Python: what the compiled runs are
tested against.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Block", "charges", "cut_into_blocks"]


@dataclass
class Block:
    """Jobs by their numbers in order of arrival, and when the block ended; inf where it has not."""

    jobs: list[int] = field(default_factory=list)
    end: float = math.inf


def cut_into_blocks(
    arrivals: Sequence[float], sizes: Sequence[float], departures: Sequence[float], level: int
) -> list[Block]:
    """Cut jobs into blocks.

    A block ends when the number present falls from level + 1 to level and the block's largest job has left; the next
    arrival begins the next.
    """
    events = [(time, 0, job) for job, time in enumerate(departures)]
    events += [(time, 1, job) for job, time in enumerate(arrivals)]
    blocks = [Block()]
    present: set[int] = set()
    for time, arriving, job in sorted(events):
        if arriving:
            present.add(job)
            if math.isfinite(blocks[-1].end):
                blocks.append(Block())
            blocks[-1].jobs.append(job)
            continue
        present.remove(job)
        block = blocks[-1]
        if len(present) == level and math.isinf(block.end) and max(block.jobs, key=lambda j: sizes[j]) not in present:
            block.end = time
    return blocks


def charges(
    arrivals: Sequence[float], sizes: Sequence[float], departures: Sequence[float], level: int, last: float
) -> list[int]:
    """Return to which job each is charged.

    It is the largest of its block of those that arrive before it leaves, before it has been there for longer than the
    last time, and before the block ends.
    """
    owners = [-1] * len(arrivals)
    for block in cut_into_blocks(arrivals, sizes, departures, level):
        for job in block.jobs:
            until = min(departures[job], arrivals[job] + last, block.end)
            rivals = [other for other in block.jobs if arrivals[other] < until]
            owners[job] = max(rivals, key=lambda other: sizes[other])
    return owners
