"""The reference policies, as baselines against which learned policies are scored."""
