"""Profiling: what a table looks like before anybody has said what its columns are."""
