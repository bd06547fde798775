"""Dialects: what is different from engine to engine, known before anybody connects.

Whoever has to decide by the engine asks a dialect, or a session's class, for the one property that matters; nobody else
asks for its name. A dialect loads no driver.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlanon.engines.postgres.meanings import MEANINGS_OF_VALUES
from sqlanon.engines.urls import scheme_of
from sqlanon.errors import PolicyError


@dataclass(frozen=True)
class Dialect:
    """An engine's SQL, and the properties of its databases.

    name: of the templates that are its own, `name.<dialect>.sql.j2`; label: as people write it.
    schemes: of URLs that name its databases.
    escapes_urls: a password in a URL is percent-encoded.
    adapter, publisher, catalog_driver: the modules and classes of its sessions, of what publishes there, and of the
        catalog's connection; each is loaded with the first session.
    is_embedded: the database lives in this process, which alone may hold it: its locks are the process's own, nobody
        else's role or code is in it, and its work tables are temporary.
    has_procedures: jobs may be procedures that the database runs by itself.
    reads_files: its sessions read and write files of this machine.
    has_ranges: there are types for ranges of values (`show: range`).
    folds_case: names that differ only in case are one name.
    longest_name: bytes of a name; None for any number.
    prefers_case: a CASE over many rules is quicker than joins with them.
    text_type, double_type: as declared for columns.
    meanings: the statements that let values mean the same in any session; of_zones: those for times with a zone.
    temporary: the schema of temporary tables, and its catalog if that has to be named.
    """

    name: str
    label: str
    schemes: tuple[str, ...]
    escapes_urls: bool
    adapter: str
    publisher: str
    catalog_driver: str
    is_embedded: bool
    has_procedures: bool
    reads_files: bool
    has_ranges: bool
    folds_case: bool
    longest_name: int | None
    prefers_case: bool
    text_type: str
    double_type: str
    meanings: tuple[str, ...]
    of_zones: tuple[str, ...]
    temporary: tuple[str, str | None]

    def fold(self, name: str) -> str:
        """Spell a name so that names of one thing are equal."""
        return name.casefold() if self.folds_case else name


DUCKDB = Dialect(
    name="duckdb",
    label="DuckDB",
    schemes=("duckdb",),
    escapes_urls=False,
    adapter="sqlanon.engines.duckdb.engine:DuckDBEngine",
    publisher="sqlanon.publish.duckdb:DuckDBPublisher",
    catalog_driver="sqlanon.catalog.duckdb_driver:DuckDBDriver",
    is_embedded=True,
    has_procedures=False,
    reads_files=True,
    has_ranges=False,
    folds_case=True,
    longest_name=None,
    prefers_case=False,
    text_type="VARCHAR",
    double_type="DOUBLE",
    meanings=(),
    of_zones=("SET TimeZone = 'UTC'",),
    temporary=("main", "temp"),
)
POSTGRES = Dialect(
    name="postgres",
    label="PostgreSQL",
    schemes=("postgresql", "postgres", "postgresql+psycopg"),
    escapes_urls=True,
    adapter="sqlanon.engines.postgres.engine:PostgresEngine",
    publisher="sqlanon.publish.postgres:PostgresPublisher",
    catalog_driver="sqlanon.catalog.postgres_driver:PostgresDriver",
    is_embedded=False,
    has_procedures=True,
    reads_files=False,
    has_ranges=True,
    folds_case=False,
    longest_name=63,
    prefers_case=True,
    text_type="text",
    double_type="double precision",
    meanings=tuple(f"SET LOCAL {name} = '{value}'" for name, value in MEANINGS_OF_VALUES.items()),
    of_zones=(),
    temporary=("pg_temp", None),
)
DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (DUCKDB, POSTGRES)}
"""The dialects by name."""


WRITER_OF_FILES = DUCKDB
"""The dialect that reads and writes files, whatever database the source is in."""


def load_part(path: str) -> Any:
    """Load a part of an engine by its module and name."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def dialect_named(name: str) -> Dialect:
    """Find a dialect by its name."""
    return DIALECTS[name]


def schemes() -> tuple[str, ...]:
    """List the URL schemes there is an engine for."""
    return tuple(scheme for dialect in DIALECTS.values() for scheme in dialect.schemes)


def dialect_of_url(url: str) -> Dialect:
    """Tell the dialect of the database that a URL names; raises PolicyError where there is no engine for it."""
    scheme = scheme_of(url)
    if scheme is None:
        raise PolicyError("The database must be given as a URL, such as duckdb:///file.duckdb or postgresql://host/db.")
    found = find_dialect(url)
    if found is not None:
        return found
    near = difflib.get_close_matches(scheme, schemes(), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "there are: " + ", ".join(schemes()) + "."
    raise PolicyError(f"There is no engine for '{scheme}://' URLs; {hint}")


def find_dialect(url: str) -> Dialect | None:
    """Find the dialect of the database that a URL names; None where there is no engine for it."""
    scheme = scheme_of(url)
    return next((dialect for dialect in DIALECTS.values() if scheme in dialect.schemes), None)


def is_embedded(url: str) -> bool:
    """Tell whether a URL names a database that would live in this process; False where there is no engine for it."""
    dialect = find_dialect(url)
    return dialect is not None and dialect.is_embedded
