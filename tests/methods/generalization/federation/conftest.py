"""The databases of sites."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.run_support import duckdb_url


@pytest.fixture
def urls(tmp_path: Path, postgres_url: str) -> dict[str, str]:
    files = {name: duckdb_url(tmp_path / f"{name}.duckdb") for name in ("north", "west", "union")}
    return {**files, "south": postgres_url}
