"""The reference policies, as baselines against which learned policies are scored."""

from baselines.registry import REGISTRY, Baseline, policies

__all__ = ["REGISTRY", "Baseline", "policies"]
