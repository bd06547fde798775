"""Ordered sets: the cuts of an attribute chosen over its whole order."""
