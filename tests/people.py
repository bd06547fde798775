"""A small table of people that several tests release."""

from __future__ import annotations

from typing import Any

from tests.run_support import Row

PEOPLE = {"ssn": "VARCHAR(11)", "age": "INTEGER", "job": "VARCHAR(20)", "disease": "VARCHAR(20)", "id": "INTEGER"}
ROLES: dict[str, Any] = {
    "ssn": "identifier",
    "age": "quasi-identifier",
    "job": "quasi-identifier",
    "disease": "sensitive",
    "id": "insensitive",
}
ROWS: list[Row] = [
    ("123-45-6789", 20, "clerk", "flu", 1),
    ("123-45-6790", 25, "clerk", "burn", 2),
    ("123-45-6791", None, "sales", "flu", 3),
    ("123-45-6792", 30, "sales", None, 4),
    ("123-45-6793", 60, "nurse", "flu", 5),
    ("123-45-6794", 61, "nurse", "burn", 6),
]
