"""Runs that search for policies, started from the checkout: ``python -m train.NAME``."""
