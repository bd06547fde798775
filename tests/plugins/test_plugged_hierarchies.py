"""A kind of hierarchy of an installed package: built, verified, reported."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import strategies as st

from sqlanon.errors import PolicyError, VerificationError
from sqlanon.hierarchies import build
from sqlanon.policy.loading import parse_stored
from sqlanon.policy.writer import policy_text
from sqlanon.report.queries import run_report
from sqlanon.sql import Statement
from tests.plugins.support import K2, policy_with
from tests.random_cases import for_random
from tests.run_support import Database, Row, anonymize

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

MAGNITUDE = {"role": "quasi-identifier", "hierarchy": {"magnitude": {"base": 10}}}
NUMBERS: dict[str, Any] = {"n": MAGNITUDE, "s": "insensitive"}
NUMBER_COLUMNS = {"n": "BIGINT", "s": "INTEGER"}
NUMBER_CASES = st.tuples(
    st.lists(st.none() | st.integers(-1200, 1200) | st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=20),
    st.sampled_from([0, 0, 0.3]),
    st.sampled_from(["optimal", "optimal", "mondrian", "top-down"]),
)


def magnitude(number: int | None, level: int) -> str:
    """The label of a number at a level, by its digits."""
    if level == 3 or number is None:
        return "NULL" if number is None and level < 3 else "*"
    if level == 0 or number == 0:
        return str(number)
    if level == 2:
        return "positive" if number > 0 else "negative"
    low = 10 ** (len(str(abs(number))) - 1)
    return f"{low}-{low * 10 - 1}" if number > 0 else f"-{low * 10 - 1}--{low}"


@pytest.mark.usefixtures("example")
@for_random(NUMBER_CASES, {"duckdb": 5, "postgres": 3})
def test_labels_of_a_hierarchy_of_a_package_are_those_of_the_values(
    database: Database, case: tuple[list[int | None], float, str]
) -> None:
    numbers, suppression, name = case
    rows: list[Row] = list(zip(numbers, range(len(numbers)), strict=True))
    algorithm: dict[str, Any] = {"name": name}
    share = {"suppression": suppression} if name == "optimal" else {}
    released = database.release_once(NUMBER_COLUMNS, rows, NUMBERS, algorithm=algorithm, **share)
    assert released is not None
    assert len(released) >= len(rows) * (1 - suppression)
    sizes = Counter(label for label, _ in released)
    assert min(sizes.values(), default=2) >= 2
    for label, place in released:
        assert label in {magnitude(numbers[place], level) for level in range(4)}
    if name == "optimal" and not suppression:
        levels = [Counter(magnitude(number, level) for number in numbers) for level in range(4)]
        best = next(level for level, counts in enumerate(levels) if min(counts.values()) >= 2)
        assert sizes == levels[best]


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize("label", ["magnitude", "base", "one"])
def test_wrong_hierarchies_of_a_package_are_named(label: str) -> None:
    given, problem = {
        "magnitude": ({"magnitude": 10}, "hierarchy"),
        "base": ({"magnitude": {"base": 1}}, "base must be a whole number of at least 2"),
        "one": ({"magnitude": {}, "intervals": [5]}, "must hold exactly one of .*, magnitude"),
    }[label]
    with pytest.raises(PolicyError, match=problem):
        policy_with(K2, attributes={"age": {"role": "quasi-identifier", "hierarchy": given}, "s": "sensitive"})


def test_without_the_package_its_hierarchy_is_unknown() -> None:
    with pytest.raises(PolicyError, match="unknown key 'magnitude'"):
        policy_with(K2, attributes={"age": MAGNITUDE})


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize(("label", "problem"), [("NULL", "missing or empty label to 1 value"), ("'x'", "do not nest")])
def test_bad_labels_of_a_package_are_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch, label: str, problem: str
) -> None:
    from sqlanon_example.magnitude import Magnitude

    own = Magnitude.labels

    def bad(self: Any, render: Any, column: Any, values: Any) -> Statement:
        text = own(self, render, column, values).text
        cases = "CASE WHEN value IN (5, -7) THEN {} ELSE {} END"
        first = "CASE WHEN value = 5 THEN NULL ELSE l1 END" if label == "NULL" else cases.format(label, "l1")
        return Statement("bad", f"SELECT value, {first} AS l1, l2 FROM ({text}) AS own")

    monkeypatch.setattr(Magnitude, "labels", bad)
    table = database.create(NUMBER_COLUMNS, [(5, 1), (-7, 2), (50, 3)])
    with pytest.raises(PolicyError, match=problem):
        database.release(table, NUMBERS, algorithm={"name": "optimal"})


@pytest.mark.usefixtures("example")
def test_tampered_labels_of_a_package_are_refused(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two labels change places in the dimension table, as soon as it is built."""
    table = database.create(NUMBER_COLUMNS, [(number, number) for number in (11, 12, 13, 140, 150, 160)])
    own = build._build

    def tampered(task: Any) -> Any:
        built = own(task)
        swapped = "CASE l1 WHEN '10-99' THEN '100-999' ELSE '10-99' END"
        task.engine.execute(Statement("tamper", f"UPDATE {built.stored} SET l1 = {swapped}"))
        return built

    monkeypatch.setattr(build, "_build", tampered)
    with pytest.raises(VerificationError):
        database.release(table, NUMBERS, algorithm={"name": "optimal"})
    assert not database.leftovers()


@pytest.mark.usefixtures("example")
def test_a_hierarchy_of_a_package_survives_its_text_and_is_reported(database: Database) -> None:
    table = database.create(NUMBER_COLUMNS, [(number, number) for number in (11, 12, -13, -14)])
    policy = database.policy(table, NUMBERS, algorithm={"name": "optimal"})
    assert parse_stored(policy_text(policy)).attributes == policy.attributes
    assert "groups of magnitude" in run_report(anonymize(policy).run, policy=policy)
