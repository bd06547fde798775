"""Hiding of association rules: which items are taken out of which transactions."""
