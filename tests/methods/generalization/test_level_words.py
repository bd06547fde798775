"""Levels of hierarchies in words: their examples are labels that a hierarchy has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqlanon.engines import connect
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.hierarchies import build_hierarchy, show
from sqlanon.methods.generalization.explore.explore_tradeoff import level_words
from sqlanon.policy.attributes import Hierarchy
from sqlanon.sql import Relation, Statement


@pytest.mark.parametrize(
    ("type_", "kind", "values", "spec", "levels"),
    [
        ("INTEGER", Kind.INTEGER, "0 6 12", {"intervals": [5, 10]}, [1, 2]),
        ("INTEGER", Kind.INTEGER, "3 14", {"intervals": [5, 10], "origin": 3}, [1, 2]),
        ("DECIMAL(6,2)", Kind.DECIMAL, "-0.50 3", {"intervals": [0.25], "origin": -0.5}, [1]),
        ("DATE", Kind.DATE, "2000-01-03 2001-01-01", {"date": ["month", "quarter", "year", "decade"]}, [1, 2, 3, 4]),
        ("DATE", Kind.DATE, "2000-01-03 2001-01-01", {"date": ["week"]}, [1]),
        ("VARCHAR", Kind.TEXT, "abcde xbcde", {"mask": "right"}, [2]),
        ("VARCHAR", Kind.TEXT, "deabc deabx", {"mask": "left"}, [2]),
    ],
)
def test_an_example_is_a_label_of_its_level(
    type_: str, kind: Kind, values: str, spec: dict[str, Any], levels: list[int]
) -> None:
    hierarchy, texts = Hierarchy(**spec), ", ".join(f"('{value}')" for value in values.split())
    with connect("duckdb:///:memory:") as engine:
        engine.execute(
            Statement(
                "test", f"CREATE TEMP TABLE leaves AS SELECT CAST(t AS {type_}) AS value FROM (VALUES {texts}) AS v (t)"
            )
        )
        leaves, table = (Relation(name, "main", "temp") for name in ("leaves", "tree"))
        tree = build_hierarchy(engine, hierarchy, Column("a", type_, kind), leaves, table)
        labels = {one.level: one.labels for one in show(engine, tree).levels}
    words = level_words("a", hierarchy, tree.height, range(tree.height + 1))
    for level in levels:
        assert words[level].rpartition("such as ")[2] in labels[level]
    assert (words[0], words[-1]) == ("the values themselves", "*, nothing is shown")


def test_widths_that_do_not_nest_have_no_example() -> None:
    """The interval at the origin ends at a boundary of the finer level, which the width does not tell."""
    words = level_words("a", Hierarchy(intervals=(2, 5)), 3, range(4))
    assert words[1:3] == ("intervals of width 2, such as [0-2)", "intervals of width 5")


def test_a_file_gives_the_label_of_the_most_values_and_no_value(tmp_path: Path) -> None:
    file = tmp_path / "jobs.csv"
    file.write_text("Clerk;Clerk;Work;*\nSmith;Craft;Work;*\nJoiner;Craft;Work;*\nRetired;Retired;None;*\n")
    hierarchy = Hierarchy(csv=str(file))
    assert level_words("job", hierarchy, 3, range(4))[1:3] == ("such as Craft (3 labels)", "such as Work (2 labels)")
    file.write_text("Clerk;C;*\nSmith;S;*\n")
    assert level_words("job", hierarchy, 2, range(3))[1] == "2 labels, each of one value"
    file.unlink()
    with pytest.raises(PolicyError, match=r"attributes\.job"):
        level_words("job", hierarchy, 2, range(3))
