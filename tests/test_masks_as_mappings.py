"""A mask is worth what a mapping of the same labels is: the release, its figures, and what the search looked at."""

from __future__ import annotations

import random
from typing import Any

import pytest

from sqlanon.engines.base import Engine
from sqlanon.sql import Statement
from tests.hierarchy_support import build
from tests.random_cases import many
from tests.run_support import Database, anonymize

ALGORITHMS: list[dict[str, Any]] = [
    {"name": "mondrian"},
    {"name": "optimal"},
    {"name": "optimal", "quality": "discernibility"},
    {"name": "top-down"},
]
SIDES = [*zip(ALGORITHMS * 2, ("left", "right") * 2 + ("right", "left") * 2, strict=True)]
MODELS = [{"model": "k-anonymity", "k": 3}]
DISTANT = {"model": "t-closeness", "attribute": "s", "t": 0.4, "distance": "hierarchical"}


def _mapping(values: list[str], side: str, length: int) -> dict[str, list[str]]:
    """The labels of all values, siblings in the bytewise order of their labels."""

    def labels(value: str) -> list[str]:
        kept = [value[: length - n] if side == "right" else value[-(length - n) :] for n in range(length)]
        shown = [part + "*" * n if side == "right" else "*" * n + part for n, part in enumerate(kept)]
        return [*shown[1:], "*"]

    ordered = sorted(values, key=lambda value: (labels(value)[::-1], value))
    return {value: labels(value) for value in ordered}


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_leaves_of_groups_are_counted_as_a_mapping_has_them(engine: Engine, side: str) -> None:
    values = ["111", "112", "12", "121", "2", "211", "333"]
    found = []
    for spec in ({"mask": side}, {"mapping": _mapping(values, side, 3)}):
        built = build(engine, "TEXT", values, **spec)
        written = engine.traits.renderer().written
        covered, table = written(built.covered(engine.render)), written(built.table)
        sizes = engine.fetch(Statement("test", f"SELECT v.code, v.n1, v.n2, v.n3 FROM {covered} AS v ORDER BY 1"))
        groups = [
            engine.fetch(
                Statement(
                    "test", f"SELECT g{n}, {written(built.leaves_of_group(n))} FROM {table} AS h GROUP BY 1 ORDER BY 1"
                )
            )
            for n in (1, 2, 3)
        ]
        found.append((sizes, groups))
    assert found[0] == found[1]
    assert {n for *_, n in found[0][0]} == {7}


@pytest.mark.either_engine
@pytest.mark.parametrize(("algorithm", "side"), SIDES[: many(4)])
def test_a_mask_gives_what_its_labels_as_a_mapping_give(
    database: Database, algorithm: dict[str, Any], side: str
) -> None:
    draw = random.Random(7)
    values = ["".join(draw.choices("123", k=draw.choice([2, 4, 4, 4]))) for _ in range(40)]
    rows = [(draw.choice(values), draw.randrange(20), draw.choice("abc")) for _ in range(200)]
    table = database.create({"q": "VARCHAR(4)", "n": "INTEGER", "s": "VARCHAR(1)"}, rows)
    found = []
    for hierarchy in ({"mask": side}, {"mapping": _mapping(sorted({row[0] for row in rows}), side, 4)}):
        attributes = {
            "q": {"role": "quasi-identifier", "hierarchy": hierarchy},
            "n": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10]}},
            "s": "sensitive",
        }
        policy = database.policy(table, attributes, algorithm=algorithm, privacy=MODELS)
        outcome = anonymize(policy, replace=True)
        losses = [one.loss for one in (outcome.quasi_identifiers or ())]
        assert outcome.metrics.gcp is not None
        assert 0 < outcome.metrics.gcp < 1
        found.append((database.sql(f"SELECT * FROM {table}_r"), outcome.metrics.gcp, losses))
    assert found[0] == found[1]


@pytest.mark.either_engine
def test_a_masked_sensitive_attribute_is_judged_as_its_mapping_is(database: Database) -> None:
    draw = random.Random(3)
    rows = [(draw.randrange(60), "".join(draw.choices("12", k=3))) for _ in range(200)]
    table = database.create({"n": "INTEGER", "s": "VARCHAR(3)"}, rows)
    found = []
    for hierarchy in ({"mask": "right"}, {"mapping": _mapping(sorted({row[1] for row in rows}), "right", 3)}):
        attributes = {"n": "quasi-identifier", "s": {"role": "sensitive", "hierarchy": hierarchy}}
        policy = database.policy(table, attributes, privacy=[*MODELS, DISTANT])
        outcome = anonymize(policy, replace=True)
        found.append((database.sql(f"SELECT * FROM {table}_r"), outcome.metrics.gcp))
    assert found[0] == found[1]
    assert 0 < found[0][1] < 1
