"""Splits chosen for a target: information gain of a class, squared error of a number."""
