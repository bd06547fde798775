"""The measures of privacy models on the examples that their papers print, and at the thresholds themselves."""

from __future__ import annotations

import pytest

from sqlanon.engines.base import Engine
from sqlanon.models import (
    DistinctLDiversity,
    EntropyLDiversity,
    RecursiveLDiversity,
    VarianceDiversity,
)
from sqlanon.models.closeness import DISTANCES
from sqlanon.sql import Statement
from tests.models_support import Classes, load, measure

PAPER_SALARIES = [3, 4, 5, 6, 7, 8, 9, 10, 11]


@pytest.mark.parametrize(
    ("part", "published"), [([3, 4, 5], 0.375), ([6, 8, 11], 0.167), ([3, 5, 9], 0.167), ([4, 7, 10], 0.083)]
)
def test_published_salaries(engine: Engine, part: list[int], published: float) -> None:
    """The salary example of the t-closeness paper: 0.375 and 0.167 for two classes of its table of nine."""
    rest = [salary for salary in PAPER_SALARIES if salary not in part]
    found = measure(engine, DISTANCES["ordered"]("salary", 0.167), load(engine, {0: list(part), 1: list(rest)}))
    assert found[0][0] == pytest.approx(published, abs=5e-4)


def test_published_diseases(engine: Engine) -> None:
    """The disease example of the t-closeness paper, by its hierarchy: 7/27, 8/27 and 5/27 for the three classes.

    The paper gives 0.278 for the table, the mean of the two greatest; by its own definition the greatest is 0.296.
    """
    respiratory, digestive = (0, 0), (1, 1)
    groups_of = {0: digestive, 1: digestive, 2: digestive, 3: respiratory, 4: respiratory, 5: respiratory}
    ulcer, gastritis, cancer, flu, bronchitis, pneumonia = groups_of
    parts: Classes = {
        0: [ulcer, cancer, pneumonia],
        1: [gastritis, flu, bronchitis],
        2: [gastritis, bronchitis, cancer],
    }
    groups = load(engine, parts)
    for disease, (infection, system) in groups_of.items():
        engine.execute(
            Statement("test", f"UPDATE test_domain SET g1 = {infection}, g2 = {system} WHERE s = {disease + 1}")
        )
    found = measure(engine, DISTANCES["hierarchical"]("disease", 0.278), groups)
    assert [found[c][0] for c in parts] == pytest.approx([7 / 27, 8 / 27, 5 / 27])
    assert [found[c][1] for c in parts] == [False, True, False]


def test_published_diversity(engine: Engine) -> None:
    """The 3-diverse inpatient table of the l-diversity paper: three diseases, 1:1:2, in each class of four."""
    groups = load(engine, {0: [0, 1, 2, 2], 1: [2, 0, 1, 1], 2: [0, 1, 2, 2]})
    assert set(measure(engine, DistinctLDiversity("condition", 3), groups).values()) == {(3.0, False)}
    assert all(not violates for _, violates in measure(engine, EntropyLDiversity("condition", 2.8), groups).values())
    assert all(violates for _, violates in measure(engine, EntropyLDiversity("condition", 2.83), groups).values())
    assert set(measure(engine, RecursiveLDiversity("condition", 2, 3), groups).values()) == {(2.0, True)}
    assert set(measure(engine, RecursiveLDiversity("condition", 2.01, 3), groups).values()) == {(2.0, False)}


def test_thresholds_that_are_met_exactly(engine: Engine) -> None:
    """Rounding of doubles must not fail a class that meets its threshold exactly."""
    groups = load(engine, {0: [0, 1, 2, 3, 4, 5, 6], 1: [0, 1, 2, 3, 4, 5, 6]})
    assert not measure(engine, EntropyLDiversity("s", 7), groups)[0][1]
    for distance in DISTANCES.values():
        assert measure(engine, distance("s", 0.0), groups)[0] == (0.0, False)
    thirds = load(engine, {0: [0, 0, 1], 1: [1, 1, 0]})
    assert not measure(engine, DISTANCES["equal"]("s", 1 / 6), thirds)[0][1]
    assert not measure(engine, VarianceDiversity("s", 2 / 9), thirds)[0][1]
