"""From a system to the picture of it that is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from queue_env.batch import BatchOfSystems
from queue_env.config import EnvConfig
from queue_env.kernel import env_layout as layout
from queue_env.rendering import Painter, Picture, draw_text

__all__ = ["Drawings"]

_GRID = 60


class Drawings:
    """Draws systems as they are, with what their episodes have been like so far.

    Args:
        config: their arguments.
        batch: the systems.
        fps: pictures a second in the window, at most.
    """

    def __init__(self, config: EnvConfig, batch: BatchOfSystems, fps: int) -> None:
        self._config, self._batch, self._fps = config, batch, fps
        self._responses: list[list[float]] = [[] for _ in range(batch.count)]
        self._totals = [0.0] * batch.count
        self._painter: Painter | None = None

    def begin(self, b: int) -> None:
        """An episode of system b begins."""
        self._responses[b], self._totals[b] = [], 0.0

    def note(self, b: int, outcome: Sequence[float] | NDArray[np.float64]) -> None:
        """Keep the response times and the reward of a step of system b; jobs that leave together share their mean."""
        served = int(outcome[layout.COMPLETIONS])
        self._responses[b] += [float(outcome[layout.RESPONSE]) / max(served, 1)] * served
        self._totals[b] += float(outcome[layout.REWARD])

    def draw(self, mode: str | None, b: int) -> Any:
        """Draw system b: a text, a picture, or None where it is shown in the window."""
        picture = picture_of(self._config, self._batch, b, self._responses[b], self._totals[b])
        if mode == "ansi":
            return draw_text(picture)
        if self._painter is None:
            self._painter = Painter(fps=self._fps)
        if mode == "human":
            self._painter.show(picture)
            return None
        return self._painter.frame(picture)

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._painter is not None:
            self._painter.close()
            self._painter = None


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
    if len(jobs) and not config.in_classes:
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
