"""Individual risk by weights, and of households: by quadrature and closed forms, row by row, on both engines."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence

import pytest

from sqlanon import PolicyError, table_risk
from sqlanon.inquiries.risk.class_sizes import RISK
from sqlanon.measures.population import journalist_risk
from sqlanon.sql import renderer
from tests.cli.support import call, query
from tests.inquiries.risk.brute_force import people
from tests.run_support import Row, open_database

pytestmark = pytest.mark.slow

COLUMNS = {
    "person": "INTEGER",
    "age": "INTEGER",
    "zip": "VARCHAR(5)",
    "sex": "VARCHAR(1)",
    "house": "INTEGER",
    "weight": "DOUBLE PRECISION",
}
QUASI_IDENTIFIERS = ["age", "zip", "sex"]
THRESHOLDS = [0.01, 0.05, 0.2, 0.99]


def weighted(seed: int) -> list[Row]:
    """Rows with a household and a weight, which are the same for all rows of a person."""
    return [(*row, row[0] // 3, 1 + row[0] % 7 * 2.5) for row in people(seed)]


def create(url: str, rows: Sequence[Row]) -> str:
    with open_database(url) as database:
        return database.create(COLUMNS, rows)


def risks(rows: Sequence[Row], *, by_person: bool) -> dict[tuple[Hashable, Hashable], float]:
    """The risk of each member: rows by their number, or persons, in each of their classes."""
    members: dict[Hashable, dict[Hashable, float]] = defaultdict(dict)
    for number, (person, age, zip_code, sex, _, weight) in enumerate(rows):
        members[age, zip_code, sex][person if by_person else number] = weight
    of_members = {}
    for key, weights in members.items():
        share = min(1.0, len(weights) / sum(weights.values()))
        for member in weights:
            of_members[member, key] = journalist_risk(len(weights), share)
    return of_members


@pytest.mark.parametrize("members", [1, 2, 3, 4, 7, 19, 20, 21, 150, 10_000])
def test_the_risk_in_sql_is_the_integral(database_url: str, members: int) -> None:
    """From shares next to nothing to 1, on both sides of all its borders."""
    shares = [1e-9, 1e-4, 0.02, 0.3, 0.499, 0.5, 0.7, 0.99, 1 - 1e-12, 1.0]
    of_shares = " UNION ALL ".join(
        f"SELECT CAST('{members}' AS FLOAT8) AS members, CAST('{share!r}' AS FLOAT8) AS share" for share in shares
    )
    odds = "CASE WHEN share < 1 THEN share / (1 - share) END AS odds, -ln(share) AS information"
    risks_of = (
        f"SELECT h.share, {renderer('duckdb').written(RISK)} FROM (SELECT s.*, {odds} FROM ({of_shares}) AS s) AS h"
    )
    got = dict(query(database_url, risks_of))
    assert len(got) == len(shares)
    for share, risk in got.items():
        assert risk == pytest.approx(journalist_risk(members, share), rel=1e-9), share


@pytest.mark.parametrize("share", [0.02, 0.4, 0.8])
def test_small_classes_have_the_closed_forms_of_the_handbooks(share: float) -> None:
    """Of mu-Argus and sdcMicro, for one, two and three members."""
    rest = 1 - share
    assert journalist_risk(1, share) == pytest.approx(share / rest * math.log(1 / share))
    assert journalist_risk(2, share) == pytest.approx(share / rest**2 * (share * math.log(share) + rest))
    third = share / (2 * rest**3) * (rest * (3 * rest - 2) - 2 * share**2 * math.log(share))
    assert journalist_risk(3, share) == pytest.approx(third)


@pytest.mark.parametrize("subject", [None, "person"])
def test_individual_risks_add_up_to_those_of_members(database_url: str, subject: str | None) -> None:
    rows = weighted(1)
    table = create(database_url, rows)
    risk = table_risk(database_url, table, QUASI_IDENTIFIERS, subject=subject, weights="weight", thresholds=THRESHOLDS)
    expected = list(risks(rows, by_person=subject is not None).values())
    assert risk.individual is not None
    assert risk.members == len(expected)
    assert risk.individual.sum == pytest.approx(math.fsum(expected), rel=1e-11)
    assert risk.individual.max == pytest.approx(max(expected), rel=1e-11)
    assert [one.members for one in risk.individual.above] == [sum(r > t for r in expected) for t in THRESHOLDS]
    plain = table_risk(database_url, table, QUASI_IDENTIFIERS, subject=subject, thresholds=THRESHOLDS)
    assert (risk.sizes, risk.prosecutor, plain.individual) == (plain.sizes, plain.prosecutor, None)


@pytest.mark.parametrize("subject", [None, "person"])
@pytest.mark.parametrize("weights", [None, "weight"])
def test_who_knows_one_of_a_household_knows_all(database_url: str, subject: str | None, weights: str | None) -> None:
    rows = weighted(2) if weights else [(*row[:-1], 1.0) for row in weighted(2)]
    table = create(database_url, rows)
    measured = table_risk(
        database_url,
        table,
        QUASI_IDENTIFIERS,
        subject=subject,
        weights=weights,
        household="house",
        thresholds=THRESHOLDS,
    ).household
    of_members = risks(rows, by_person=subject is not None)
    houses: dict[Hashable, dict[Hashable, float]] = defaultdict(dict)
    for number, (person, age, zip_code, sex, house, _) in enumerate(rows):
        member = number if subject is None else person
        risk = of_members[member, (age, zip_code, sex)]
        houses[house][member] = max(risk, houses[house].get(member, 0.0))
    exposed = [1 - math.prod(1 - r for r in house.values()) for house in houses.values() for _ in house]
    assert measured is not None
    assert measured.households == len(houses)
    assert measured.sum == pytest.approx(math.fsum(exposed), rel=1e-11)
    assert measured.max == pytest.approx(max(exposed), rel=1e-11)
    assert [one.members for one in measured.above] == [sum(r > t for r in exposed) for t in THRESHOLDS]


@pytest.mark.either_engine
def test_a_fraction_is_the_same_weight_for_all(database_url: str) -> None:
    rows = [(*row[:-1], 4.0) for row in weighted(3)]
    table = create(database_url, rows)
    by_weights = table_risk(database_url, table, QUASI_IDENTIFIERS, weights="weight", household="house")
    by_fraction = table_risk(database_url, table, QUASI_IDENTIFIERS, sample_of=0.25, household="house")
    assert by_weights.individual is not None
    assert by_fraction.individual is not None
    assert by_fraction.individual.sum == pytest.approx(by_weights.individual.sum)
    assert by_fraction.individual.above == by_weights.individual.above
    assert by_fraction.household is not None
    assert by_fraction.household == by_weights.household


@pytest.mark.parametrize("wrong", [None, 0.0, -1.0, math.nan, math.inf, 1.7e308])
def test_weights_that_stand_for_nobody_are_refused(database_url: str, wrong: float | None) -> None:
    table = create(database_url, [*weighted(4), (900, 1, "x", "f", 1, wrong)])
    with pytest.raises(PolicyError, match="in 1 of 151 rows"):
        table_risk(database_url, table, QUASI_IDENTIFIERS, weights="weight")


@pytest.mark.either_engine
def test_columns_that_cannot_be_used_are_refused(database_url: str) -> None:
    table = create(database_url, [*weighted(5), (1, 1, "x", "f", None, 99.0)])
    with pytest.raises(PolicyError, match="differ among the rows of 1 person"):
        table_risk(database_url, table, QUASI_IDENTIFIERS, subject="person", weights="weight")
    with pytest.raises(PolicyError, match="The household 'house' is NULL in 1 of 151 rows"):
        table_risk(database_url, table, QUASI_IDENTIFIERS, household="house")
    with pytest.raises(PolicyError, match="The weights 'zip' are no numbers"):
        table_risk(database_url, table, ["age"], weights="zip")
    with pytest.raises(PolicyError, match="give one"):
        table_risk(database_url, table, ["age"], weights="weight", sample_of=0.1)


@pytest.mark.either_engine
def test_the_command_prints_individual_risks(database_url: str) -> None:
    table = create(database_url, weighted(6))
    text = call(
        "risk", database_url, table, "--qi", "age,zip,sex", "--weights", "weight", "--household", "house"
    ).stdout
    assert "Individual risk by the weights weight:" in text
    assert "households by house:" in text
