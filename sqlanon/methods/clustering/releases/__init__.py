"""Releases of clusters: centres, gathered rows, drawn rows."""
