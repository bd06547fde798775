"""Definitions in plain Python that the generated SQL is held against."""
