"""Uniqueness in a population of which a table is a random sample: estimators from the sizes of its classes."""
