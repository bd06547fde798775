"""Randomization of single values: distributions of noise, the change of each column, and the table that tells of it."""
