"""A slow, exact and independent simulator of the M/G/n queue: what the compiled one is tested against."""

from .engine import Allocation, Job, Result, Rule, System, simulate
from .policies import POLICIES

__all__ = ["POLICIES", "Allocation", "Job", "Result", "Rule", "System", "simulate"]
