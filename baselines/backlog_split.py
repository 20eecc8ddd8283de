"""The anchor at full rate while the others' work is low."""

from __future__ import annotations

from baselines.agent import Agent

__all__ = ["BacklogSplit"]


class BacklogSplit(Agent):
    """Serves the anchor at rate one while the work of the others is below b z^kappa, else not; the rest by SRPT."""

    name = "backlog-split"
    only_because = "its rates change between decisions, where the others' work falls to the threshold"
    needs_sizes = True
