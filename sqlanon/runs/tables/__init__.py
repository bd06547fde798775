"""Runs of several tables that belong together: staged one after the other, and published together or not at all."""
