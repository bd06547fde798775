"""Mechanisms of differential privacy, and the searches that they protect."""
