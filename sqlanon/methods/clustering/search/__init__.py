"""Microaggregation: rows gathered in clusters of similar ones, set by set in the database."""
