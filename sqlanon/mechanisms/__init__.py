"""Mechanisms of differential privacy: random draws whose privacy loss is known, and what each costs."""
