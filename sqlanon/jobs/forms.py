"""Forms of a recoding as SQL to own, each of which the database of the source has, or lacks with a reason."""

from __future__ import annotations

from sqlanon.catalog import Catalog
from sqlanon.engines.dialects import dialect_named
from sqlanon.releases.rules.store_rules import read_rules


def require_form(catalog: Catalog, run: str, form: str) -> None:
    """Raise PolicyError, with the remedy, where the database that a run's rules are for lacks a form of them."""
    dialect = dialect_named(read_rules(catalog, run).content["dialect"])
    capabilities = {
        "procedure": dialect.has_procedures,
        "dbt": dialect.has_dbt_projects,
        "labels": dialect.reads_labels,
    }
    if form in capabilities:
        capabilities[form].require(f"--as {form}: ")
