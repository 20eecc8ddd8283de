"""What a policy with an anchor does: the states it is in, its rates there, and rules of few parameters near them."""

from queue_env.explain.distill import FORMS, Distilled, distill
from queue_env.explain.effects import Effect, effects
from queue_env.explain.law import AnchorLaw, anchor_law
from queue_env.explain.maps import RateMap, rate_map
from queue_env.explain.states import States, visited_states

__all__ = [
    "FORMS",
    "AnchorLaw",
    "Distilled",
    "Effect",
    "RateMap",
    "States",
    "anchor_law",
    "distill",
    "effects",
    "rate_map",
    "visited_states",
]
