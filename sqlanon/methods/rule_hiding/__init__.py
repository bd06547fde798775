"""Hiding of association rules: single items are taken out of rows."""
