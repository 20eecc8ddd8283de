"""Two classes: what SRPT collapses to where many servers are overloaded."""

from __future__ import annotations

from baselines.agent import Agent

__all__ = ["TwoClass"]


class TwoClass(Agent):
    """Gives sizes up to tau preemptive priority; within a class first come, first served.

    By default tau is that of the theory, E[S; S <= tau] = E[S]/load, so that the first class is as much work as the
    servers can do. With n -> infinity the throughput is that of SRPT, the part P[S <= tau] of the arrivals, and no
    policy has more. That part is the share of the jobs that have priority, so it is the action itself.

    Source: Dong, Ibrahim, On the SRPT scheduling discipline in many-server queues (2021), equation 1 and Theorem 2.
    """

    name = "two-class"
    expressed_as = ("threshold", "rule")
    needs_sizes = True

    def share_and_order(self) -> tuple[float, float]:
        """Return P[S <= tau], and that the oldest go first."""
        return float(self.config.scenario.sizes.cdf(self.setting.parameters[0])), 0.0
