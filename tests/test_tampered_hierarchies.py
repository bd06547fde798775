"""Labels that are exchanged in the table that a search made of a hierarchy are not published."""

from __future__ import annotations

from typing import Any

import pytest

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.errors import VerificationError
from sqlanon.runs import class_source
from sqlanon.runs.execution import Encoded, RunExecution
from sqlanon.sql import Statement
from tests.run_support import Database, anonymize

JOBS = {"nurse": ["health", "*"], "doctor": ["health", "*"], "smith": ["craft", "*"], "baker": ["craft", "*"]}
KINDS: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "mapping": ("VARCHAR(9)", list(JOBS), {"mapping": JOBS}),
    "mask": ("VARCHAR(9)", ["120", "121", "340", "341"], {"mask": "right", "length": 3}),
    "intervals": ("INTEGER", [1, 2, 11, 12], {"intervals": [10, 20]}),
    "date": ("DATE", ["2024-01-03", "2024-01-04", "2025-06-01", "2025-06-02"], {"date": ["month", "year"]}),
}


def exchange_labels(engine: Engine, coded: CodedTable) -> None:
    """Exchange the labels of the two groups of level 1 of the only hierarchy; of a mask the texts they are made of."""
    hierarchy = coded.quasi_identifiers[0].coding.hierarchy
    assert hierarchy is not None
    column = "l1" if hierarchy.counted else "left(l0, 2)"
    ends = engine.fetch(Statement("test", f"SELECT min({column}), max({column}) FROM {hierarchy.stored}"))
    least, greatest = (str(end) for end in ends[0])
    assert least != greatest
    exchanged = f"CASE {column} WHEN '{least}' THEN '{greatest}' ELSE '{least}' END"
    target = "l1" if hierarchy.counted else "l0"
    rest = "" if hierarchy.counted else " || right(l0, 1)"
    engine.execute(Statement("test", f"UPDATE {hierarchy.stored} SET {target} = {exchanged}{rest}"))


@pytest.mark.either_engine
@pytest.mark.parametrize("algorithm", ["optimal", "mondrian", "top-down"])
@pytest.mark.parametrize("kind", KINDS)
def test_exchanged_labels_are_refused(
    database: Database, kind: str, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_, values, hierarchy = KINDS[kind]
    rows = [(values[n % 4], n) for n in range(20)]
    table = database.create({"q": type_, "id": "INTEGER"}, rows)
    attributes = {"q": {"role": "quasi-identifier", "hierarchy": hierarchy}, "id": "insensitive"}
    asked = {"algorithm": {"name": algorithm}, "privacy": [{"model": "k-anonymity", "k": 6}]}
    policy = database.policy(table, attributes, **asked)
    anonymize(policy)
    released = database.sql(f"SELECT * FROM {table}_r")
    assert len({shown for shown, _ in released}) == 2  # both groups of level 1 are shown

    encode = class_source._encode

    def tampered(run: RunExecution, *arguments: Any) -> Encoded:
        encoded = encode(run, *arguments)
        exchange_labels(run.engine, encoded.coded)
        return encoded

    monkeypatch.setattr(class_source, "_encode", tampered)
    with pytest.raises(VerificationError):
        anonymize(policy, replace=True)
    assert database.sql(f"SELECT * FROM {table}_r") == released
    assert database.leftovers() == []
