"""The reference policies as baselines: a catalogue of them, and agents against which learned ones are scored."""

from baselines.agent import Agent
from baselines.registry import AGENTS, REGISTRY, Baseline, expressible, learned_policies, make_agent, policies

__all__ = ["AGENTS", "REGISTRY", "Agent", "Baseline", "expressible", "learned_policies", "make_agent", "policies"]
