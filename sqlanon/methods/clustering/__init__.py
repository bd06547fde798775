"""Clusters of rows: microaggregation, r-gather and condensation, also of streams."""
