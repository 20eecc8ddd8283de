"""The state of a system in other slots, as many as are wanted: jobs and levels are numbered anew."""

from collections.abc import Mapping

import numpy as np

from queue_env.kernel.layout import COUNTED, LEVELS, Array, Ints, Memory, allocate

_HEAPS = {"service": "in_service", "worst": "worst", "waiting": "waiting", "deadlines": "deadlines"}  # and their counts
_PLACES = {name: f"{name.removesuffix('s')}_place" for name in _HEAPS}
_JOB_LINKS, _SYSTEM_JOBS = ("child", "sibling", "previous"), ("anchor", "partial")
_LEVEL_LINKS, _SYSTEM_LEVELS = ("below", "above"), ("low_level", "high_full", "partial_level")


def compact(memory: Memory, slots: int) -> Memory:
    """Return a memory of so many slots with the same jobs, which goes on as the given one would.

    Args:
        memory: of a system between two calls; its state stays as it is, and what it has counted is shared.
        slots: at least the number of jobs present.
    """
    system = memory.system.copy()
    shared = {name: getattr(memory, name) for name in COUNTED}
    small = allocate(slots, parameters=memory.parameters)._replace(system=system, **shared)
    jobs, levels = np.flatnonzero(memory.jobs["number"] >= 0), _levels_in_use(memory)
    job, level = _renumbering(jobs, len(memory.jobs)), _renumbering(levels, len(memory.jobs))
    _fill(small.jobs, memory.jobs[jobs], dict.fromkeys(_JOB_LINKS, job) | {"level": level})
    _fill(small.levels, memory.levels[levels], dict.fromkeys(_LEVEL_LINKS, level) | {"root": job})
    for name, count in _HEAPS.items():
        # Under least attained service, what is in service are levels.
        kept, new = (levels, level) if name == "service" and system["family"] == LEVELS else (jobs, job)
        _fill(getattr(small, name), getattr(memory, name)[: system[count][0]], {"slot": new})
        getattr(small, _PLACES[name])[: len(kept)] = getattr(memory, _PLACES[name])[kept]
    _move_giants(small, memory, job)
    small.order[: len(jobs)] = job[memory.order[: len(jobs)]]
    for names, new in ((_SYSTEM_JOBS, job), (_SYSTEM_LEVELS, level)):
        for name in names:
            system[name] = new[system[name]]
    system["highest"], system["free"], system["level_free"] = len(jobs), slots - len(jobs), slots - len(levels)
    small.free[: slots - len(jobs)] = np.arange(len(jobs), slots)[::-1]
    small.level_free[: slots - len(levels)] = np.arange(len(levels), slots)[::-1]
    return small


def _levels_in_use(memory: Memory) -> Ints:
    used = np.ones(len(memory.levels), np.bool_)
    used[memory.level_free[: memory.system["level_free"][0]]] = False
    return np.flatnonzero(used)


def _renumbering(kept: Ints, length: int) -> Ints:
    """Return the new number of each old one; -1 for those that are not kept, and for -1, the last entry."""
    new = np.full(length + 1, -1, np.int64)
    new[kept] = np.arange(len(kept))
    return new


def _fill(array: Array, records: Array, links: Mapping[str, Ints]) -> None:
    """Write records at the beginning of an array, with new numbers in the fields that are links."""
    array[: len(records)] = records
    for name, new in links.items():
        array[name][: len(records)] = new[records[name]]


def _move_giants(small: Memory, memory: Memory, job: Ints) -> None:
    """Take over the candidates that have not left, in order: a sorted array is a heap."""
    giants = memory.giants[: memory.system["giants"][0]]
    giants = giants[memory.jobs["number"][giants["slot"]] == giants["tie"]]
    giants = giants[np.lexsort((giants["tie"], giants["key"]))]
    _fill(small.giants, giants, {"slot": job})
    small.giant_place[small.giants["slot"][: len(giants)]] = np.arange(len(giants))
    small.system["giants"] = len(giants)
