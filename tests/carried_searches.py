"""Searches of a small table with NULLs, for tests that carry them out elsewhere."""

from __future__ import annotations

from typing import Any

from sqlanon.algorithms import algorithm_of
from sqlanon.algorithms.base import Algorithm, SearchRequest
from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.encoding.coded_table import encode
from sqlanon.engines.base import Engine
from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.models import models_of
from sqlanon.plan.plan import resolve_source
from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Statement
from sqlanon.work.workspace import TemporaryWorkspace

PEOPLE = (
    "CREATE OR REPLACE TABLE people AS SELECT CASE WHEN i % 41 > 0 THEN i * 37 % 89 END AS age, i * 101 % 97 % 60 AS"
    " zip, CASE WHEN i % 59 > 0 THEN i * i % 211 END AS pay, CASE WHEN i * 37 % 89 < 30 THEN 'nurse' WHEN i % 7 < 3"
    " THEN 'clerk' WHEN i % 5 = 0 THEN 'baker' WHEN i % 83 > 0 THEN 'smith' END AS job, 'case ' || i AS note FROM"
    " range(1500) AS t (i)"
)
QUASI = {"role": "quasi-identifier"}
KEPT = {"job": {"role": "sensitive"}, "note": {"role": "insensitive"}}
PLAIN = {"age": QUASI, "zip": QUASI, "pay": QUASI, **KEPT}
NESTED = PLAIN | {"zip": QUASI | {"hierarchy": {"intervals": [5, 20]}}}
LEVELED = NESTED | {"age": QUASI | {"hierarchy": {"intervals": [10, 40]}}, "pay": {"role": "identifier"}}
K = {"model": "k-anonymity", "k": 5}
DIVERSE = [K, {"model": "entropy-l-diversity", "l": 1.8, "attribute": "job"}]
CLOSE = [K, {"model": "t-closeness", "t": 0.3, "attribute": "job"}]
CLUSTERED = {"age": {"role": "insensitive"}, "zip": QUASI, "pay": {"role": "insensitive"}, **KEPT}
CLUSTERS = {"attributes": CLUSTERED, "privacy": [K]}
SEARCHES: dict[str, dict[str, Any]] = {
    "mondrian": {"algorithm": {"name": "mondrian"}, "attributes": NESTED, "privacy": DIVERSE},
    "rothko-t": {
        "algorithm": {"name": "rothko-t", "split": "information-gain", "target": "job", "least_gain": 0.001},
        "attributes": PLAIN,
        "privacy": CLOSE,
    },
    "rothko-s": {
        "algorithm": {"name": "rothko-s", "split": "median", "sample": 400, "exact_below": 100},
        "attributes": PLAIN,
        "privacy": DIVERSE,
    },
    "ordered-sets": {"algorithm": {"name": "ordered-sets", "cuts": 4}, "attributes": PLAIN, "privacy": DIVERSE},
    "top-down": {"algorithm": {"name": "top-down"}, "attributes": LEVELED, "privacy": DIVERSE},
    **{
        name: {"algorithm": {"name": name}, "attributes": LEVELED, "privacy": [K], "suppression": 0.02}
        for name in ("incognito", "samarati", "bottom-up", "optimal", "datafly")
    },
    "microaggregation": CLUSTERS | {"algorithm": {"name": "microaggregation"}},
    "condensation": CLUSTERS | {"algorithm": {"name": "condensation"}},
    "r-gather": CLUSTERS | {"algorithm": {"name": "r-gather"}},
}


class DividingEngine(DuckDBEngine):
    """An engine that divides the sub-trees of a tree among tasks, if it is told to.

    tasks: into how many, if there are rows enough.
    """

    tasks = 0

    def tasks_for(self, rows: int) -> int:
        return self.tasks if rows >= 1000 else 0


def request_of(engine: Engine, name: str, **changed: Any) -> tuple[Algorithm[Any], SearchRequest]:
    """Code the table `people` of a session, and ask for a release of it."""
    policy = build_policy(
        {"source": {"url": "duckdb:///:memory:", "table": "people"}, "release": {"table": "released"}}
        | SEARCHES[name]
        | changed
    )
    return ask(engine, policy)


def ask(engine: Engine, policy: Policy) -> tuple[Algorithm[Any], SearchRequest]:
    """Code the source of a policy in a session, and ask for a release of it."""
    workspace, plan = TemporaryWorkspace(engine), resolve_source(policy, engine)
    algorithm = algorithm_of(policy.algorithm)
    with engine.transaction():
        coded = encode(engine, plan, workspace)
    asked = engine, workspace, coded, models_of(policy), policy
    return algorithm, SearchRequest(*asked, SearchOptions(), lambda _progress: None).with_tuples(algorithm)


def tables_of(engine: Engine, decision: Any) -> list[list[Any]]:
    """Read the tables of a decision, in an order of their own."""
    named = [getattr(decision, name, None) for name in ("leaves", "assigned", "tree", "clustered", "points")]
    tables = [getattr(one, "table", one) for one in named if one is not None]
    queries = [Statement("read", f"SELECT * FROM {engine.traits.renderer().written(table)}") for table in tables]
    return [sorted(engine.fetch(query), key=repr) for query in queries]


def facts_of(decision: Any) -> dict[str, Any]:
    """Return the parts of a decision that are no tables."""
    parts = ("rounds", "suppressed", "omitted", "passes", "shown", "facts", "radius", "clusters", "axes")
    return {name: getattr(decision, name) for name in parts if hasattr(decision, name)}
