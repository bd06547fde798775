"""Runs: from the policy to the published, recorded release, by a search or by stored rules; resuming them."""

from typing import Literal

OnViolation = Literal["suppress", "error"]
"""The treatment of classes that violate a model: they are suppressed, or nothing is published."""
