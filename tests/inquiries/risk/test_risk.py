"""Risk of a table by rows and by persons: on both engines as by brute force, and as published."""

from __future__ import annotations

import pytest

from sqlanon import PolicyError, policy_risk, table_risk
from sqlanon.measures.population import journalist_risk
from sqlanon.models.uniqueness.estimating import count_zayatz
from sqlanon.results.codec import to_json
from sqlanon.results.risk import TableRisk
from tests.cli.support import call, execute, only_object, query
from tests.inquiries.risk.brute_force import COLUMNS, QUASI_IDENTIFIERS, class_sizes, create, histogram, people
from tests.run_support import Row, anonymize, open_database


def require_attacks(risk: TableRisk, rows: list[Row], *, by_person: bool = False) -> None:
    """Hold the figures that follow from class sizes against those of each member."""
    sizes = class_sizes(rows, by_person=by_person)
    risks = [1 / size for size in sizes.values() for _ in range(size)]
    assert (risk.rows, risk.members, risk.classes) == (len(rows), len(risks), len(sizes))
    assert risk.sample_uniques == sum(size == 1 for size in sizes.values())
    assert risk.prosecutor.max == max(risks)
    assert risk.prosecutor.mean == risk.marketer == pytest.approx(sum(risks) / len(risks))
    for one in risk.prosecutor.at_risk:
        above = sum(risk > one.threshold for risk in risks)
        assert (one.members, one.share) == (above, pytest.approx(above / len(risks)))
    assert sum(bucket.classes for bucket in risk.sizes) == len(sizes)


@pytest.mark.parametrize("seed", [1, 2])
def test_risks_are_those_by_brute_force(database_url: str, seed: int) -> None:
    rows = people(seed)
    table = create(database_url, rows)
    by_rows = table_risk(database_url, table, QUASI_IDENTIFIERS, thresholds=[0.1, 0.2, 0.5, 1.0])
    require_attacks(by_rows, rows)
    assert by_rows.persons is None
    by_person = table_risk(database_url, table, QUASI_IDENTIFIERS, subject="person")
    require_attacks(by_person, rows, by_person=True)
    persons = len({row[0] for row in rows})
    assert by_person.persons == persons
    assert f"{by_person.members - persons:,} classes beyond" in by_person.warnings[0]


@pytest.mark.either_engine
def test_a_subject_with_nulls_is_refused_with_how_many(database_url: str) -> None:
    table = create(database_url, [*people(4, rows=10), (None, 1, "x", "f"), (None, 2, "x", "f")])
    with pytest.raises(PolicyError, match="The subject 'person' is NULL in 2 of 12 rows"):
        table_risk(database_url, table, QUASI_IDENTIFIERS, subject="person")


@pytest.mark.either_engine
def test_a_unique_subject_is_warned_of(database_url: str) -> None:
    rows = [(number, *rest) for number, (_, *rest) in enumerate(people(5, rows=40))]
    table = create(database_url, rows)
    risk = table_risk(database_url, table, QUASI_IDENTIFIERS, subject="person")
    assert risk.warnings == ("The subject 'person' is unique: every row is a person of its own, as without a subject.",)
    plain = table_risk(database_url, table, QUASI_IDENTIFIERS)
    assert (risk.sizes, risk.prosecutor) == (plain.sizes, plain.prosecutor)


def test_rows_of_one_person_in_one_class_protect_nobody(database_url: str) -> None:
    table = create(database_url, [(1, 30, "a", "f")] * 5 + [(2, 40, "a", "f"), (3, 40, "a", "f")])
    assert table_risk(database_url, table, QUASI_IDENTIFIERS).prosecutor.max == 1 / 2
    by_person = table_risk(database_url, table, QUASI_IDENTIFIERS, subject="person")
    assert (by_person.prosecutor.max, by_person.sample_uniques, by_person.warnings) == (1.0, 1, ())


@pytest.mark.either_engine
def test_an_empty_table_has_no_risk(database_url: str) -> None:
    table = create(database_url, [])
    risk = table_risk(database_url, table, QUASI_IDENTIFIERS, subject="person")
    assert (risk.rows, risk.classes, risk.prosecutor.max, risk.marketer, risk.sizes) == (0, 0, 0.0, 0.0, ())


@pytest.mark.either_engine
def test_columns_are_named_once_and_exist(database_url: str) -> None:
    table = create(database_url, people(6, rows=5))
    with pytest.raises(PolicyError, match="has no column 'agee'"):
        table_risk(database_url, table, ["agee"])
    with pytest.raises(PolicyError, match="is named twice"):
        table_risk(database_url, table, ["age", "age"])
    with pytest.raises(PolicyError, match="is named twice"):
        table_risk(database_url, table, ["age", "person"], subject="person")
    with pytest.raises(PolicyError, match="above 0 and at most 1"):
        table_risk(database_url, table, ["age"], thresholds=[0.0])


def test_a_policy_is_measured_before_and_after(database_url: str) -> None:
    rows = people(7)
    roles = {"person": "identifier", **dict.fromkeys(QUASI_IDENTIFIERS, "quasi-identifier")}
    with open_database(database_url) as database:
        table = database.create(COLUMNS, rows)
        policy = database.policy(table, roles, subject="none", privacy=[{"model": "k-anonymity", "k": 5}])
    before = policy_risk(policy)
    assert before.release is None
    assert before.note == "There is no release yet, or it can't be read."
    require_attacks(before.source, rows)
    anonymize(policy)
    after = policy_risk(policy)
    assert after.source == before.source
    assert after.release is not None
    require_attacks(after.release, [(None, *row) for row in query(database_url, f"SELECT * FROM {table}_r")])
    assert after.release.prosecutor.max <= 1 / 5


def test_the_command_prints_the_same_as_the_call(database_url: str) -> None:
    execute(
        database_url, "CREATE TABLE people AS SELECT 1 AS who, 30 AS age UNION ALL SELECT 2, 30 UNION ALL SELECT 3, 31"
    )
    result = call("risk", database_url, "people", "--qi", "age", "--subject", "who", "--threshold", "0.5", "--json")
    assert result.exit_code == 0, result.output
    risk = table_risk(database_url, "people", ["age"], subject="who", thresholds=[0.5])
    assert only_object(result.stdout) == {"table": "people", **to_json(risk)}
    assert only_object(result.stdout)["prosecutor"] == {
        "max": 1.0,
        "mean": pytest.approx(2 / 3),
        "at_risk": [{"threshold": 0.5, "members": 1, "share": pytest.approx(1 / 3)}],
    }
    text = call("risk", database_url, "people", "--qi", "age").stdout
    assert "people: 3 rows in 2 classes of age." in text
    assert "Alone in their class: 1 row (33.33 %)." in text


@pytest.mark.either_engine
def test_wrong_command_lines_are_refused(database_url: str) -> None:
    for arguments in ([database_url, "--qi", "age"], [database_url, "people"], ["policy.yml", "--qi", "age"]):
        assert call("risk", *arguments).exit_code == 2


@pytest.mark.either_engine
def test_a_sample_has_a_journalist_and_uniques_of_its_population(database_url: str) -> None:
    rows = people(8)
    table = create(database_url, rows)
    risk = table_risk(database_url, table, QUASI_IDENTIFIERS, sample_of=0.3)
    sizes = class_sizes(rows)
    risks = [journalist_risk(size, 0.3) for size in sizes.values() for _ in range(size)]
    assert risk.journalist is not None
    assert risk.journalist.by == "fraction"
    assert (risk.journalist.max, risk.journalist.mean) == (max(risks), pytest.approx(sum(risks) / len(risks)))
    assert [one.members for one in risk.journalist.at_risk] == [
        sum(risk > one.threshold for risk in risks) for one in risk.journalist.at_risk
    ]
    assert risk.population_uniqueness is not None
    assert risk.population_uniqueness.population == 500
    tallies = sorted(histogram(sizes).items())
    assert risk.population_uniqueness.zayatz.uniques == pytest.approx(count_zayatz(tallies, 500))
    text = call("risk", database_url, table, "--qi", "age,zip,sex", "--sample-of", "0.3").stdout
    for part in ("(journalist)", "Alone in a population of 500 rows", "Zayatz", "Pitman", "to trust"):
        assert part in text
    with pytest.raises(PolicyError, match="A sampling fraction"):
        table_risk(database_url, table, QUASI_IDENTIFIERS, sample_of=1.5)
