"""Policies that copy rows and mask identifiers, and their runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlanon.methods.masking.result import MaskingResult
from sqlanon.policy import Policy
from sqlanon.runs.sources import run
from tests.run_support import OPTIONS, Database, Row


def masking_data(database: Database, table: str, attributes: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The data of a policy that copies a table to `<table>_r`."""
    return {
        "source": {"url": database.url, "table": table},
        "release": {"table": f"{table}_r"},
        "attributes": {name: {"role": one} if isinstance(one, str) else one for name, one in attributes.items()},
        "algorithm": {"name": "masking"},
    } | more


def masking_policy(database: Database, table: str, attributes: Mapping[str, Any], **more: Any) -> Policy:
    return database.policy(table, attributes, **{"algorithm": {"name": "masking"}, "privacy": None} | more)


def mask(policy: Policy, **more: Any) -> MaskingResult:
    result = run(policy, options=OPTIONS, **more)
    assert isinstance(result, MaskingResult)
    return result


def masked(database: Database, table: str, attributes: Mapping[str, Any], **more: Any) -> list[Row]:
    """The rows of the release of a table, in the order in which they are stored."""
    mask(masking_policy(database, table, attributes, **more), replace=True)
    return database.sql(f"SELECT * FROM {table}_r")
