"""The command and the calls that measure what singles rows out: the same, beside the risk of classes."""

from __future__ import annotations

import pytest

from sqlanon import PolicyError, policy_risk, table_risk
from sqlanon.results.codec import to_json
from tests.cli.support import call, only_object, query
from tests.inquiries.risk.brute_force import COLUMNS, QUASI_IDENTIFIERS, create, people
from tests.run_support import anonymize, open_database

pytestmark = pytest.mark.either_engine


def test_the_command_prints_what_the_call_measures(database_url: str) -> None:
    table = create(database_url, people(1))
    before = query(database_url, "SELECT count(*) FROM information_schema.tables")
    risk = table_risk(database_url, table, QUASI_IDENTIFIERS, subsets=3, suda=2)
    assert query(database_url, "SELECT count(*) FROM information_schema.tables") == before
    arguments = ("risk", database_url, table, "--qi", ",".join(QUASI_IDENTIFIERS), "--subsets", "3", "--suda", "2")
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    data = only_object(result.stdout)
    assert data == {"table": table, **to_json(risk), "suda": data["suda"]}
    assert risk.subsets is not None
    assert risk.suda is not None
    assert len(data["subsets"]) == len(risk.subsets) == 7
    assert set(data["subsets"][0]) == {"columns", "distinction", "separation"}
    assert data["suda"]["minimal_uniques_by_size"] == {
        str(size): n for size, n in risk.suda.minimal_uniques_by_size.items()
    }
    assert set(data["suda"]["contribution_by_column"]) == set(QUASI_IDENTIFIERS)
    text = call(*arguments).stdout
    assert "Of 7 subsets of columns" in text
    assert "Minimal sample uniques" in text


def test_one_subset_and_one_row_are_in_the_singular(database_url: str) -> None:
    table = create(database_url, people(1)[:1])
    text = call("risk", database_url, table, "--qi", QUASI_IDENTIFIERS[0], "--subsets", "1", "--suda", "1").stdout
    assert "Of 1 subset of columns" in text
    assert "1 row (100 %) has one" in text


def test_what_was_not_asked_for_is_not_measured(database_url: str) -> None:
    risk = to_json(table_risk(database_url, create(database_url, people(2)), QUASI_IDENTIFIERS))
    assert (risk["suda"], risk["subsets"]) == (None, None)


def test_a_policy_is_measured_by_its_source(database_url: str) -> None:
    roles = {"person": "identifier", **dict.fromkeys(QUASI_IDENTIFIERS, "quasi-identifier")}
    with open_database(database_url) as database:
        table = database.create(COLUMNS, people(3))
        policy = database.policy(table, roles, subject="none", privacy=[{"model": "k-anonymity", "k": 5}])
    both = policy_risk(policy, subsets=2, suda=3)
    alone = table_risk(database_url, table, QUASI_IDENTIFIERS, subsets=2, suda=3)
    assert both.source == alone


def test_uniques_and_subsets_are_of_persons(database_url: str) -> None:
    """Five rows of each person: measured is what a table with one row of each measures."""
    one_each = people(5, rows=40)
    once = create(database_url, [(n, *row[1:]) for n, row in enumerate(one_each)])
    often = create(database_url, [(n, *row[1:]) for n, row in enumerate(one_each) for _ in range(5)])
    by_row = table_risk(database_url, once, QUASI_IDENTIFIERS, subsets=3, suda=3)
    by_person = table_risk(database_url, often, QUASI_IDENTIFIERS, subsets=3, suda=3, subject="person")
    assert (by_person.suda, by_person.subsets) == (by_row.suda, by_row.subsets)
    assert by_row.suda.rows > 0
    assert (by_person.unit, by_person.rows, by_person.persons) == ("persons", 200, 40)
    assert table_risk(database_url, often, QUASI_IDENTIFIERS, suda=3).suda.rows == 0


def test_persons_whose_rows_differ_are_not_measured_by_one_of_them(database_url: str) -> None:
    rows = people(6, rows=40)
    table = create(database_url, [(0, *row[1:]) for row in rows])
    with pytest.raises(PolicyError, match="look at one row a person, and rows of one 'person' differ"):
        table_risk(database_url, table, QUASI_IDENTIFIERS, suda=3, subject="person")


def test_a_release_is_measured_by_what_it_shows(database_url: str) -> None:
    """A policy's persons too, in its source and in its release, which shows surrogates."""
    shown = {"person": {"role": "identifier", "show": "surrogate"}}
    roles = {**shown, **dict.fromkeys(QUASI_IDENTIFIERS, "quasi-identifier")}
    rows = [(n, *row[1:]) for n, row in enumerate(people(7, rows=30)) for _ in range(2)]
    with open_database(database_url) as database:
        table = database.create(COLUMNS, rows)
        policy = database.policy(table, roles, subject="person", privacy=[{"model": "k-anonymity", "k": 4}])
        anonymize(policy)
    both = policy_risk(policy, subsets=2, suda=3)
    assert both.source.suda == table_risk(database_url, table, QUASI_IDENTIFIERS, suda=3, subject="person").suda
    assert both.release is not None
    assert both.release.suda.rows == 0
    assert max(one.distinction for one in both.release.subsets) <= 1 / 4


def test_wrong_sizes_are_refused(database_url: str) -> None:
    table = create(database_url, people(4, rows=5))
    with pytest.raises(PolicyError, match="a subset has 1 column at least"):
        table_risk(database_url, table, QUASI_IDENTIFIERS, suda=0)
