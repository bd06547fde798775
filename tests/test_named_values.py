"""Models that name values of their attribute, from the policy to the published release, on both engines."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

import pytest

from sqlanon.errors import PolicyError, VerificationError
from tests.run_support import Database, Row, anonymize
from tests.test_failing_checks import Tampering

pytestmark = pytest.mark.either_engine

DAY = datetime.date(2020, 2, 29)
SENSITIVE: dict[str, tuple[str, list[Any], Any]] = {
    "texts": ("VARCHAR(9)", ["HIV", "flu", "it's", None], "HIV"),
    "integers": ("INTEGER", [-3, 0, 12, None], -3),
    "decimals": ("DECIMAL(9,2)", [1, 2.5, 3, None], "1.00"),
    "doubles": ("DOUBLE PRECISION", [0.5, 1e20, 3.0, None], 0.5),
    "days": ("DATE", [DAY, DAY + datetime.timedelta(1), DAY + datetime.timedelta(9), None], "2020-02-29"),
    "truths": ("BOOLEAN", [True, False, False, None], True),
}
"""Type, values, and the one that is named, as a policy writes it; it is the first."""
NESTED: dict[str, Any] = {"role": "quasi-identifier", "hierarchy": {"intervals": [4, 8, 16]}}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "mondrian": {},
    "optimal": {"suppression": 0.3},
    "incognito": {},
    "top-down": {},
    "microaggregation": {},
}


def rows_of(values: list[Any]) -> list[Row]:
    """Neighbours that share the first value, others that mix them, and a few that are not known."""
    first, second, third, unknown = values
    mixed = [first, second, third, second, third, second]
    return [(n, first if n < 3 else unknown if n % 11 == 0 else mixed[n % 6]) for n in range(40)]


def greatest(rows: list[Row], value: Any) -> Fraction:
    """The greatest share of a class that has the value, or may have it."""
    classes: dict[Row, Counter[bool]] = defaultdict(Counter)
    for *shown, held in rows:
        classes[tuple(shown)][held is None or held == value] += 1
    return max(Fraction(counts[True], counts.total()) for counts in classes.values())


def asked(named: Any, alpha: float = 0.5) -> list[dict[str, Any]]:
    return [{"model": "alpha-k", "attribute": "s", "alpha": alpha, "k": 3, "values": [named]}]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("kind", SENSITIVE)
def test_a_named_value_is_bounded_whatever_its_type(database: Database, kind: str, algorithm: str) -> None:
    type_, values, named = SENSITIVE[kind]
    table = database.create({"q": "INTEGER", "s": type_}, rows_of(values))
    quasi: Any = "quasi-identifier" if algorithm in ("mondrian", "microaggregation") else NESTED
    more = {"algorithm": {"name": algorithm}, **ALGORITHMS[algorithm]}
    released = database.release(table, {"q": quasi, "s": "sensitive"}, privacy=asked(named), **more)
    assert greatest(released, values[0]) <= Fraction(1, 2)
    assert Counter(row[:-1] for row in released).most_common()[-1][1] >= 3
    plain = database.release(
        table, {"q": quasi, "s": "sensitive"}, privacy=[{"model": "k-anonymity", "k": 3}], **more | {"suppression": 0}
    )
    if algorithm == "mondrian":
        assert greatest(plain, values[0]) > Fraction(1, 2)  # so it was the model that made the difference


def test_a_value_that_no_row_has_is_refused(database: Database) -> None:
    table = database.create({"q": "INTEGER", "s": "VARCHAR(9)"}, rows_of(SENSITIVE["texts"][1]))
    with pytest.raises(PolicyError, match=r"privacy\[0\] \(alpha-k\): no row of s has the value 'hiv'; correct it"):
        database.release(table, {"q": "quasi-identifier", "s": "sensitive"}, privacy=asked("hiv"))


def test_a_staged_release_in_which_the_value_is_too_frequent_is_not_published(database: Database) -> None:
    table = database.create({"q": "INTEGER", "s": "VARCHAR(9)"}, rows_of(SENSITIVE["texts"][1]))
    policy = database.policy(table, {"q": "quasi-identifier", "s": "sensitive"}, privacy=asked("HIV"))
    with pytest.raises(VerificationError, match="alpha-k"):
        anonymize(policy, observer=Tampering(database, "UPDATE {staged} SET s = 'HIV' WHERE s = 'flu'"))
    assert not database.sql("SELECT 1 FROM information_schema.tables WHERE table_name = ?", [f"{table}_r"])
