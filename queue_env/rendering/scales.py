"""Where numbers lie on the axes of a picture, and which of them are named."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from queue_env.rendering.picture import FloatArray

__all__ = ["DecadeScale", "SizeScale"]


@dataclass(frozen=True)
class SizeScale:
    """An axis for sizes: nearly linear from 0 to the unit, then logarithmic, so that all sizes find a place.

    Attributes:
        unit: where the axis turns logarithmic.
        top: the size at its end.
        length: its length in pixels.
    """

    unit: float
    top: float
    length: int

    @classmethod
    def holding(cls, largest: float, unit: float, length: int) -> SizeScale:
        """The scale that ends at the next round number from the largest size, or from ten units, on."""
        least = max(largest, 10 * unit)
        decade = 10.0 ** math.floor(math.log10(least))
        top = next(step * decade for step in (1, 2, 5, 10, 20) if step * decade >= least)
        return cls(unit, top, length)

    def place(self, size: ArrayLike) -> FloatArray:
        """Pixels from the axis's start, shape of size."""
        return np.asarray(self.length * np.log1p(np.asarray(size) / self.unit) / math.log1p(self.top / self.unit))

    def ticks(self, apart: float) -> list[float]:
        """Zero and round numbers, at least so many pixels apart, the larger ones first served.

        A third of that distance stays free before the axis's end.
        """
        steps = (5, 2, 1) if self.top < 200 * self.unit else (1,)
        first, last = math.floor(math.log10(self.unit)) - 1, math.ceil(math.log10(self.top))
        kept = [0.0]
        free = self.length - apart / 3
        for power in range(last, first - 1, -1):
            for value in (step * 10.0**power for step in steps):
                place = float(self.place(value))
                if apart <= place <= free:
                    kept.append(value)
                    free = place - apart
        return sorted(kept)


@dataclass(frozen=True)
class DecadeScale:
    """A logarithmic axis between two powers of ten.

    Attributes:
        low, high: the powers at its ends, low < high.
        start, end: the pixels at its ends.
    """

    low: int
    high: int
    start: float
    end: float

    def place(self, value: ArrayLike) -> FloatArray:
        """Pixels of positive values, shape of value."""
        passed = (np.log10(value) - self.low) / (self.high - self.low)
        return np.asarray(self.start + passed * (self.end - self.start))

    def powers(self, apart: float) -> range:
        """The powers to name, at least so many pixels apart."""
        decade = abs(self.end - self.start) / (self.high - self.low)
        return range(self.low, self.high + 1, max(1, math.ceil(apart / decade)))
