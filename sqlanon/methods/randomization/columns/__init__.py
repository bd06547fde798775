"""Columns whose values are changed: categories and numbers."""
