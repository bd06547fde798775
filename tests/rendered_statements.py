"""Small runs of every algorithm, rules and jobs, and the statements that they render, for tests of these statements."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlanon.sql import DialectRenderer, Statement
from tests.jobs_support import frozen
from tests.private_support import draw
from tests.rules_support import apply
from tests.run_support import Database, anonymize
from tests.tables.clinics import LABS, PATIENTS, VISITS, Clinic, add_labs, policy_data, with_labs
from tests.tables.clinics import release as release_tables

Rendered = list[list[tuple[str, str]]]
"""For each run the templates and the texts of its statements, in their order."""

QUASI = {"role": "quasi-identifier"}
COLUMNS = {
    "age": "INTEGER",
    "zipcode": "VARCHAR(9)",
    "job": "VARCHAR(9)",
    "ward": "VARCHAR(9)",
    "admitted": "DATE",
    "cost": "DECIMAL(9,2)",
    "income": "DOUBLE PRECISION",
    "weight": "INTEGER",
    "height": "INTEGER",
    "disease": "VARCHAR(9)",
    "days": "INTEGER",
}
OF_CLINICS = {*PATIENTS, *VISITS, *LABS, "class of patients", "class of visits and patients"}
JOBS = {"nurse": ["health", "*"], "doctor": ["health", "*"], "clerk": ["office", "*"], "sales": ["office", "*"]}
DISEASES = {"flu": ["airway", "*"], "burn": ["skin", "*"], "rash": ["skin", "*"]}
KEPT: dict[str, Any] = dict.fromkeys(COLUMNS, "insensitive") | {
    "disease": {"role": "sensitive"},
    "days": {"role": "sensitive"},
}
SHOWN = {
    "age": QUASI | {"top": {"quantile": 0.9}},
    "job": QUASI,
    "zipcode": QUASI | {"sets": "range"},
    "cost": QUASI | {"show": "mean"},
    "income": QUASI | {"show": "midpoint"},
    "weight": QUASI | {"show": "bounds"},
    "height": QUASI | {"show": "mean", "nulls": "unknown"},
}
LEVELED = {
    "age": QUASI | {"hierarchy": {"intervals": [5, 20]}},
    "zipcode": QUASI | {"hierarchy": {"mask": "right"}},
    "job": QUASI | {"hierarchy": {"mapping": JOBS}},
    "admitted": QUASI | {"hierarchy": {"date": ["month", "year"]}},
}
_HIDDEN: dict[str, Any] = dict.fromkeys(COLUMNS, "identifier")
NUMBERS = dict.fromkeys(("age", "cost", "income"), QUASI)
DIVERSE = [{"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "attribute": "disease", "l": 2}]
SHARES = [
    {"model": "beta-likeness", "attribute": "disease", "beta": 1.0},
    {"model": "delta-disclosure", "attribute": "disease", "delta": 2.0},
    {"model": "alpha-k", "attribute": "disease", "alpha": 0.6, "k": 3, "values": ["flu"]},
]
COSTLY = {
    "model": "t-closeness",
    "attribute": "disease",
    "distance": {"csv": str(Path(__file__).with_name("costs.csv"))},
    "t": 0.15,
}
ANONYMOUS = [{"model": "k-anonymity", "k": 8}]
POLICIES: list[dict[str, Any]] = [
    {"attributes": KEPT | SHOWN, "privacy": DIVERSE},
    {
        "attributes": KEPT | SHOWN,
        "privacy": DIVERSE[:1],
        "ranges": "cuts",
        "algorithm": {"name": "rothko-t", "split": "information-gain", "target": "disease"},
    },
    {
        "attributes": KEPT | LEVELED,
        "privacy": DIVERSE,
        "algorithm": {
            "name": "rothko-s",
            "sample": 60,
            "exact_below": 20,
            "split": "information-gain",
            "target": "disease",
        },
    },
    {
        "attributes": KEPT | LEVELED,
        "privacy": DIVERSE,
        "algorithm": {"name": "optimal"},
        "suppression": 0.3,
        "suppressed": "star",
    },
    {
        "attributes": KEPT
        | {name: LEVELED[name] for name in ("age", "job")}
        | {"disease": {"role": "sensitive", "hierarchy": {"mapping": DISEASES}}},
        "privacy": [{"model": "t-closeness", "attribute": "disease", "distance": "hierarchical", "t": 0.4}, DIVERSE[0]],
        "algorithm": {"name": "incognito"},
        "suppression": 0.3,
    },
    {
        "attributes": KEPT | LEVELED,
        "privacy": DIVERSE[:1],
        "algorithm": {"name": "top-down", "quality": "information-gain", "target": "disease"},
    },
    *(
        {
            "attributes": KEPT | dict.fromkeys(("age", "job"), QUASI),
            "privacy": DIVERSE[:1],
            "algorithm": {"name": "ordered-sets", **more},
        }
        for more in ({}, {"search": "exact", "cuts": 3, "quality": "classification", "target": "disease"})
    ),
    {"attributes": KEPT | SHOWN, "privacy": [*DIVERSE, *SHARES]},
    *(
        {
            "attributes": KEPT | LEVELED,
            "privacy": [DIVERSE[0], {"model": "average-risk", "risk": 0.05}],
            "algorithm": {"name": name},
            "suppression": 0.3,
        }
        for name in ("samarati", "datafly")
    ),
    {"attributes": KEPT | {"age": QUASI}, "privacy": [DIVERSE[0], COSTLY]},
    {
        "attributes": KEPT | {"ward": QUASI, "job": QUASI},
        "privacy": DIVERSE,
        "algorithm": {"name": "mondrian", "partitioning": "relaxed"},
    },
    {
        "attributes": KEPT | {name: LEVELED[name] for name in ("age", "job")},
        "privacy": [DIVERSE[0], COSTLY],
        "algorithm": {"name": "optimal"},
        "suppression": 0.5,
        "suppressed": "star",
    },
    {
        "attributes": KEPT | LEVELED | {"zipcode": QUASI | {"hierarchy": {"mask": "right", "length": 5}}},
        "privacy": [
            DIVERSE[0],
            {"model": "k-map", "k": 5, "population": "population_of_runs"},
            {"model": "delta-presence", "maximum": 0.999, "population": "population_of_runs"},
        ],
        "algorithm": {"name": "optimal"},
        "suppression": 0.3,
    },
]
CLUSTERED: list[dict[str, Any]] = [
    {
        "attributes": KEPT | NUMBERS | {"job": QUASI},
        "privacy": [ANONYMOUS[0], DIVERSE[1]],
        "algorithm": {"name": "microaggregation", "blocks": 40, "refine": True},
    },
    {
        "attributes": KEPT | NUMBERS,
        "privacy": ANONYMOUS,
        "algorithm": {"name": "microaggregation", "method": "v-mdav", "gamma": 0.2, "keep": "variance"},
    },
    {
        "attributes": KEPT | NUMBERS | {"job": QUASI},
        "privacy": ANONYMOUS,
        "algorithm": {"name": "microaggregation", "method": "k-member"},
    },
    {
        "attributes": _HIDDEN | NUMBERS | {"disease": {"role": "sensitive"}},
        "privacy": ANONYMOUS,
        "algorithm": {"name": "r-gather", "radius": "least"},
        "subject": "none",
    },
    {
        "attributes": KEPT | NUMBERS | {"job": QUASI},
        "privacy": ANONYMOUS,
        "algorithm": {"name": "condensation", "groups": "nearest", "blocks": 40, "target": "ward"},
    },
]
SURROGATES: dict[str, Any] = {
    "attributes": KEPT | {"age": QUASI, "zipcode": {"role": "identifier", "show": "surrogate"}},
    "privacy": DIVERSE,
    "subject": "zipcode",
}
HIDDEN_PERSONS: dict[str, Any] = SURROGATES | {
    "attributes": KEPT | {"age": QUASI, "zipcode": {"role": "identifier"}},
}
CELLS: dict[str, Any] = {
    "attributes": KEPT | dict.fromkeys(("age", "zipcode", "job", "ward", "disease"), QUASI),
    "privacy": [ANONYMOUS[0], {"model": "distinct-l-diversity", "attribute": "days", "l": 2}],
    "algorithm": {"name": "local-suppression", "importance": {"age": 2}, "whole": ["ward"], "subsets": {2: 9}},
}
CLIMBING: dict[str, Any] = CELLS | {
    "attributes": KEPT
    | {
        "age": QUASI | {"hierarchy": {"intervals": [5, 20]}},
        "zipcode": QUASI | {"hierarchy": {"mask": "right", "length": 5}},
        "job": QUASI | {"hierarchy": {"mapping": JOBS, "unknown": "OTHER"}},
        "ward": QUASI,
    },
    "algorithm": {"name": "cell-generalization", "whole": ["ward"]},
}
JOINED: dict[str, Any] = SURROGATES | {"privacy": [{"model": "km-anonymity", "k": 8, "m": 2}]}
PERSONS = [
    SURROGATES,
    HIDDEN_PERSONS,
    {**SURROGATES, "algorithm": {"name": "rothko-t"}},
    JOINED,
    JOINED
    | {
        "attributes": KEPT
        | {"age": QUASI | {"hierarchy": {"intervals": [5]}}, "zipcode": {"role": "identifier", "show": "surrogate"}},
        "algorithm": {"name": "datafly"},
        "suppression": 0.99,
    },
]
_PUBLIC: dict[str, Any] = {
    "age": QUASI | {"domain": {"from": 20, "below": 80, "step": 20}},
    "job": QUASI | {"hierarchy": {"mapping": JOBS, "unknown": "OTHER"}},
    "ward": {"role": "sensitive", "values": ["A", "B"]},
}
PRIVATE: list[dict[str, Any]] = [
    {"name": "diffgen", "specializations": 3, "target": "ward"},
    {"name": "marginals", "marginals": [["age", "ward"], ["job"]], "target": "ward", "as": "rows"},
]


def rows(number: int) -> Iterator[tuple[Any, ...]]:
    """Yield rows that depend on their number alone, with NULLs."""
    for n in range(number):
        job, day = list(JOBS)[n % 7 % 4], f"20{10 + n % 3}-0{1 + n % 9}-15"
        disease = ("flu", "burn", "rash", None)[n % 5 % 4]
        quasi = (20 + n * 7 % 50, str(10000 + n * 37 % 90), job, "AB"[n % 2], day, n % 80 + 0.25, n * 1.5)
        yield (*quasi, 50 + n % 40, None if n % 11 == 0 else 150 + n % 30, disease, n % 9)


def statements_of_runs(database: Database) -> Rendered:
    """The statements of searches and releases of all kinds, and of rules that are applied again."""
    table, small = (database.create(COLUMNS, list(rows(number))) for number in (150, 60))
    database.create(COLUMNS, list(rows(300)), "population_of_runs")

    def search(policy: dict[str, Any], table: str = table, again: bool = False) -> Callable[[], None]:
        def run() -> None:
            result = anonymize(database.policy(table, **policy), replace=True)
            if again:
                apply(database, result.run, table, f"{table}_again", replace=True, budget=0.9)

        return run

    def adding() -> None:
        """Release a table, and those who came as batches, by a search and by rules."""
        whole = [(n, *row) for n, row in enumerate(rows(63))]
        grown = database.create({"nr": "INTEGER", **COLUMNS}, whole[:30])
        attributes = {"nr": "identifier", **dict.fromkeys(COLUMNS, "insensitive"), "age": "quasi-identifier"}
        more = {"subject": "nr", "history": {"mode": "increments"}, "privacy": [{"model": "k-anonymity", "k": 2}]}
        policy = database.policy(grown, attributes, **more)
        first = anonymize(policy, replace=True).run
        database.insert(grown, whole[30:60])
        anonymize(policy)
        database.insert(grown, whole[60:63])
        apply(database, first, grown, f"{grown}_r")

    def repairing() -> None:
        """Release people twice by other columns, repaired, and then with ages of others, by the first rules."""
        whole = [(n, *row) for n, row in enumerate(rows(60))]
        people = database.create({"nr": "INTEGER", **COLUMNS}, whole)
        attributes = {"nr": "identifier", **dict.fromkeys(COLUMNS, "insensitive"), "ward": "sensitive"}
        models = [{"model": "k-anonymity", "k": 4}, {"model": "distinct-l-diversity", "attribute": "ward", "l": 2}]
        more = {"subject": "nr", "history": {"mode": "watch"}, "privacy": models}
        policies = [
            database.policy(people, attributes | {name: "quasi-identifier"}, **more) for name in ("age", "zipcode")
        ]
        first, _ = (anonymize(policy, replace=True, repair=True).run for policy in policies)
        database.sql(f"UPDATE {people} SET age = (SELECT o.age FROM {people} AS o WHERE o.nr = 59 - {people}.nr)")
        apply(database, first, people, f"{people}_r", replace=True, repair=True)

    def leaving(departures: str) -> None:
        """Release a table, of which most persons leave, and others come."""
        whole = [(n, 20 + n // 20, "ab"[n % 2]) for n in range(45)]
        left = database.create({"nr": "INTEGER", "age": "INTEGER", "disease": "VARCHAR(9)"}, whole[:40])
        attributes = {"nr": "identifier", "age": "quasi-identifier", "disease": "sensitive"}
        models = [{"model": "k-anonymity", "k": 2}, {"model": "distinct-l-diversity", "attribute": "disease", "l": 2}]
        history = {"mode": "increments", "departures": departures}
        policy = database.policy(left, attributes, subject="nr", history=history, privacy=models)
        anonymize(policy)
        database.sql(f"DELETE FROM {left} WHERE nr < 39")
        database.insert(left, whole[40:])
        anonymize(policy)

    def holding_sets() -> None:
        """Release persons twice in classes with the same values, with counterfeits."""
        whole = [(n, 20 + n, "ab"[n % 2], "abc"[n % 3]) for n in range(24)]
        table = database.create({"nr": "INTEGER", "age": "INTEGER", "job": "TEXT", "disease": "VARCHAR(9)"}, whole)
        roles: dict[str, Any] = {"nr": "identifier", "age": "quasi-identifier", "job": "quasi-identifier"}
        roles["disease"] = {"role": "sensitive", "nulls": "refuse"}
        policy = database.policy(
            table,
            roles,
            subject="nr",
            history={"mode": "refresh"},
            privacy=[{"model": "m-invariance", "attribute": "disease", "m": 2}],
            algorithm={"name": "buckets", "counterfeits": 0.4},
        )
        anonymize(policy)
        database.sql(f"DELETE FROM {table} WHERE nr < 4")
        anonymize(policy, replace=True)

    def together() -> None:
        """Release tables that belong together, of which some rows have to be left out."""
        draws = random.Random(4)
        clinic = Clinic.drawn(draws, 16)
        clinic.create(database)
        add_labs(database, clinic, draws)
        data = with_labs(policy_data(database))
        data["privacy"].append({"model": "distinct-l-diversity", "attribute": "visits.ill", "l": 2})
        release_tables(data)

    shared: dict[str, Any] = {
        "attributes": _HIDDEN | _PUBLIC,
        "privacy": [{"model": "differential-privacy", "epsilon": 1}],
    }
    private = [database.policy(small, **shared, algorithm=algorithm) for algorithm in PRIVATE]
    runs = [
        *(search(policy, again=number in (0, 2, 5)) for number, policy in enumerate(POLICIES)),
        *(search(policy, small) for policy in (*CLUSTERED, SURROGATES, CELLS, CLIMBING)),
        *(search(policy) for policy in PERSONS),  # zip codes are of several rows there
        search(HIDDEN_PERSONS | {"history": {"mode": "watch"}}, small),
        adding,
        repairing,
        holding_sets,
        together,
        *(functools.partial(leaving, departures) for departures in ("erase", "retract")),
        *(functools.partial(draw, policy) for policy in private),
    ]
    return [_rendered_by(run) for run in runs]


def statements_of_jobs(database: Database) -> Rendered:
    """The statements of procedures whose rules are labels by boxes, or one SELECT, and of one that enters releases."""
    table = database.create(COLUMNS, list(rows(60)))
    found = []
    held = {
        "subject": "cost",
        "history": {"mode": "refresh"},
        "attributes": POLICIES[0]["attributes"] | {"cost": "identifier"},
    }
    for policy in (POLICIES[0], POLICIES[3], POLICIES[0] | held):
        fitting = policy | {"attributes": policy["attributes"] | {"height": "insensitive"}, "suppressed": "omit"}
        run = anonymize(database.policy(table, **fitting), replace=True).run
        found.append(_rendered_by(functools.partial(frozen, database, run, on_violation="suppress", budget=0.9)))
    return found


def _rendered_by(call: Callable[[], Any]) -> list[tuple[str, str]]:
    """The statements that a call renders."""
    found: list[tuple[str, str]] = []
    render = DialectRenderer.__call__

    def listening(self: DialectRenderer, template: str, **values: Any) -> Statement:
        statement = render(self, template, **values)
        found.append((template, statement.text))
        return statement

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(DialectRenderer, "__call__", listening)
        call()
    return found
