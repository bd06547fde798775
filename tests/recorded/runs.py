"""Runs of every kind over one small table, as catalogs record them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from tests.run_support import Database

SOURCE = "people"
COLUMNS = {"age": "INTEGER", "zipcode": "VARCHAR(5)", "job": "VARCHAR(9)", "disease": "VARCHAR(9)", "days": "INTEGER"}
ROWS = [
    (
        None if n % 37 == 0 else 18 + n * 7 % 43,
        f"13{n * 5 % 40:03d}",
        ("nurse", "clerk", "baker")[n * n % 7 % 3],
        ("flu", "burn", "rash", "ulcer")[n * n % 11 % 4],
        n * 3 % 17,
    )
    for n in range(160)
]
_MAPPING = {"nurse": ["health", "*"], "clerk": ["office", "*"], "baker": ["craft", "*"]}
_QUASI = {"role": "quasi-identifier"}
_OTHERS: dict[str, Any] = {"disease": {"role": "sensitive"}, "days": {"role": "insensitive"}}
_PLAIN: dict[str, Any] = {"age": _QUASI, "zipcode": _QUASI, "job": _QUASI, **_OTHERS}
_LEVELED: dict[str, Any] = {
    "age": _QUASI | {"hierarchy": {"intervals": [5, 20]}},
    "zipcode": _QUASI | {"hierarchy": {"mask": "right"}},
    "job": _QUASI | {"hierarchy": {"mapping": _MAPPING}},
    **_OTHERS,
}
_GAIN = {"split": "information-gain", "target": "disease"}
_OPTIMAL = {"attributes": _LEVELED, "algorithm": {"name": "optimal"}}
_UNMET = [{"model": "distinct-l-diversity", "attribute": "disease", "l": 9}]

POLICIES: dict[str, dict[str, Any]] = {
    "mondrian": {"attributes": _PLAIN},
    "gain": {"attributes": _PLAIN, "algorithm": {"name": "rothko-t", **_GAIN}},
    "regression": {"attributes": _PLAIN, "algorithm": {"name": "rothko-t", "split": "regression", "target": "days"}},
    "sampled": {"attributes": _PLAIN, "algorithm": {"name": "rothko-s", "sample": 50, "exact_below": 10}},
    "unsampled": {"attributes": _PLAIN, "algorithm": {"name": "rothko-s"}},
    "optimal": _OPTIMAL | {"suppression": 0.1},
    "star": _OPTIMAL | {"suppression": 0.1, "digest": "run"},  # of layout `star`
    "starred": _OPTIMAL | {"suppression": 0.3, "suppressed": {"star": "unprotected"}},
    "passes": _OPTIMAL | {"suppression": 0.4, "remainder": "recode"},
    "attributes": {
        "attributes": _LEVELED,
        "algorithm": {"name": "samarati", "recoding": "attribute-suppression"},
        "suppression": 0.3,
    },
    "top-down": {"attributes": _LEVELED, "algorithm": {"name": "top-down"}},
    "refused": {"attributes": _PLAIN, "privacy": _UNMET},
    "failed": {"attributes": _PLAIN, "privacy": [{"model": "k-anonymity", "k": 1000}]},
}


def policy(name: str, url: str) -> Policy:
    """One of the policies, over the table `people` of a database; `url` may refer to the environment."""
    data: dict[str, Any] = {
        "source": {"url": url, "table": SOURCE},
        "release": {"table": f"{name.replace('-', '_')}_r"} | ({"layout": "star"} if name == "star" else {}),
        "privacy": [
            {"model": "k-anonymity", "k": 3},
            {"model": "distinct-l-diversity", "attribute": "disease", "l": 2},
        ],
    }
    return build_policy(data | POLICIES[name])


def create_source(database: Database) -> None:
    """The table that the runs are over."""
    database.create(COLUMNS, ROWS, SOURCE)


def least_record() -> dict[str, Any]:
    """A record of version 1 that lacks all that a record may lack."""
    classes = {"classes": 2, "min_class_size": 3, "mean_class_size": 3.5, "max_class_size": 4}
    return {
        "run": "240101-000000-00000000",
        "engine": "duckdb",
        "source": {"table": "t", "rows": 7},
        "release": {"table": "r", "rows": 7, "suppressed": 0, **classes, "class_sizes": []},
        "models": [],
        "metrics": {"c_avg": 1.5, "discernibility": 25, "gcp": None},
        "risk": {"prosecutor_max": 0.5, "prosecutor_mean": 0.25, "marketer": 0.25},
        "algorithm": {"name": "mondrian", "rounds": 1, "statements": 2},
        "seconds": {"total": 0.0},
        "verified": True,
        "published": True,
        "warnings": [],
        "notes": [],
    }


_RUN = re.compile(r"\b\d{6}-\d{6}-[0-9a-f]{8}\b")  # an id
_PLACE = re.compile(r'\\"\w+\\"\.(?=\\"(?:main|public)\\"\.)')  # the database of a table


def comparable(result: Mapping[str, Any]) -> dict[str, Any]:
    """Remove from a run's `--json` output all that differs between two runs of one policy: ids, seconds, places."""
    found: dict[str, Any] = json.loads(_PLACE.sub("", _RUN.sub("RUN", json.dumps(result))))
    return {**found, "seconds": sorted(found["seconds"]), "catalog": sorted(found.get("catalog", ()))}
