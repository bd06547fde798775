"""Estimators of population uniqueness: by brute force, by their own equations, and where they must say nothing."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from sqlanon.measures.metrics import ClassStatistics
from sqlanon.models.uniqueness.estimating import _probability_of_one, count_zayatz, estimate_uniqueness
from sqlanon.models.uniqueness.pitman import count_uniques, digamma, digamma_rise, fit_pitman, log_gamma_ratio
from sqlanon.models.uniqueness.slide_negative_binomial import _logs, estimate_classes, fit_slide_negative_binomial

Sizes = tuple[tuple[int, int], ...]
SAMPLE: Sizes = ((1, 20), (2, 7), (3, 4), (5, 2), (9, 1))


def statistics(sizes: Sizes) -> ClassStatistics:
    return ClassStatistics(sum(size * classes for size, classes in sizes), 0, sizes)


def test_digamma_is_the_slope_of_the_logarithm() -> None:
    assert digamma(1) == pytest.approx(-0.5772156649015329, rel=1e-14)
    assert digamma(0.5) == pytest.approx(-0.5772156649015329 - 2 * math.log(2), rel=1e-14)
    assert digamma(1e8 + 1) - digamma(1e8) == pytest.approx(1e-8, rel=1e-6)


@pytest.mark.parametrize("x", [0.3, 11.9, 12.0, 1e5, 1e9])
def test_rises_of_digamma_are_sums_of_inverses(x: float) -> None:
    for step in (0, 1, 95, 5000):
        expected = math.fsum(1 / (x + i) for i in range(step))
        assert digamma_rise(x, step) == pytest.approx(expected, rel=1e-12)
    assert digamma_rise(1e15, 95) == pytest.approx(95e-15, rel=1e-12)


def test_large_gamma_functions_keep_their_digits() -> None:
    for shift in (-0.9, -0.3, 0.4):
        below, above = (log_gamma_ratio(x, shift) for x in (1e5 - 1e-3, 1e5))
        assert above - below == pytest.approx(shift * 1e-8, abs=2e-9)


@pytest.mark.parametrize("population", [100, 1000])
def test_zayatz_is_bayes_rule_with_hypergeometric_draws(population: int) -> None:
    rows = statistics(SAMPLE).rows

    def draws_one(size: int) -> float:
        return size * math.comb(population - size, rows - 1) / math.comb(population, rows)

    total = sum(classes * draws_one(size) for size, classes in SAMPLE)
    expected = 20 * (20 * draws_one(1) / total) * population / rows
    assert count_zayatz(SAMPLE, population) == pytest.approx(expected, rel=1e-12)


def test_probabilities_of_large_classes_are_those_of_products() -> None:
    below, above = (_probability_of_one(size, 2_000, 50_000) for size in (1_000, 1_001))
    assert above / below == pytest.approx(1001 / 1000 * (50_000 - 2_000 - 999) / (50_000 - 1000), rel=1e-9)


def likelihood(sizes: Sizes, alpha: float, theta: float) -> float:
    """Pitman's sampling formula, factor by factor."""
    rows, classes = statistics(sizes).rows, statistics(sizes).classes
    log = sum(math.log(theta + i * alpha) for i in range(1, classes))
    log -= sum(math.log(theta + i) for i in range(1, rows))
    return log + sum(tally * math.log(i - alpha) for size, tally in sizes for i in range(1, size))


def test_pitmans_fit_has_the_greatest_likelihood() -> None:
    alphas, thetas = [i / 200 for i in range(1, 200)], [1.05**i / 10 for i in range(200)]
    best = max(itertools.product(alphas, thetas), key=lambda pair: likelihood(SAMPLE, *pair))
    fitted = fit_pitman(SAMPLE, 1000)
    assert isinstance(fitted, float)
    assert fitted == pytest.approx(count_uniques(*best, 1000), rel=0.02)


@pytest.mark.parametrize(("alpha", "theta"), [(0.4, 3.0), (0.9, 0.2), (0.1, 500.0)])
def test_pitmans_uniques_are_those_of_its_urn(alpha: float, theta: float) -> None:
    """The expected classes of one after each row, by the rule of the urn: a new class, or one in proportion."""
    alone, classes = 1.0, 1.0
    for rows in range(1, 400):
        alone += (theta + classes * alpha) / (theta + rows) - alone * (1 - alpha) / (theta + rows)
        classes += (theta + classes * alpha) / (theta + rows)
    assert count_uniques(alpha, theta, 400) == pytest.approx(alone, rel=1e-9)


def test_pitman_finds_the_parameters_of_a_sample_of_its_own() -> None:
    source, counts, alpha, theta = random.Random(1), list[int](), 0.6, 10.0
    for rows in range(20_000):
        weights = source.random() * (theta + rows)
        if weights < theta + alpha * len(counts):
            counts.append(1)
        else:
            place = _place(source, counts, alpha)
            counts[place] += 1
    sizes = tuple(sorted(Counter(counts).items()))
    fitted = fit_pitman(sizes, 20_000)
    assert isinstance(fitted, float)
    assert fitted == pytest.approx(dict(sizes)[1], rel=0.05)


def _place(source: random.Random, counts: Sequence[int], alpha: float) -> int:
    """A class with a probability in proportion to its rows less alpha."""
    while True:
        place = source.randrange(len(counts))
        if source.random() * max(counts[0], 50) < counts[place] - alpha:
            return place


# The last is likelier the smaller alpha; slopes that are noise where theta is large would show a maximum of it.
OF_AGES: Sizes = ((1, 25), (2, 21), (3, 13), (4, 15), (5, 9), (6, 6), (7, 4), (8, 2), (9, 1))


@pytest.mark.parametrize("sizes", [((1, 9),), ((9, 1),), OF_AGES])
def test_pitman_says_where_there_is_no_maximum(sizes: Sizes) -> None:
    assert "did not converge" in str(fit_pitman(sizes, 1000))


def test_probabilities_of_the_slide_negative_binomial_are_those_of_its_sums() -> None:
    alpha, beta, fraction = 0.7, 0.2, 0.3
    terms = [
        math.exp(math.lgamma(alpha + g) - math.lgamma(alpha) - math.lgamma(g + 1)) * beta**alpha * (1 - beta) ** g
        for g in range(600)
    ]
    one, two = _logs(np.array(math.log(alpha)), np.array(math.log(beta / (1 - beta))), fraction)
    for rows, log in ((1, one), (2, two)):
        drawn = [math.comb(1 + g, rows) * fraction**rows * (1 - fraction) ** (1 + g - rows) for g in range(600)]
        assert math.exp(log) == pytest.approx(math.fsum(p * q for p, q in zip(terms, drawn, strict=True)), rel=1e-10)


def test_the_slide_negative_binomial_finds_its_own_uniques() -> None:
    """Classes that the model expects of a population with known parameters give its parameters back."""
    alpha, beta, fraction, classes = 0.5, 0.25, 0.4, 100_000
    tallies: Counter[int] = Counter()
    for further in range(400):
        logs = math.lgamma(alpha + further) - math.lgamma(alpha) - math.lgamma(further + 1)
        there = classes * math.exp(logs + alpha * math.log(beta) + further * math.log1p(-beta))
        for rows in range(1, further + 2):
            tallies[rows] += round(
                there * math.comb(1 + further, rows) * fraction**rows * (1 - fraction) ** (1 + further - rows)
            )
    sizes = tuple(sorted((size, tally) for size, tally in tallies.items() if tally))
    assert estimate_classes(sizes, fraction) == pytest.approx(classes, rel=0.1)
    assert fit_slide_negative_binomial(sizes, fraction) == pytest.approx(classes * beta**alpha, rel=0.15)


def test_the_slide_negative_binomial_says_where_nothing_fits() -> None:
    assert "no class of two" in str(fit_slide_negative_binomial(((1, 4), (3, 1)), 0.5))


def test_dankars_rule_names_the_estimate_to_trust() -> None:
    small = estimate_uniqueness(SAMPLE, 0.05)
    assert (small.trusted, small.dankar) == ("pitman", small.pitman)
    large = estimate_uniqueness(SAMPLE, 0.5)
    assert large.snb.uniques is not None
    assert large.zayatz.uniques is not None
    assert large.dankar.uniques == min(large.snb.uniques, large.zayatz.uniques)
    unfitted = estimate_uniqueness(((1, 9),), 0.05)
    assert (unfitted.trusted, unfitted.pitman.uniques) == ("zayatz", None)
    assert "did not converge" in str(unfitted.pitman.problem)


def test_a_whole_population_needs_no_estimate() -> None:
    whole = estimate_uniqueness(SAMPLE, 1.0)
    assert (whole.trusted, whole.dankar.uniques, whole.dankar.share) == ("sample", 20, 20 / 65)
    assert estimate_uniqueness(((2, 5),), 0.1).dankar.uniques == 0
