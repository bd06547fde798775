"""The Adult table (30,162 census rows, nine attributes) and its hierarchies, where the tests can find them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

DATA = Path(os.environ.get("SQLANON_TEST_DATA", Path(__file__).parents[1] / ".." / "shared" / "data")).resolve()
"""The folder that holds `adult/`."""
ADULT = DATA / "adult"
ATTRIBUTES = (
    *("sex", "age", "race", "marital-status", "education"),
    *("native-country", "workclass", "occupation", "salary-class"),
)
needs_adult = pytest.mark.skipif(not ADULT.is_dir(), reason="no Adult data: set SQLANON_TEST_DATA to where adult/ is")


def quasi_identifiers(names: tuple[str, ...] = ATTRIBUTES) -> dict[str, Any]:
    """The attributes as a policy's quasi-identifiers, with their hierarchies."""
    return {
        name: {"role": "quasi-identifier", "hierarchy": {"csv": str(ADULT / f"adult_hierarchy_{name}.csv")}}
        for name in names
    }
