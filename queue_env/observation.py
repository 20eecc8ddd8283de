"""What an agent sees: the features, their spaces, and how to read an observation back into numbers with units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from queue_env.distributions.checks import refuse
from queue_env.kernel.env_layout import COMPACT, FLAT, LIMIT, RAW, SUMMARY

__all__ = ["KINDS", "Feature", "Observation", "ObservationLayout", "Shown"]

Observation: TypeAlias = Any  # a float32 array, or a mapping of float64 arrays

KINDS = {"flat": FLAT, "dict": RAW, "compact": COMPACT, "summary": SUMMARY}


class Feature(NamedTuple):
    """One number of an observation.

    Attributes:
        name: its name, and its key in the "dict" view.
        meaning: one line.
        unit: of the "dict" view; "jobs", "time" and "work" are log-compressed in the other views, those "a server"
            after they have been divided by n.
    """

    name: str
    meaning: str
    unit: str


SYSTEM_FEATURES = (
    Feature("number", "jobs present N", "jobs"),
    Feature("work", "total remaining work; 0 where sizes are hidden", "work"),
    Feature("anchor_size", "original size of the anchor; 0 without one, or where sizes are hidden", "work"),
    Feature("elapsed", "time since the last decision", "time"),
    Feature("spare", "spare capacity δ = n(1-ρ)", "servers"),
)
_SUMMARY_WORK = Feature("work", "total remaining work", "work a server")
SUMMARY_FEATURES = (
    Feature("number", "jobs present N", "jobs a server"),
    Feature("busy", "part of the servers that serve", "0 to 1"),
    Feature("priority_busy", "part of the servers that serve jobs with priority", "0 to 1"),
    Feature("waiting", "jobs present without a server", "jobs a server"),
    Feature("priority_waiting", "those of them with priority", "jobs a server"),
    Feature("oldest", "age of the waiting job that came first; 0 without one", "time"),
    Feature("elapsed", "time since the last decision", "time"),
    Feature("arrivals", "jobs that have come since then", "jobs"),
    Feature("completions", "jobs that have been served since then", "jobs"),
    Feature("abandonments", "jobs that have left unserved since then", "jobs"),
)
_REMAINING = Feature("remaining", "work that is left of the job", "work")
_SIZE = Feature("size", "original size of the job", "work")
_AGE = Feature("age", "time since its arrival", "time")
_ATTAINED = Feature("attained", "service it has had", "work")
_PATIENCE = Feature("patience", "patience it has left", "time")
_ANCHOR = Feature("anchor", "has the anchor's role", "0/1")
_LARGEST = Feature("largest", "has the largest original size present", "0/1")
_SERVED = Feature("served", "has been getting a positive rate up to now", "0/1")
_PRESENT = Feature("present", "the row holds a job", "0/1")
_MOST_SPARE = 1e9
_AS_IT_IS = ("0/1", "0 to 1", "servers")


class Shown(NamedTuple):
    """What a batch of observations shows, in raw units; None for what it does not show.

    Attributes:
        number, work, anchor_size, elapsed, spare: `(B,)`.
        remaining, size, age, attained, patience: `(B, rows)`; the "summary" view has no rows.
        anchor, largest, served, present: `(B, rows)` bool.
        busy, priority_busy, waiting, priority_waiting, oldest, arrivals, completions, abandonments: `(B,)`, of the
            "summary" view.
    """

    number: NDArray[np.float64]
    work: NDArray[np.float64] | None
    anchor_size: NDArray[np.float64] | None
    elapsed: NDArray[np.float64]
    spare: NDArray[np.float64] | None
    remaining: NDArray[np.float64] | None
    size: NDArray[np.float64] | None
    age: NDArray[np.float64]
    attained: NDArray[np.float64] | None
    patience: NDArray[np.float64] | None
    anchor: NDArray[np.bool_] | None
    largest: NDArray[np.bool_] | None
    served: NDArray[np.bool_] | None
    present: NDArray[np.bool_]
    busy: NDArray[np.float64] | None = None
    priority_busy: NDArray[np.float64] | None = None
    waiting: NDArray[np.float64] | None = None
    priority_waiting: NDArray[np.float64] | None = None
    oldest: NDArray[np.float64] | None = None
    arrivals: NDArray[np.float64] | None = None
    completions: NDArray[np.float64] | None = None
    abandonments: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class ObservationLayout:
    """How the observations of an environment are made up.

    In the flat and the compact view the features of the system come first, then those of one row after the other.

    Attributes:
        kind: "flat", "dict", "compact" or "summary".
        servers: number of servers n.
        slots: rows of the job table K.
        unit: mean size, by which work and time are divided before they are compressed.
        patience: whether jobs have patience.
        known: whether sizes are shown.
    """

    kind: str
    servers: int
    slots: int
    unit: float
    patience: bool = False
    known: bool = True

    @property
    def rows(self) -> int:
        """Rows of jobs: K, or in the compact view the anchor's and n+1 others, or in the summary none."""
        return {"compact": self.servers + 2, "summary": 0}.get(self.kind, self.slots)

    @property
    def system_features(self) -> tuple[Feature, ...]:
        """The features of the system, in their order."""
        if self.kind == "summary":
            return (*SUMMARY_FEATURES, _SUMMARY_WORK) if self.known else SUMMARY_FEATURES
        return SYSTEM_FEATURES

    @property
    def job_features(self) -> tuple[Feature, ...]:
        """The features of a row, in their order."""
        if self.kind == "summary":
            return ()
        if self.kind == "compact":
            return (_REMAINING, _SIZE, _AGE, _ANCHOR, _PRESENT)
        sizes = (_REMAINING, _SIZE) if self.known else ()
        patience = (_PATIENCE,) if self.patience else ()
        roles = (_ANCHOR, _LARGEST) if self.known else ()
        return (*sizes, _AGE, _ATTAINED, *patience, *roles, _SERVED, _PRESENT)

    @property
    def entries(self) -> int:
        """Numbers in an observation."""
        return len(self.system_features) + self.rows * len(self.job_features)

    def space(self) -> spaces.Space[Any]:
        """The observation space of one environment: a Box, or a Dict of Boxes; all bounds are finite."""
        if self.kind == "dict":
            boxes: dict[str, spaces.Space[Any]] = {
                feature.name: spaces.Box(*_raw_bounds(feature), (1,), np.float64) for feature in SYSTEM_FEATURES
            }
            boxes |= {
                feature.name: spaces.Box(*_raw_bounds(feature), (self.rows,), np.float64)
                for feature in self.job_features
            }
            return spaces.Dict(boxes)
        features = (*self.system_features, *self.job_features * self.rows)
        low, high = np.array([_compressed_bounds(feature) for feature in features], np.float32).T
        return spaces.Box(low, high, dtype=np.float32)

    def view(self, values: NDArray[Any]) -> Observation:
        """Present the kernel's numbers, shape (entries,) or (B, entries), as an observation, without copying them."""
        if self.kind != "dict":
            return values
        start, width = len(SYSTEM_FEATURES), len(self.job_features)
        parts = {feature.name: values[..., i : i + 1] for i, feature in enumerate(SYSTEM_FEATURES)}
        return parts | {feature.name: values[..., start + i :: width] for i, feature in enumerate(self.job_features)}

    def batched(self, observation: Observation) -> bool:
        """Whether an observation has a batch axis.

        Raises:
            ValueError: it is none of this layout.
        """
        if self.kind == "dict":
            names = [feature.name for feature in (*SYSTEM_FEATURES, *self.job_features)]
            if not isinstance(observation, Mapping) or set(observation) != set(names):
                found = list(observation) if isinstance(observation, Mapping) else type(observation).__name__
                refuse("observation", "keys", ", ".join(names), found)
            shape, entries = np.shape(observation["number"]), 1
        else:
            shape, entries = np.shape(observation), self.entries
        if len(shape) not in (1, 2) or shape[-1] != entries:
            refuse("observation", "shape", f"({entries},) or (B, {entries})", shape)
        return len(shape) == 2

    def read(self, observation: Observation) -> Shown:
        """Read an observation, or a batch of them, in raw units; what was compressed keeps about six digits.

        Raises:
            ValueError: it is none of this layout.
        """
        batched = self.batched(observation)
        system = self.system_features
        features = (*system, *self.job_features)
        if self.kind == "dict":
            columns = {name: np.asarray(part, np.float64) for name, part in observation.items()}
            columns = {name: part if batched else part[None] for name, part in columns.items()}
        else:
            values = np.atleast_2d(np.asarray(observation, np.float64))
            start, width = len(system), len(self.job_features)
            columns = {feature.name: values[:, i : i + 1] for i, feature in enumerate(system)}
            columns |= {feature.name: values[:, start + i :: width] for i, feature in enumerate(self.job_features)}
            columns = {feature.name: self._expand(feature, columns[feature.name]) for feature in features}
        shown: dict[str, Any] = dict.fromkeys(Shown._fields)
        for feature in features:
            column = columns[feature.name]
            shown[feature.name] = column > 0.5 if feature.unit == "0/1" else column
        for feature in system:
            shown[feature.name] = shown[feature.name][:, 0]
        if not self.known:
            shown["work"] = shown["anchor_size"] = None
        if self.rows == 0:
            nothing = np.zeros((len(shown["number"]), 0))
            shown["age"], shown["present"] = nothing, nothing > 0
        return Shown(**shown)

    def _expand(self, feature: Feature, column: NDArray[np.float64]) -> NDArray[np.float64]:
        if feature.unit in _AS_IT_IS:
            return column
        values = np.expm1(column) * (self.servers if feature.unit.endswith("a server") else 1)
        return np.rint(values) if feature.unit.startswith("jobs") else values * self.unit


def _raw_bounds(feature: Feature) -> tuple[float, float]:
    if feature.unit == "servers":
        return -_MOST_SPARE, _MOST_SPARE
    return 0.0, 1.0 if feature.unit in ("0/1", "0 to 1") else LIMIT


def _compressed_bounds(feature: Feature) -> tuple[float, float]:
    low, high = _raw_bounds(feature)
    return (low, float(np.log1p(high))) if high == LIMIT else (low, high)
