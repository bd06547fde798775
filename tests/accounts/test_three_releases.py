"""Triples of releases by policies drawn at random, by somebody who holds all of them and knows everybody's values."""

from __future__ import annotations

import random
from typing import Any

import pytest

from sqlanon.errors import ProtectionError
from tests.run_support import Database, Row, anonymize

pytestmark = pytest.mark.slow

K, DIVERSITY, TRIPLES = 4, 2, 12
COLUMNS = {"who": "INTEGER", "a": "INTEGER", "b": "INTEGER", "c": "INTEGER", "ill": "VARCHAR(9)", "nr": "INTEGER"}
KNOWN = ("a", "b", "c")
Boxes = dict[
    int, tuple[dict[str, tuple[int, int]], str]
]  # of each row, by the number that it keeps: ranges and illness


def drawn_rows(draws: random.Random) -> list[Row]:
    ills = ["flu", "rash", "gout", "ache"]
    return [
        (n, draws.randrange(90), draws.randrange(12), draws.randrange(1000), draws.choice(ills), n)
        for n in range(draws.randrange(80, 200))
    ]


def drawn_policy(draws: random.Random) -> dict[str, Any]:
    """Draw what the policies of a triple differ in: columns, k and algorithm."""
    shown = draws.sample(KNOWN, draws.choice([1, 1, 2, 3]))
    models = [
        {"model": "k-anonymity", "k": draws.choice([10, 20, 40])},
        {"model": "distinct-l-diversity", "attribute": "ill", "l": DIVERSITY},
    ]
    roles = {name: "quasi-identifier" if name in shown else "identifier" for name in KNOWN}
    return {"roles": roles, "privacy": models, "algorithm": {"name": draws.choice(["mondrian", "rothko-t"])}}


def boxes_of(database: Database, release: str) -> Boxes:
    names = [name for name, _ in database.columns(release)]
    boxes: Boxes = {}
    for row in database.sql(f"SELECT * FROM {release}"):
        values = dict(zip(names, row, strict=True))
        boxes[values["nr"]] = ({name: bounds(values[name]) for name in KNOWN if name in values}, values["ill"])
    return boxes


def bounds(label: str) -> tuple[int, int]:
    """The least and the greatest value of a label such as [3-17] or 3."""
    least, _, most = str(label).strip("[]").partition("-")
    return int(least), int(most or least)


def weakest(rows: list[Row], releases: list[Boxes]) -> tuple[int, int]:
    """Return the fewest persons who may be a row, and the fewest illnesses that a person may have, by all releases."""
    people = [dict(zip(COLUMNS, row, strict=True)) for row in rows]

    def covers(box: dict[str, tuple[int, int]], one: Row) -> bool:
        return all(least <= one[name] <= most for name, (least, most) in box.items())

    fewest, illnesses = len(rows), len(rows)
    for one in people:
        of_row = [release[one["nr"]][0] for release in releases]
        fewest = min(fewest, sum(all(covers(box, other) for box in of_row) for other in people))
        possible = [
            {ill for box, ill in release.values() if box == own} for own, release in zip(of_row, releases, strict=True)
        ]
        illnesses = min(illnesses, len(set.intersection(*possible)))
    return fewest, illnesses


@pytest.mark.parametrize("mode", ["refresh", "none"])
def test_three_releases_by_any_policies_tell_nobody_from_all_others(database: Database, mode: str) -> None:
    """Each row may be that of k persons, and each person may have l illnesses; without the account not always."""
    draws, least, refused = random.Random(200), [], 0
    for _ in range(TRIPLES):
        rows = drawn_rows(draws)
        table, published = database.create(COLUMNS, rows), list[Boxes]()
        for number in range(3):
            given = drawn_policy(draws)
            history = {} if mode == "none" else {"history": {"mode": mode, "k": K}}
            roles = given.pop("roles") | {"who": "identifier", "ill": "sensitive", "nr": "insensitive"}
            place = {"table": f"{table}_{number}"}
            try:
                anonymize(database.policy(table, roles, subject="who", release=place, **history, **given))
            except ProtectionError:
                refused += 1
                continue
            published.append(boxes_of(database, place["table"]))
        least.append((len(published), *weakest(rows, published)))
    singled = [one for one in least if one[1] < K or one[2] < DIVERSITY]
    assert bool(singled) is (mode == "none")
    assert bool(refused) is (mode == "refresh")
    assert max(releases for releases, *_ in least) == 3, "some triples were released as a whole"
