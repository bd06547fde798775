"""Locations of a policy's tables: the source, the release, the catalog."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from sqlanon.engines.dialects import find_dialect
from sqlanon.engines.read_options import POLICY_OPTIONS, ReadOptions, is_text_encoding, type_named
from sqlanon.engines.urls import redacted
from sqlanon.errors import PolicyError
from sqlanon.policy.part import Part, Reference, broken
from sqlanon.sql import Relation
from sqlanon.support.environment import named


class Location(Part):
    """A part that may hold a URL: shown without its password."""

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, redacted(named(value)) if name == "url" and value is not None else value


class Source(Location):
    """The microdata table: a database's table (url and table), or a file that DuckDB reads, or Spark (url and file)."""

    url: Reference | None = None
    """The database of the microdata table; `${NAME}` is replaced by the environment's value, `$$` by `$`. Special
    characters of a password are percent-encoded: `%40` for `@`, `%2F` for `/`. The file of `duckdb:///x.duckdb` is
    relative to the working directory, not to the policy; with four slashes (`duckdb:////data/x.duckdb`) it is absolute.
    """
    table: str | None = None
    """The table, as SQL writes it: on PostgreSQL a name without quotes is folded to lower case. Where only the name as
    written exists, it is meant; where both do, it has to be in quotes."""
    file: Reference | None = None
    """A file instead, relative to the policy; `${NAME}` is replaced: .csv, .tsv, .json, .jsonl or .ndjson (these also
    with .gz or .zst), .xlsx (its first sheet), or .parquet, also many of the same columns by a pattern
    (`parts/*.parquet`); `-` is standard input, a .csv. With the `url` of Spark: .parquet, .csv or .csv.gz files, or a
    directory of .parquet files, where Spark is. What follows is for files of text.
    """
    delimiter: str | None = None
    """The delimiter of the fields of a line: a character, or `tab`. By default the one of comma, semicolon, tab and bar
    that the first line has most of; commas between digits don't count where there is another."""
    encoding: str | None = None
    """The encoding of the text, such as `latin-1`, `windows-1252` or `utf-16`; `utf-8` by default."""
    header: bool | None = None
    """The first line holds the names of the columns (`true`), or data (`false`). By default it holds names, and a file
    whose first line reads like data is refused until this is said."""
    names: tuple[str, ...] = ()
    """The names of the columns: with `header: false` in place of `column0`, `column1` and so on, with `header: true` in
    place of those in the first line."""
    null: tuple[str, ...] | None = None
    """The fields that stand for NULL where they are not in quotes, one or a list: by default the empty field. A field
    in quotes is never NULL. Of JSON and spreadsheets, which have no quotes in this sense, the texts that stand for NULL
    beside what is NULL there."""
    types: dict[str, str] = Field(default_factory=dict)
    """Columns and the types that they are read as: `text`, `integer`, `hugeint`, `double`, `decimal(p,s)`, `boolean`,
    `date`, `timestamp`, `timestamptz` (moments with their offset from UTC) or `time`. The type of any other column is
    one that each of its values survives byte for byte, cast and cast back; where there is none (`00123`, `yes`, `1.50`
    beside `1.5`), the column stays text."""
    dates: tuple[str, ...] = ()
    """The format of dates or moments, or a list of formats, such as `%d/%m/%Y`: a column whose values all have one of
    them is read by it. Without it only `2024-12-31` and `2024-12-31 23:59:59` are dates and moments."""
    decimal: str | None = None
    """The decimal mark of numbers, a point (by default) or a comma; they are kept with a point."""
    thousands: str | None = None
    """The mark between groups of three digits: `.`, `,`, a straight or curly apostrophe, a blank, or a no-break, narrow
    no-break or thin space. By default digits are not grouped. Grouped numbers are kept without the mark."""

    @property
    def reading(self) -> ReadOptions:
        """The options by which the file is read."""
        return ReadOptions(**{name: getattr(self, name) for name in POLICY_OPTIONS})

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.file is None) == (self.table is None) or (self.table is not None and self.url is None):
            raise broken("must hold either url and table, or file.")
        if self.file is not None and self.url is not None and not _names_files(self.url):
            raise broken("must hold either url and table, or file; url and file together are for Spark.")
        if self.file is None and self.reading != ReadOptions():
            idle = " and ".join(self.reading.given())
            raise broken(f"must not hold {idle}, as it is a table: this says how a file is read.")
        _check_table(self.table)
        _check_reading(self.reading)
        return self


class ReleaseSection(Location):
    """The place of the protected table (table or file); in the source's database unless `url` is given."""

    url: Reference | None = None
    """The database of the release, if another than the source's; written as that of the source."""
    table: str | None = None
    """The table, as SQL writes it: on PostgreSQL a name without quotes is folded to lower case. Where only the name as
    written exists, it is meant; where both do, it has to be in quotes."""
    file: Reference | None = None
    """A .parquet, .csv or .csv.gz file instead, relative to the policy; `${NAME}` is replaced. Spark makes a directory
    of .parquet files, whose name ends in .parquet or has no ending."""
    layout: Literal["flat", "star"] = "flat"
    """The storage of a table. `flat`: every row holds the labels of its class. `star`: the release is a view of the
    same columns and rows, which joins two tables: one of rows, each with the number of its class (`<table>_rows`), and
    one of classes with their labels (`<table>_classes`); a large release is written sooner and takes less room."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.table is None) == (self.file is None):
            raise broken("must hold either table or file.")
        if self.file is not None and self.layout != "flat":
            raise broken("must not hold layout, as it is a file, which holds one table: it is flat.")
        if self.file is not None and self.url is not None:
            raise broken("must not hold url, as it is a file.")
        _check_table(self.table)
        return self


class CatalogSection(Location):
    """The database of runs and releases: by default the source's database; of a source file, the release's; of a
    release file too, `sqlanon.duckdb` beside the source, never beside the release."""

    url: Reference | None = None
    """Its database; written as that of the source."""
    schema_: str = Field(default="sqlanon", alias="schema", min_length=1)
    """The schema of its tables, by its exact name, without quotes. Once a schema or a URL is named, no other place is
    used: a catalog that can't be used, or that is not there though another one of the database knows the source, ends a
    command with exit code 4. `sqlanon db upgrade --policy …` makes a new one. Where neither is named, a role that can't
    have the schema `sqlanon` keeps its catalog in the release's schema, and each command says so."""

    @property
    def is_named(self) -> bool:
        """Tell whether somebody named the schema or the database."""
        return bool({"url", "schema_"} & self.model_fields_set)


def _names_files(url: str) -> bool:
    dialect = find_dialect(url)
    return dialect is not None and dialect.names_files


def _check_reading(reading: ReadOptions) -> None:
    """Check that files can be read by the options that a policy gives."""
    delimiter = reading.delimiter
    if delimiter is not None and (len(delimiter.encode()) != 1 or delimiter in '"\r\n\0'):
        raise broken("has a wrong delimiter: it is one character such as ; or |, or the word tab.")
    if reading.encoding is not None and not is_text_encoding(reading.encoding):
        raise broken(
            f"has an unknown encoding, '{reading.encoding}'; there are utf-8, latin-1, windows-1252 and others."
        )
    for name in reading.types.values():
        try:
            type_named(name)
        except PolicyError as error:
            raise broken(f"has a wrong type: {error}") from None
    if not all("%" in form for form in reading.dates):
        raise broken("has a wrong format of dates; write it like %d/%m/%Y.")
    for problem in reading.problems():
        raise broken(problem)


def _check_table(text: str | None) -> None:
    try:
        if text is not None:
            Relation.parse(text)
    except PolicyError as error:
        raise broken(f"has a wrong table: {error}") from None
