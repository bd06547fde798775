"""Utility of a release for those who want to predict a target from it."""

from typing import Literal

SAMPLE = 50_000  # rows that trees are trained and tested on
Prediction = Literal["class", "number"]
"""A prediction of trees for a target: the class that a row is in, or a number."""
