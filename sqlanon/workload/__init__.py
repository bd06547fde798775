"""What a release is worth to those who want to predict a target from it."""

SAMPLE = 50_000  # rows that trees are trained and tested on
