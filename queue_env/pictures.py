"""From a system to the picture of it that is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from queue_env.batch import BatchOfSystems
from queue_env.config import EnvConfig
from queue_env.rendering import Painter, Picture, draw_text

__all__ = ["draw", "picture_of"]

_GRID = 60


def picture_of(config: EnvConfig, batch: BatchOfSystems, b: int, responses: Sequence[float], total: float) -> Picture:
    """Return the picture of system b.

    Args:
        config: its arguments.
        batch: the systems.
        b: which one.
        responses: response times of the jobs served so far.
        total: reward so far.
    """
    system, jobs = batch.memory.systems[b], batch.present(b)
    made = config.scenario
    t0, t1 = (end * config.unit for end in config.tail_range)
    times = np.geomspace(t0, t1, _GRID) if made.c > 0 else np.zeros(0)
    numbers = jobs["number"]
    anchor = -1
    if len(jobs):
        anchor = int(np.flatnonzero(numbers == batch.memory.jobs[b]["number"][system["anchor"]])[0])
    return Picture(
        title=f"{made.name}, action {config.action}",
        time=float(system["origin"] + system["now"]),
        servers=config.servers,
        sizes=jobs["size"].copy(),
        remaining=jobs["remaining"].copy(),
        ages=np.maximum(system["now"] - jobs["arrival"], 0.0),
        rates=jobs["rate"].copy(),
        numbers=numbers.copy(),
        anchor=anchor,
        tail_range=(t0, t1),
        response_times=np.array(responses, dtype=np.float64),
        bound_times=times,
        bound_tail=np.asarray(made.sizes.tail(made.c * times)) if len(times) else times,
        reward=total,
    )


def draw(mode: str | None, picture: Picture, painter: Any, fps: int) -> tuple[Any, Any]:
    """Draw a picture; returns the painter, made at first use, and what `render` returns."""
    if mode == "ansi":
        return painter, draw_text(picture)
    if painter is None:
        painter = Painter(fps=fps)
    if mode == "human":
        painter.show(picture)
        return painter, None
    return painter, painter.frame(picture)
