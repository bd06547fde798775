"""Differential privacy: noisy counts, drawn on a budget."""
