"""A hierarchy that models measure distances by is the policy's, or nothing is verified by it."""

from __future__ import annotations

from typing import Any

import pytest

from sqlanon.errors import VerificationError
from sqlanon.hierarchies import scratch
from sqlanon.sql import Statement
from sqlanon.verification.release import verify_release
from tests.run_support import OPTIONS, anonymize, open_database

JOBS = {"nurse": ["health", "*"], "doctor": ["health", "*"], "smith": ["craft", "*"], "baker": ["craft", "*"]}
KINDS: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "mapping": ("VARCHAR(9)", list(JOBS), {"mapping": JOBS}),
    "mask": ("VARCHAR(9)", ["120", "121", "340", "341"], {"mask": "right"}),
    "intervals": ("INTEGER", [1, 2, 11, 12], {"intervals": [10, 20]}),
    "date": ("DATE", ["2024-01-03", "2024-01-04", "2025-06-01", "2025-06-02"], {"date": ["month", "year"]}),
}


@pytest.mark.either_engine
@pytest.mark.parametrize("column", ["l1", "g1"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_exchanged_hierarchy_is_refused(
    database_url: str, kind: str, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_, values, hierarchy = KINDS[kind]
    closeness = {"model": "t-closeness", "attribute": "s", "distance": "hierarchical", "t": 0.9}
    with open_database(database_url) as database:
        database.create({"q": "INTEGER", "s": type_}, [(n % 2, values[n % 4]) for n in range(20)], "t")
        roles = {"q": "quasi-identifier", "s": {"role": "sensitive", "hierarchy": hierarchy}}
        policy = database.policy("t", roles, privacy=[closeness])
    anonymize(policy)
    assert verify_release(policy, options=OPTIONS).satisfied
    build = scratch._build

    def tampered(engine: Any, *arguments: Any) -> Any:
        built = build(engine, *arguments)
        target = column if built.counted else {"l1": "l0", "g1": "code"}[column]  # a mask stores neither
        first, last = str(values[0]), str(values[-1])
        exchanged = "".join(
            f" WHEN CAST(value AS VARCHAR) = '{one}' THEN"
            f" (SELECT o.{target} FROM {built.stored} AS o WHERE CAST(o.value AS VARCHAR) = '{other}')"
            for one, other in ((first, last), (last, first))
        )
        engine.execute(Statement("test", f"UPDATE {built.stored} SET {target} = CASE{exchanged} ELSE {target} END"))
        return built

    monkeypatch.setattr(scratch, "_build", tampered)
    with pytest.raises(VerificationError, match="hierarchy of 's'"):
        verify_release(policy, options=OPTIONS)
    with pytest.raises(VerificationError):
        anonymize(policy, replace=True)
