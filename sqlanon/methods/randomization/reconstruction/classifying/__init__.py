"""Classifiers that are trained on reconstructed distributions, held against such of the rows with noise and without."""
