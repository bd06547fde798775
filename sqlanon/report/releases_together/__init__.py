"""Releases that exist, held against each other: who could be told from whom by all of them together."""
