"""Risk in a population of which a table is a sample."""

from __future__ import annotations

import functools
import math

import numpy as np

_NODES = 200  # of the quadrature: errors are below one in 1e11 for fractions down to one in a billion
_MANY = 100  # rows of a class from which the integral is that of its end near 1


def journalist_risk(rows: int, fraction: float) -> float:
    """The mean chance to pick a row of a class of `rows` rows, among all in the population who share its labels.

    fraction: rows of the table over those of the population, above 0 and at most 1. How many share the labels is
    negative binomial, given the rows (Benedetti and Franconi, "Statistical and technological solutions for controlled
    data dissemination", 1998; Rinott, "On models for statistical disclosure risk estimation", 2003): the mean of their
    inverse is the integral of v^(rows - 1) / (1 + odds v) over v from 0 to 1, with odds = (1 - fraction) / fraction.
    It is more than one in their mean number, as few of them count more than many.
    """
    if not (rows >= 1 and 0 < fraction <= 1):
        raise ValueError(f"no risk of {rows} rows at a fraction of {fraction}")
    odds = (1 - fraction) / fraction
    if odds == 0:
        return 1 / rows
    if rows == 1:
        return math.log1p(odds) / odds
    if rows < _MANY:  # v = s^4 draws the nodes to 0, where large odds bend the curve
        nodes, weights = _legendre(_NODES)
        s = (nodes + 1) / 2
        return float(np.sum(2 * weights * s ** (4 * rows - 1) / (1 + odds * s**4)))
    nodes, weights = _laguerre(_MANY)  # v = exp(-x / rows) draws them to 1
    return float(np.sum(weights / (1 + odds * np.exp(-nodes / rows)))) / rows


_legendre = functools.cache(np.polynomial.legendre.leggauss)
_laguerre = functools.cache(np.polynomial.laguerre.laggauss)
