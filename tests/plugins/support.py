"""The table and the policies that tests of plug-ins share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlanon.policy import Policy
from sqlanon.policy.loading import build_policy
from sqlanon.support import plugins
from tests.run_support import Row

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"
COLUMNS = {"age": "INTEGER", "job": "VARCHAR(9)", "s": "VARCHAR(9)"}
ROLES: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 20]}},
    "job": {"role": "quasi-identifier", "hierarchy": "suppress"},
    "s": "sensitive",
}
ROWS: list[Row] = [(20 + i * 7 % 30, "abc"[i % 3], [None, *"xy?z"][i * i % 7]) for i in range(60)]
K2 = {"model": "k-anonymity", "k": 2}
DEASSOCIATION = {"model": "deassociation", "attribute": "s", "alpha": 0.5}
SORTED_RUNS = {"name": "sorted-runs"}
WIDEST = {"name": "optimal", "quality": "widest"}


def policy_with(*models: dict[str, Any], **more: Any) -> Policy:
    return build_policy(
        {
            "source": {"url": "duckdb:///x.duckdb", "table": "t"},
            "release": {"table": "r"},
            "attributes": {"age": {"role": "quasi-identifier"}, "s": {"role": "sensitive"}},
            "privacy": list(models),
            **more,
        }
    )


def clear_caches() -> None:
    """Forget which packages add parts, so that they are looked for again."""
    plugins.find_plugins.cache_clear()
