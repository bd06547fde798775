"""Kinds of releases: what a run decided about its rows, how that is written, checked, measured and stored as rules."""
