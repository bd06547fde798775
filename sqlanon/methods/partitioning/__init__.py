"""Partition trees: Mondrian and Rothko, on all rows or on samples."""
