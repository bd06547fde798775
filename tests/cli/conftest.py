"""The table and the policy that most tests of commands work with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import make_patients, write_policy


@pytest.fixture
def patients_url(database_url: str) -> str:
    """A database of either engine that holds the table `patients`."""
    make_patients(database_url)
    return database_url


@pytest.fixture
def policy(patients_url: str, tmp_path: Path) -> Path:
    """A policy that the table `patients` can meet."""
    return write_policy(tmp_path, patients_url)


@pytest.fixture
def duckdb_url(tmp_path: Path) -> str:
    """A DuckDB file that holds the table `patients`."""
    url = f"duckdb:///{tmp_path / 'one.duckdb'}"
    make_patients(url)
    return url


@pytest.fixture
def duckdb_policy(duckdb_url: str, tmp_path: Path) -> Path:
    """A policy for it."""
    return write_policy(tmp_path, duckdb_url)
