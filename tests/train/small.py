"""Searches of a few seconds, for tests."""

from __future__ import annotations

import pytest

from queue_env.scoring import strata
from train import objective, search


def make_small(patch: pytest.MonkeyPatch) -> None:
    """Make replications short, the pilot too, and evaluate few."""
    patch.setattr(objective, "_SNAPSHOTS", 32)
    patch.setattr(objective, "_APART", 100)
    patch.setattr(objective, "_WARMUP", 1000)
    patch.setattr(objective, "_WORK", 4e4)
    patch.setattr(strata, "_LEAST_TAIL", 1e-9)
    patch.setattr(search, "VALIDATION", 2)
    patch.setattr(search, "FRESH", 3)
