"""Bands and groups that drafts propose, on both engines: releases that can be grouped by, and no secrets in drafts."""

from __future__ import annotations

import pytest

from sqlanon.api.calls import draft_policy
from sqlanon.engines.columns import Column, Kind
from sqlanon.inquiries.profile.column_facts import ColumnFacts
from sqlanon.inquiries.profile.hierarchy import band_widths
from sqlanon.inquiries.profile.profiling import vocabularies
from sqlanon.policy import Policy
from sqlanon.policy.loading import parse_policy
from tests.cli.support import execute, query
from tests.run_support import run

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

COUNTRIES = ("United-States", "Germany", "FRANCE", "Viet Nam", "Puerto Rico", "kenya")
JOBS = ("Adm-clerical", "Exec-managerial", "Craft-repair", "Other-service", "Sales", "Farming-fishing")


def make_people(url: str, **columns: str) -> None:
    made = ", ".join(f"{expression} AS {name}" for name, expression in columns.items())
    execute(url, f"CREATE TABLE people AS SELECT {made} FROM generate_series(1, 600) AS n(i)")


def one_of(values: tuple[str, ...], number: str = "i") -> str:
    cases = " ".join(f"WHEN {place} THEN '{value}'" for place, value in enumerate(values))
    return f"CASE {number} % {len(values)} {cases} END"


def drafted(url: str) -> tuple[str, Policy]:
    text = draft_policy(url, "people", trying=False)
    return text, parse_policy(text)


def facts(name: str, kind: Kind, span: float | None, distinct: int = 500) -> ColumnFacts:
    type_name = "DECIMAL(38,30)" if kind is Kind.DECIMAL else kind.value
    return ColumnFacts(Column(name, type_name, kind), 1000, 0, distinct, True, 0.0, 1, 8, 0, span=span)


@pytest.mark.parametrize(
    ("column", "widths"),
    [
        (facts("age", Kind.INTEGER, 60), (5, 10, 20, 40)),
        (facts("yearOfBirth", Kind.INTEGER, 70), (5, 10, 20, 40)),
        (facts("age_group", Kind.INTEGER, 9, distinct=9), ()),
        (facts("hours", Kind.INTEGER, 80), (5, 10, 20, 40)),
        (facts("weight", Kind.INTEGER, 28), (2, 4, 8, 16)),
        (facts("area", Kind.INTEGER, 470_000), (20_000, 40_000, 80_000, 160_000)),
        (facts("height", Kind.FLOAT, 0.9), (0.05, 0.1, 0.2, 0.4)),
        (facts("rate", Kind.FLOAT, 3e-4), (2e-5, 4e-5, 8e-5, 1.6e-4)),
        (facts("exact", Kind.DECIMAL, 100), ()),  # no room to count exactly in
        (facts("never", Kind.FLOAT, None), ()),
        (facts("name", Kind.TEXT, None), ()),
        (facts("zip", Kind.INTEGER, 89_999, 80_000), (10, 100, 1000, 10_000)),  # its first digits, as a mask shows them
    ],
)
def test_bands_are_round_and_nested(column: ColumnFacts, widths: tuple[float, ...]) -> None:
    assert band_widths(column) == pytest.approx(widths)


def test_ages_are_released_in_bands(database_url: str) -> None:
    make_people(database_url, age="20 + i * 7 % 59", city=one_of(("Bonn", "Ulm", "Jena")))
    text, policy = drafted(database_url)
    assert "age: {role: quasi-identifier, hierarchy: {intervals: [5, 10, 20, 40]}}" in text
    assert "show: bounds gives two columns of numbers" in text
    run(policy)
    labels = {row[0] for row in query(database_url, "SELECT DISTINCT age FROM people_released")}
    bands = [tuple(int(end) for end in label.strip("[)").split("-")) for label in labels if "-" in label]
    assert bands
    assert all(low % 5 == 0 and high - low in (5, 10, 20, 40) and low % (high - low) == 0 for low, high in bands)


def test_countries_and_jobs_are_grouped(database_url: str) -> None:
    make_people(database_url, age="20 + i % 7", home=one_of(COUNTRIES), job=one_of(JOBS, "(i / 6)"))
    text, policy = drafted(database_url)
    home, job = policy.attributes["home"].hierarchy, policy.attributes["job"].hierarchy
    assert home is not None
    assert home.mapping is not None
    assert home.unknown == "other"
    assert set(home.mapping) == set(COUNTRIES)
    assert home.mapping["Viet Nam"] == ("South-eastern Asia", "Asia")
    assert home.mapping["FRANCE"] == ("Western Europe", "Europe")
    assert job is not None
    assert job.mapping is not None
    assert job.mapping["Exec-managerial"] == ("managers", "office")
    assert job.mapping["Other-service"] == ("services and sales", "service")
    assert all(len(line) <= 120 for line in text.splitlines() if line.startswith("      "))
    assert run(policy).as_json()["published"]


def test_values_that_are_no_known_words_stay_out_of_the_draft(database_url: str) -> None:
    strange = (*COUNTRIES, "Peru 5551234", "Chad (Ann Miller)", "Zubrowka")
    make_people(
        database_url, age="20 + i % 7", home=f"CASE WHEN i > 60 THEN {one_of(COUNTRIES)} ELSE {one_of(strange)} END"
    )
    text, policy = drafted(database_url)
    assert policy.attributes["home"].hierarchy is not None
    assert not any(word in text for word in ("Peru", "5551234", "Chad", "Miller", "Zubrowka"))
    assert run(policy).as_json()["published"]  # they are in the group `other`


def test_columns_of_which_few_values_are_known_are_left_alone(database_url: str) -> None:
    make_people(database_url, age="20 + i % 7", home=one_of((*COUNTRIES, *(f"z{n}" for n in range(6)))))
    text, policy = drafted(database_url)
    assert policy.attributes["home"].hierarchy is None
    assert "Germany" not in text


def test_each_word_has_one_place() -> None:
    countries, occupations = vocabularies()
    assert (countries.phrases, occupations.phrases) == (True, False)
    assert len(countries.groups) > 600
    assert countries.groups_of("Côte d'Ivoire") == countries.groups_of("nowhere") is None
    assert countries.groups_of("  United_Kingdom") == ("Northern Europe", "Europe")
    assert occupations.groups_of("sales manager") == ("managers", "office")
    assert {len(labels) for one in (countries, occupations) for labels in one.groups.values()} == {2}
