"""Made-up pictures of queues, the usual and the extreme ones, and how to find colours in frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from queue_env.rendering import Picture
from queue_env.rendering.theme import THEME

Frame = NDArray[np.uint8]


def picture(**fields: Any) -> Picture:
    """A picture of two servers and no jobs, but for the fields given."""
    empty = np.empty(0)
    size = np.shape(fields.get("sizes", empty))
    values: dict[str, Any] = {
        "title": "high-load-2",
        "time": 12.5,
        "servers": 2,
        "sizes": empty,
        "remaining": fields.get("sizes", empty),
        "ages": np.zeros(size),
        "rates": np.zeros(size),
        "numbers": np.arange(*size),
        "anchor": -1,
        "tail_range": (1.0, 1e4),
        "response_times": empty,
        "bound_times": empty,
        "bound_tail": empty,
        "reward": 0.0,
    }
    return Picture(**{**values, **fields})


def crowd(number: int, servers: int, *, scale: float = 1.0, served: int = 2000, **fields: Any) -> Picture:
    """Many jobs in arrival order, the smallest at rate 1 but for the last two, which share; the largest is anchor."""
    generator = np.random.default_rng(number)
    sizes = scale * (generator.pareto(1.5, number) + 1) / 3
    remaining = sizes * generator.uniform(0.01, 1, number)
    rates = np.zeros(number)
    rates[np.argsort(remaining)[:servers]] = 1.0
    if number > servers:
        rates[np.argsort(remaining)[[servers - 1, servers]]] = 0.375, 0.625
    grid = np.geomspace(0.1, 1e5, 100)
    values: dict[str, Any] = {
        "servers": servers,
        "sizes": sizes,
        "remaining": remaining,
        "ages": np.sort(generator.pareto(0.7, number))[::-1],
        "rates": rates,
        "numbers": 4000 + np.arange(number),
        "anchor": int(np.argmax(sizes)) if number else -1,
        "response_times": 2 * (generator.pareto(1.5, served) + 1) / 3,
        "bound_times": grid,
        "bound_tail": np.minimum(1.0, (3 * grid) ** -1.5),
        "reward": -1234.5,
    }
    return picture(**{**values, **fields})


EXTREMES = {
    "usual": crowd(14, 2),
    "no jobs": crowd(0, 2),
    "one job": crowd(1, 1, served=1),
    "500 jobs": crowd(500, 2),
    "500 in service": crowd(500, 10, rates=np.full(500, 0.02)),
    "16 servers": crowd(40, 16),
    "17 servers": crowd(10, 17),
    "100 servers": crowd(500, 100),
    "no bound": crowd(9, 4, bound_times=[], bound_tail=[]),
    "nothing at all": picture(),
    "bound only": crowd(3, 2, served=0),
    "huge sizes": crowd(30, 3, scale=1e6, served=100_000),
    "tiny sizes": crowd(30, 3, scale=1e-6),
    "zero ages": crowd(12, 2, ages=np.zeros(12)),
    "zero response times": crowd(3, 2, response_times=[0.0, 0.0]),
    "fast server": crowd(3, 2, rates=[0.0, 2.0, 0.0]),
    "large numbers": crowd(
        6,
        2,
        title="a scenario of which somebody thought that its name should tell the whole story",
        time=98_765_432.1,
        reward=-98_765.4,
        numbers=10**8 + np.arange(6),
        ages=np.full(6, 99_999.0),
        response_times=np.full(123_456, 99_999.0),
    ),
    "odd range": crowd(5, 2, tail_range=(0.037, 41.3)),
    "narrow range": crowd(5, 2, tail_range=(100.0, 101.0)),
}


def coloured(frame: Frame, colour: Any) -> NDArray[np.bool_]:
    """Where a frame has exactly this colour, shape (height, width)."""
    return np.asarray(np.all(frame == np.asarray(colour, dtype=np.uint8), axis=-1))


def halves(frame: Frame) -> tuple[Frame, Frame]:
    """The part with the jobs, without the legend below them, and the part with servers and tail."""
    middle, legend = round(THEME.left * frame.shape[1]), round(0.9 * frame.shape[0])
    return frame[:legend, :middle], frame[:, middle:]


def bar_length(jobs: Frame, colour: Any) -> int:
    """The longest row of pixels of a colour."""
    return int(coloured(jobs, colour).sum(axis=1).max())
