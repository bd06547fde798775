"""Rothko-S: trees that grow on samples, and meet all rows later."""
