"""Uniqueness in a population of which a table is a random sample, estimated from the sample's class sizes.

Rows that are alone in the sample need not be alone in the population. Three models say how many are; none is best
for all samples, and a rule says which to trust (Dankar, El Emam, Neisa, Roffey, "Estimating the re-identification risk
of clinical data sets", BMC Medical Informatics and Decision Making 12:66, 2012).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from sqlanon.models.uniqueness.pitman import fit_pitman
from sqlanon.models.uniqueness.slide_negative_binomial import fit_slide_negative_binomial
from sqlanon.results.risk import PopulationUniqueness, UniquenessEstimate

SMALL_FRACTION = 0.1  # of the population, up to which Dankar's rule takes Pitman's estimate
_EXACT = 1_000  # rows of a class up to which probabilities are multiplied one by one


class SampleEstimates:
    """Estimates of how many members of the population are alone in their class there, each made when it is asked for.

    sizes: each class size that occurs in the sample and the number of its classes, ascending.
    fraction: members of the sample over those of the population, above 0 and at most 1. At 1 the sample is the
        population, and every estimate the number of its uniques.
    """

    def __init__(self, sizes: Sequence[tuple[int, int]], fraction: float) -> None:
        self._sizes, self._fraction = sizes, fraction
        rows = sum(size * classes for size, classes in sizes)
        self.population = round(rows / fraction)
        uniques = dict(sizes).get(1, 0)
        is_whole = self.population <= rows
        self._known = _estimate(uniques if is_whole else 0, self.population) if is_whole or not uniques else None

    @cached_property
    def zayatz(self) -> UniquenessEstimate:
        """The estimate by Bayes's rule."""
        return self._known or _estimate(count_zayatz(self._sizes, self.population), self.population)

    @cached_property
    def pitman(self) -> UniquenessEstimate:
        """The estimate by Pitman's sampling formula."""
        return self._known or _fitted(fit_pitman(self._sizes, self.population), self.population)

    @cached_property
    def snb(self) -> UniquenessEstimate:
        """The estimate by the slide negative binomial model."""
        return self._known or _fitted(fit_slide_negative_binomial(self._sizes, self._fraction), self.population)

    @cached_property
    def trusted(self) -> str:
        """Choose the estimate by the rule of Dankar et al.: of small samples Pitman's, of others the lesser of two.

        Where the model that it names could not be fitted, that is Zayatz's; `sample` where nothing is estimated.
        """
        if self._known is not None:
            return "sample"
        if self._fraction <= SMALL_FRACTION:
            return "pitman" if self.pitman.uniques is not None else "zayatz"
        snb, zayatz = self.snb.uniques, self.zayatz.uniques
        assert zayatz is not None
        return "snb" if snb is not None and snb <= zayatz else "zayatz"

    @cached_property
    def dankar(self) -> UniquenessEstimate:
        """The estimate that the rule trusts."""
        chosen: UniquenessEstimate = self._known or getattr(self, self.trusted)
        return chosen


def estimate_uniqueness(sizes: Sequence[tuple[int, int]], fraction: float) -> PopulationUniqueness:
    """Make all estimates; the parameters are those of `SampleEstimates`."""
    made = SampleEstimates(sizes, fraction)
    return PopulationUniqueness(
        fraction, made.population, made.zayatz, made.pitman, made.snb, made.dankar, made.trusted
    )


def _estimate(uniques: float, population: int) -> UniquenessEstimate:
    return UniquenessEstimate(uniques, uniques / population if population else 0.0)


def _fitted(uniques: float | str, population: int) -> UniquenessEstimate:
    """The estimate of a model that was fitted; or the reason why it was not."""
    if isinstance(uniques, str):
        return UniquenessEstimate(None, None, uniques)
    return _estimate(min(uniques, population), population)


def count_zayatz(sizes: Sequence[tuple[int, int]], population: int) -> float:
    """Estimate the uniques of the population by Bayes's rule, as if its classes had the sizes of the sample's.

    A row that is alone in the sample is of a class of size j with a probability in proportion to the share of classes
    of that size, and to the hypergeometric probability that just one of j is drawn (Zayatz, "Estimation of the number
    of unique population elements using a sample", 1991).
    """
    rows = sum(size * classes for size, classes in sizes)
    weights = {size: classes * _probability_of_one(size, rows, population) for size, classes in sizes}
    alone = dict(sizes)[1]
    return alone * weights[1] / math.fsum(weights.values()) * population / rows


def _probability_of_one(size: int, rows: int, population: int) -> float:
    """The probability that a sample of `rows` holds just one of `size` in the population, drawn without replacement."""
    if population - rows < size - 1:
        return 0.0
    first = size * rows / population
    if size <= _EXACT:
        return first * math.prod((population - rows - i) / (population - 1 - i) for i in range(size - 1))
    log = math.lgamma(population - rows + 1) - math.lgamma(population - rows - size + 2)
    return first * math.exp(log - math.lgamma(population) + math.lgamma(population - size + 1))
