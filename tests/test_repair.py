"""Repairs: classes are merged until all releases about the same people hold together, or the release is refused."""

from __future__ import annotations

import pytest

from sqlanon.errors import ProtectionError
from tests.run_support import Database, anonymize
from tests.test_accounts import COLUMNS, PEOPLE, classes_of, expected, fill, groups_of, person, policy_of


def test_try(database: Database) -> None:
    table = database.create(COLUMNS, list(PEOPLE.values()))
    first = policy_of(database, table, "refresh", people="ours")
    anonymize(first)
    released = [classes_of(database, f"{table}_r")]
    other = database.create(COLUMNS, [])
    state = {n: person(n, 20 + (n * 7) % 16, "ab"[n % 3 % 2], ["flu", "rash"][n % 2]) for n in range(16)}
    fill(database, other, state)
    second = policy_of(database, other, "refresh", people="ours")
    with pytest.raises(ProtectionError):
        anonymize(second)
    result = anonymize(second, repair=True)
    print(result.history.sentence)
    released.append(classes_of(database, f"{other}_r"))
    holds, _ = expected(released, state)
    assert holds
