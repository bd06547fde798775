"""Where a policy's tables are: the source, the release, the catalog."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from pydantic import Field, model_validator

from sqlanon.engines.urls import redacted
from sqlanon.errors import PolicyError
from sqlanon.policy.part import Part, broken
from sqlanon.sql import Relation


class Place(Part):
    """A part that may hold a URL: shown without its password."""

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, redacted(value) if name == "url" and value is not None else value


class Source(Place):
    """Where the microdata table is: a database's table (url and table), or a file that DuckDB reads."""

    url: str | None = None
    """The database of the microdata table; `${NAME}` is replaced by the environment's value, `$$` by `$`. Special
    characters of a password are percent-encoded: `%40` for `@`, `%2F` for `/`. The file of `duckdb:///x.duckdb` is
    relative to the working directory, not to the policy; with four slashes (`duckdb:////data/x.duckdb`) it is absolute.
    """
    table: str | None = None
    """The table, as SQL writes it."""
    file: str | None = None
    """A .csv, .tsv or .parquet file instead, relative to the policy; `${NAME}` is replaced."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.file is None) == (self.url is None or self.table is None) or (self.file and (self.url or self.table)):
            raise broken("must hold either url and table, or file.")
        _check_table(self.table)
        return self


class Release(Place):
    """Where the protected table goes (table or file); in the source's database unless `url` is given."""

    url: str | None = None
    """The database of the release, if another than the source's; written as that of the source."""
    table: str | None = None
    """The table, as SQL writes it."""
    file: str | None = None
    """A .parquet, .csv or .csv.gz file instead, relative to the policy; `${NAME}` is replaced."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.table is None) == (self.file is None):
            raise broken("must hold either table or file.")
        if self.file is not None and self.url is not None:
            raise broken("must not hold url, as it is a file.")
        _check_table(self.table)
        return self


class Catalog(Place):
    """Where runs and releases are recorded: by default the source's database; of a source file, the release's."""

    url: str | None = None
    """Its database; written as that of the source."""
    schema_: str = Field(default="sqlanon", alias="schema", min_length=1)
    """The schema of its tables."""


def _check_table(text: str | None) -> None:
    try:
        if text is not None:
            Relation.parse(text)
    except PolicyError as error:
        raise broken(f"has a wrong table: {error}") from None
