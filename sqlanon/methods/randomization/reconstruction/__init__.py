"""Reconstruction of the distributions that random changes of single values hide."""
