"""Frequency sets of a search: from which of them others are counted, and which are kept."""
