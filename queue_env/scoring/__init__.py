"""Tail curves and scores of policies, far beyond what a plain run sees."""
