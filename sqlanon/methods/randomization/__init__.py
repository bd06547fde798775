"""Randomization: changes of single values at random, and the reconstruction of their distribution."""
