"""Runs whose draws are fixed, digested as those of `frozen_releases`: private, randomized, hiding and streaming runs.

Keys, noise and choices that the operating system's randomness decides elsewhere are known here, so that a release has
the same rows whenever it is drawn.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest import mock

from sqlanon.sql import RedactedValue
from tests.hiding_support import hide, hiding_policy
from tests.private_support import Known, draw, private_policy
from tests.randomize_support import KEY, randomize, randomized_policy
from tests.run_support import OPTIONS, Database

QUASI = "quasi-identifier"
ROLES = {
    "ssn": "identifier",
    "age": "insensitive",
    "zipcode": "insensitive",
    "job": "insensitive",
    "admitted": "insensitive",
    "income": "insensitive",
    "cost": "insensitive",
    'Ward "A"': "insensitive",
    "disease": "sensitive",
    "days": "insensitive",
}
JOBS = ["nurse", "doctor", "clerk", "sales", "smith", "baker"]
DOMAINS: dict[str, Any] = {name: {"role": "omit"} for name in ROLES} | {
    "age": {"role": QUASI, "domain": {"from": 18, "below": 90, "step": 4}},
    "job": {"role": QUASI, "hierarchy": {"mapping": {job: ["*"] for job in JOBS}, "unknown": "OTHER"}},
    "disease": {"role": "sensitive", "values": ["flu", "asthma", "burn", "rash", "ulcer"]},
}
PRIVATE: dict[str, dict[str, Any]] = {
    "contingency": {"name": "contingency", "target": "disease"},
    "contingency, threshold": {"name": "contingency", "target": "disease", "threshold": "auto"},
    "diffgen": {"name": "diffgen", "target": "disease", "specializations": 4},
    "marginals": {"name": "marginals", "target": "disease", "marginals": [["job", "disease"], ["age", "job"]]},
    "mst": {"name": "mst", "target": "disease"},
}
NOISE: dict[str, dict[str, Any]] = {
    "gaussian": {"days": {"noise": "gaussian", "deviation": 10}},
    "laplace": {"days": {"noise": "laplace", "epsilon": 1, "range": [0, 60]}},
    "response": {'Ward "A"': {"response": "keep", "epsilon": 1, "values": ["W", "X", "Y", "Z"]}},
    "several": {"days": {"noise": "uniform", "half-width": 5}, "cost": {"noise": "gaussian", "deviation": 20}},
}
ITEMS = {"basket": "INTEGER", "item": "VARCHAR(9)"}
RULES = [{"if": ["a"], "then": ["b"]}, {"if": ["b", "c"], "then": ["d"]}]
MAKES = Callable[[Database, str], Any]


def cases() -> dict[str, MAKES]:
    """Runs over the table of patients by name; each returns its result."""
    found: dict[str, MAKES] = {}
    for name, algorithm in PRIVATE.items():
        found[f"private {name}"] = lambda database, table, algorithm=algorithm: draw(
            private_policy(database, table, DOMAINS, **algorithm), Known(noise=_noise)
        )
    for name, columns in NOISE.items():
        found[f"randomize {name}"] = lambda database, table, columns=columns: randomize(
            randomized_policy(database, table, ROLES, columns), replace=True, key=KEY
        )
    for method in ("shortest", "border"):
        found[f"hide {method}"] = lambda database, table, method=method: _hide(database, table, method)
    found["stream"] = _stream
    found["condensation"] = lambda database, table: _classes(database, table, "condensation")
    found["r-gather"] = lambda database, table: _classes(database, table, "r-gather")
    return found


@contextlib.contextmanager
def known_keys() -> Iterator[None]:
    """Inside, keys of synthetic rows and of orders at random are known, wherever a module draws them."""
    with contextlib.ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.startswith("sqlanon.") and hasattr(module, "secret_key"):
                key = RedactedValue(KEY) if "randomized" not in name else KEY
                stack.enter_context(mock.patch.object(module, "secret_key", lambda key=key: key))
        yield


def _noise(counts: Any) -> list[int]:
    return [count + place % 5 - 2 for place, count in enumerate(counts)]


def _hide(database: Database, table: str, method: str) -> Any:
    items = f"{table}_items"
    database.sql(f"DROP TABLE IF EXISTS {items}")
    rows = [(basket, "abcde"[(basket * one + one) % 5]) for basket in range(200) for one in range(1, 4)]
    database.create(ITEMS, rows, items)
    algorithm = {"name": "hide-rules", "transaction": "basket", "item": "item", "method": method}
    policy = hiding_policy(
        database, items, ITEMS, RULES, support=10, confidence=0.2, algorithm=algorithm, release={"table": f"{table}_r"}
    )
    return hide(policy, replace=True)


def _stream(database: Database, table: str) -> Any:
    from sqlanon.methods.clustering.streams import release_job, update_job

    numbers = f"{table}_numbers"
    database.sql(f"DROP TABLE IF EXISTS {numbers}")
    database.sql(f"CREATE TABLE {numbers} AS SELECT ssn, days, cost FROM {table}")
    roles: Mapping[str, Any] = {"ssn": "identifier", "days": QUASI, "cost": QUASI}
    policy = database.policy(numbers, roles, algorithm={"name": "condensation"}, release={"table": f"{table}_r"})
    for _ in range(2):
        update_job(policy, "frozen", numbers, OPTIONS)
    return release_job(policy, "frozen", replace=True, options=OPTIONS)


def _classes(database: Database, table: str, name: str) -> Any:
    from tests.run_support import anonymize

    roles = dict.fromkeys(ROLES, "omit") | {"days": QUASI, "cost": QUASI, "disease": "sensitive"}
    privacy = [{"model": "k-anonymity", "k": 5}]
    return anonymize(database.policy(table, roles, algorithm={"name": name}, privacy=privacy), replace=True)
