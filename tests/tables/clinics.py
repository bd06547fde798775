"""Small clinics of several tables, their policies, and what somebody learns who joins the released tables."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlanon.policy.dividing import build_tables
from sqlanon.policy.document import Document
from sqlanon.policy.tables import Tables
from sqlanon.results.records import AnyResult
from sqlanon.runs.tables.together import run_tables
from tests.run_support import OPTIONS, Database, Row

SOURCE, RELEASE = "clinic", "shown"
PATIENTS = {"patient_id": "INTEGER", "age": "INTEGER", "zip": "INTEGER", "town": "VARCHAR(9)"}
VISITS = {"visit_id": "INTEGER", "patient_id": "INTEGER", "day": "INTEGER", "ward": "INTEGER", "ill": "VARCHAR(9)"}


@dataclass(frozen=True)
class Clinic:
    """The rows of two tables."""

    patients: list[Row]
    visits: list[Row]

    @classmethod
    def drawn(cls, draws: random.Random, persons: int) -> Clinic:
        """Draw a clinic; some visits are of nobody, or of somebody who is not among the patients."""
        ills = ["flu", "rash", "gout", "ache"]
        patients = [(n, draws.randrange(90), draws.randrange(30), f"t{draws.randrange(3)}") for n in range(persons)]
        visits: list[Row] = []
        for n in range(persons):
            visits += [
                (n, draws.randrange(40), draws.randrange(5), draws.choice(ills)) for _ in range(draws.randrange(6))
            ]
        visits += [(None, 3, 1, "flu"), (persons + 5, 3, 1, "flu")]
        return cls(patients, [(number, *row) for number, row in enumerate(visits)])

    def create(self, database: Database) -> None:
        """Make both tables in a schema of their own, and the schema of the release."""
        for schema in (SOURCE, RELEASE):
            database.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            database.sql(f"CREATE SCHEMA {schema}")
        database.create(PATIENTS, self.patients, f"{SOURCE}.patients")
        database.create(VISITS, self.visits, f"{SOURCE}.visits")


def policy_data(database: Database, **more: Any) -> dict[str, Any]:
    """The policy of a clinic; rows of visits keep their number, by which tests know them again."""
    return policy_data_of(database.url, **more)


def policy_data_of(url: str, **more: Any) -> dict[str, Any]:
    """The policy of a clinic at a URL."""
    quasi = {"role": "quasi-identifier"}
    return {
        "source": {"url": url, "schema": SOURCE},
        "release": {"schema": RELEASE},
        "people": {"table": "patients", "key": "patient_id"},
        "tables": {
            "patients": {
                "attributes": {"patient_id": {"role": "identifier"}, "age": quasi, "zip": quasi, "town": quasi},
            },
            "visits": {
                "references": {"patient_id": "patients"},
                "suppression": 0.9,
                "attributes": {
                    "visit_id": {"role": "insensitive"},
                    "day": quasi,
                    "ward": quasi,
                    "ill": {"role": "sensitive"},
                },
            },
        },
        "privacy": [
            {"model": "k-anonymity", "k": 4},
            {"model": "km-anonymity", "k": 2, "m": 2, "of": ["visits"]},
        ],
    } | more


def tables_of(data: Mapping[str, Any]) -> Tables:
    return build_tables(Document(dict(data)), None)


def release(data: Mapping[str, Any], **given: Any) -> dict[str, AnyResult]:
    """Release all tables of a policy."""
    return run_tables(tables_of(data), replace=True, options=OPTIONS, **given)


def shown_visits(database: Database) -> dict[str, tuple[Row, list[Row]]]:
    """Return the row of patients and those of visits, as the joined release shows them, of each person."""
    patients = {
        key: tuple(rest) for key, *rest in database.sql(f"SELECT patient_id, age, zip, town FROM {RELEASE}.patients")
    }
    visits: dict[str, list[Row]] = defaultdict(list)
    for key, *rest in database.sql(f"SELECT patient_id, day, ward FROM {RELEASE}.visits"):
        visits[key].append(tuple(rest))
    assert visits.keys() <= patients.keys()
    return {key: (shown, visits[key]) for key, shown in patients.items()}


def fewest_candidates(people: Mapping[str, tuple[Row, list[Row]]], known: int) -> int:
    """The fewest persons that somebody has to choose from who knows a person's own row and so many visits of theirs."""
    fewest = len(people)
    for row, visits in people.values():
        for size in range(known + 1):
            for facts in set(itertools.combinations(sorted(set(visits)), min(size, len(set(visits))))):
                fitting = sum(other == row and set(facts) <= set(theirs) for other, theirs in people.values())
                fewest = min(fewest, fitting)
    return fewest


LABS = {"lab_id": "INTEGER", "patient_id": "INTEGER", "visit_id": "INTEGER", "amount": "INTEGER"}


def add_labs(database: Database, clinic: Clinic, draws: random.Random) -> list[Row]:
    """Make a third table, whose rows refer to visits and their patients; some to no visit, or to one of another."""
    labs: list[Row] = []
    for visit, patient, *_ in clinic.visits:
        labs += [(len(labs) + n, patient, visit, draws.randrange(50)) for n in range(draws.randrange(3))]
    labs += [(len(labs), 0, None, 7), (len(labs) + 1, 1, clinic.visits[0][0], 7)]
    database.create(LABS, labs, f"{SOURCE}.labs")
    return labs


def with_labs(data: dict[str, Any], m: int = 2) -> dict[str, Any]:
    """The policy with the third table, of whose rows somebody may know `m`."""
    identifier = {"role": "identifier", "show": "pseudonym", "key": "drawn"}
    data["tables"]["visits"]["attributes"]["visit_id"] = identifier
    data["tables"]["labs"] = {
        "references": {"visit_id": "visits", "patient_id": "patients"},
        "suppression": 0.95,
        "attributes": {"lab_id": {"role": "insensitive"}, "amount": {"role": "quasi-identifier"}},
    }
    data["privacy"].append({"model": "km-anonymity", "k": 2, "m": m, "of": ["labs"]})
    return data


def shown_labs(database: Database) -> dict[str, tuple[Row, list[Row]]]:
    """Return the row of patients and those of labs, with what their visits show, of each person."""
    patients, labs = shown_visits(database), defaultdict[str, list[Row]](list)
    visits = {
        key: tuple(rest) for key, *rest in database.sql(f"SELECT visit_id, patient_id, day, ward FROM {RELEASE}.visits")
    }
    for key, visit, amount in database.sql(f"SELECT patient_id, visit_id, amount FROM {RELEASE}.labs"):
        assert visit is None or visits[visit][0] == key
        labs[key].append((str(amount), *(("",) if visit is None else map(str, visits[visit][1:]))))
    assert labs.keys() <= patients.keys()
    return {key: (shown, labs[key]) for key, (shown, _) in patients.items()}
