"""Tables with many columns: dictionaries are looked up in stages, and the release is the same."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from tests.run_support import Database, Row, anonymize

pytestmark = pytest.mark.slow

COLUMNS = {
    "age": "INTEGER",
    "P0": "VARCHAR(3)",
    "city": "VARCHAR(9)",
    "p1": "VARCHAR(9)",
    "seen": "DATE",
    "price": "DECIMAL(12, 8)",
    "ratio": "DOUBLE PRECISION",
    "disease": "VARCHAR(9)",
    "d": "VARCHAR(9)",
}
QUASI_IDENTIFIERS = ("age", "P0", "city", "seen")
MODELS = [{"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "attribute": "disease", "l": 2}]


def people(rows: int) -> list[Row]:
    source = random.Random(7)

    def or_null(value: Any) -> Any:
        return None if source.random() < 0.1 else value

    return [
        (
            or_null(source.randint(0, 90)),
            or_null(source.choice(["a", "b", "c", "i's"])),
            or_null(source.choice(["Bath", "Ely", "ÉLY", "x\ny"])),
            or_null(f"v{source.randint(0, 20)}"),
            or_null(datetime.date(2024, 1, 1) + datetime.timedelta(days=source.randint(0, 90))),
            or_null(Decimal(source.randint(1, 99)) / Decimal(10**8)),
            or_null(source.choice([-0.0, 0.0, 1 / 3, float("nan")])),
            source.choice(["flu", "cold", "none"]),
            or_null(source.choice(["", "ß", "z"])),
        )
        for _ in range(rows)
    ]


@pytest.mark.either_engine
def test_stages_give_the_same_release(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    table = database.create(COLUMNS, people(120))
    roles = {name: "quasi-identifier" if name in QUASI_IDENTIFIERS else "insensitive" for name in COLUMNS}
    policy = database.policy(table, {**roles, "disease": "sensitive"}, privacy=MODELS)
    run = anonymize(policy)
    expected = [repr(row) for row in database.sql(f"SELECT * FROM {table}_r")]
    assert "stage_1" not in statements(database, run.run)
    monkeypatch.setattr("sqlanon.encoding.fields.WORD_BITS", 12)
    monkeypatch.setattr("sqlanon.encoding.coded_rows.MOST_JOINS", 2)
    monkeypatch.setattr("sqlanon.staging.rows.MOST_JOINS", 2)
    staged = anonymize(policy, replace=True)
    assert [repr(row) for row in database.sql(f"SELECT * FROM {table}_r")] == expected
    assert Counter(statements(database, staged.run).split())["MATERIALIZED"] >= 4
    assert database.leftovers() == []


def statements(database: Database, run: str) -> str:
    """Read the statements by which a run coded rows and wrote them."""
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        coding = ("encoding/encode_rows", "staging/sort_rows", "staging/stage_rows")
        return "\n".join(step.statement for step in catalog.steps(run) if step.name in coding)


@pytest.mark.either_engine
def test_a_table_of_a_hundred_columns(database: Database) -> None:
    names = [f"c{number}" for number in range(100)]
    rows = [(n % 7, *(f"{n * k % (k + 2)}" for k in range(100))) for n in range(20)]
    table = database.create({"age": "INTEGER", **dict.fromkeys(names, "VARCHAR(3)")}, rows)
    run = anonymize(database.policy(table, {"age": "quasi-identifier", **dict.fromkeys(names, "insensitive")}))
    released = database.sql(f"SELECT * FROM {table}_r")
    assert Counter(row[1:] for row in released) == Counter(row[1:] for row in rows)
    assert max(part.count("LEFT JOIN") for part in statements(database, run.run).split("FROM")) <= 48
