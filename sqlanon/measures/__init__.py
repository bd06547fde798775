"""Measures of classes of rows: their sizes, risk and utility, and the loss of a partition."""
