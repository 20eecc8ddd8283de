"""Least attained service first."""

from __future__ import annotations

from baselines.agent import Agent

__all__ = ["LAS"]


class LAS(Agent):
    """Serves those with the least attained service; jobs level with one another share."""

    name = "las"
    only_because = "its rates change between decisions, where a job catches up with another"
