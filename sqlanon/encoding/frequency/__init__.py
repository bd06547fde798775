"""Frequency sets: how many rows have each combination of generalized values (LeFevre et al., SIGMOD 2005)."""
