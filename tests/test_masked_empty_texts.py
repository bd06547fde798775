"""An empty text under a mask is told from a suppressed one: by the release, its rules, and its verification."""

from __future__ import annotations

from typing import Any

import pytest
from markupsafe import Markup

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.policy import Hierarchy
from sqlanon.releases.rules.export_sql import rules_select
from sqlanon.releases.rules.store_rules import read_rules
from sqlanon.verification.policy_labels import Labelled, Ladder, count_untrue_labels
from tests.rules_support import apply
from tests.run_support import Database, Row, anonymize

pytestmark = pytest.mark.either_engine

COLUMNS = {"code": "VARCHAR(3)", "id": "INTEGER"}
CODES = ["", "", "", "130", "131", "132", "240", "241", "242", "999", "998", "997"]
K3 = [{"model": "k-anonymity", "k": 3}]


def roles(side: str) -> dict[str, Any]:
    return {"code": {"role": "quasi-identifier", "hierarchy": {"mask": side}}, "id": "insensitive"}


def rows(codes: list[str], first: int = 0) -> list[Row]:
    return [(code, number) for number, code in enumerate(codes, start=first)]


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_release_its_rules_and_a_select_show_it(database: Database, side: str) -> None:
    """Three rows with codes of their own are suppressed: they show `*`, and nothing else does."""
    codes = [*(code[:: 1 if side == "right" else -1] for code in CODES), "5", "6", "7"]
    table, newer = database.create(COLUMNS, rows(codes)), database.create(COLUMNS, rows(codes, 100))
    policy = database.policy(
        table,
        roles(side),
        privacy=K3,
        algorithm={"name": "optimal", "limits": {"code": [1, 1]}},
        suppression=0.3,
        suppressed="star",
    )
    run = anonymize(policy).run
    released = dict(database.sql(f"SELECT id, code FROM {table}_r"))
    assert [released[number] for number in (0, 1, 2)] == ['""'] * 3
    assert [released[number] for number in (12, 13, 14)] == ["*"] * 3
    assert list(released.values()).count("*") == 3

    apply(database, run, newer, f"{newer}_r")
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        text = rules_select(engine, read_rules(catalog, run), catalog.run(run), newer)
    assert {number - 100: code for number, code in database.sql(f"SELECT id, code FROM {newer}_r")} == released
    selected = dict(database.sql(f"SELECT id, code FROM ({text}) AS x"))  # which judges no classes
    assert [number for number, code in sorted(selected.items()) if code == '""'] == [100, 101, 102]
    assert "*" not in selected.values()


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(
    ("levels", "true"),
    [(None, {"", '""', "*"}), ({0}, {""}), ({1}, {'""'}), ({1, 2}, {'""'}), ({0, 2, 3}, {"", '""', "*"})],
)
def test_verification_reads_its_label(engine: Engine, side: str, levels: set[int] | None, true: set[str]) -> None:
    """Stars stand for an empty text only where a cell may hide everything."""
    cells = ["", '""', "*", "**", "***", '""*', '*""', "NULL"]
    ladder = Ladder(Hierarchy(mask=side, length=3), levels=None if levels is None else frozenset(levels))
    for cell in cells:
        witness = Markup(f"(SELECT CAST('' AS VARCHAR(3)) AS r, '{cell}' AS c)")
        labelled = Labelled(witness, Column("r", "VARCHAR(3)", Kind.TEXT), "r", "c", may_be_starred=False)
        found = count_untrue_labels(engine, labelled, ladder)
        assert (found == 0) == (cell in true), cell
