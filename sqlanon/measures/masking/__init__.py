"""Measures of a release beside its source: loss of numbers and categories, risk of masked numbers."""
