"""The table and the policy that tests of commands work with."""

from tests.cli.conftest import duckdb_policy, duckdb_url, patients_url, policy

__all__ = ["duckdb_policy", "duckdb_url", "patients_url", "policy"]
