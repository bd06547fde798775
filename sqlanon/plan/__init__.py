"""A policy resolved against the live table, with every problem at once."""
