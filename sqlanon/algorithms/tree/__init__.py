"""Multidimensional partitioning (LeFevre, DeWitt, TR 1590): Mondrian, Rothko-T, Rothko-S; trees grown by levels."""
