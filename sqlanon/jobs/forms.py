"""Forms of a recoding as SQL to own, each of which the database of the source has, or lacks with a reason."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlanon.catalog import Catalog, Run
from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.dialects import dialect_named
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.policy.loading import parse_stored
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


@contextlib.contextmanager
def session_of_source(engine: Engine, catalog: Catalog, run: Run, options: EngineOptions | None) -> Iterator[Engine]:
    """Give a session with the source of a run: that of the catalog, or another one where the source can keep none."""
    url = parse_stored(run.policy).source.url
    if url is None or dialect_named(read_rules(catalog, run.id).content["dialect"]).keeps_catalog:
        yield engine
        return
    with connect(url, options) as session:
        yield session
