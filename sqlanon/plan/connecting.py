"""Sessions with the tables and files of a policy, or of a command line: opened for reading."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.dialects import find_dialect
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.engines.files import is_data_file, is_delimited
from sqlanon.engines.first_line import UndecidedHeader
from sqlanon.engines.read_options import FileReading, ReadOptions, suggested
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.engines.star import CLASS_NUMBER
from sqlanon.errors import PolicyError
from sqlanon.models import PrivacyModel
from sqlanon.plan.checks import released_names
from sqlanon.plan.lookup import call_by_file
from sqlanon.plan.opening import open_release_table, open_source_table, open_table
from sqlanon.policy import Policy, Role
from sqlanon.sql import Relation


@contextlib.contextmanager
def open_release(
    policy: Policy,
    table: str | None = None,
    models: Sequence[PrivacyModel] = (),
    options: EngineOptions | None = None,
    as_text: Sequence[str] = (),
    *,
    makes_tables: bool = False,
    keeps: bool = False,
) -> Iterator[tuple[Engine, Relation]]:
    """The released table, or another one beside it; for reading only unless a temporary table has to be made: of a
    model's hierarchy, of a population, of values that it names, which stay out of logs so, or of clusters that are
    expanded to rows.

    makes_tables: whether the caller makes others. keeps: whether it makes a table that stays.
    as_text: columns of a file of text that stay text, whatever they hold; others get the type that their values have.
    """
    file = policy.release.file
    url = MEMORY_URL if file is not None else policy.release.url or policy.source.url or ""
    is_expanded = policy.algorithm.releases_clusters
    makes_tables = makes_tables or keeps or is_expanded or any(_makes_tables(model) for model in models)
    read_only = file is None and not makes_tables
    with connect(url, options, read_only=read_only) as engine:
        if file is not None:
            yield engine, view_file(engine, table or file, reading_of_release(table or file, as_text))
        else:
            with open_release_table(engine, policy, table, keeps=keeps) as release:
                yield engine, release


@contextlib.contextmanager
def open_source(
    policy: Policy, options: EngineOptions | None = None, *, read_only: bool = False
) -> Iterator[tuple[Engine, Relation]]:
    """The policy's microdata table, in a session that may make temporary tables unless it is for reading only."""
    with connect(policy.source.url or MEMORY_URL, options, read_only=read_only) as engine:
        if policy.source.file is not None:
            yield engine, view_file(engine, policy.source.file, policy.source.reading)
        else:
            with open_source_table(engine, policy) as source:
                yield engine, source


def reading_of_release(file: str, as_text: Sequence[str] = ()) -> ReadOptions:
    """The options by which a release is read that is a file; as_text: columns of delimited text that stay text.

    Its first line holds the names of columns: the policy looks for those that it names.
    """
    if not is_delimited(file):
        return ReadOptions(is_checked=False)
    types = dict.fromkeys(as_text, "text")
    return ReadOptions(delimiter=",", types=types, header=True, is_checked=False)


def _makes_tables(model: PrivacyModel) -> bool:
    """Tell whether the check of a model makes temporary tables."""
    return bool(model.needs_hierarchy or model.needs_texts or model.population_table)


def release_columns(policy: Policy, there: set[str]) -> list[str]:
    """The columns of a release that make its classes: those of quasi-identifiers, and the number of the class.

    Of a quasi-identifier whose two bounds are not `there`, it is the column of its own name.

    So a policy can be held against its source too.
    """
    columns: list[str] = []
    for name, attribute in policy.attributes.items():
        if attribute.role is Role.QUASI_IDENTIFIER:
            released = released_names(name, attribute)
            columns += [name] if name in there and not there.issuperset(released) else released
    return [*columns, CLASS_NUMBER] if policy.algorithm.numbers_classes and CLASS_NUMBER in there else columns


@contextlib.contextmanager
def connect_to_table(
    url: str | None,
    table: str,
    options: EngineOptions | None,
    trusts_owner: bool,
    reading: ReadOptions | None = None,
    *,
    makes_tables: bool = False,
    writes: bool = False,
) -> Iterator[tuple[Engine, Relation]]:
    """A table, or a file (see `names_file`), for reading only.

    reading: how a file is read. Raises PolicyError where it is given for a table.
    makes_tables: whether the session must be able to make temporary tables, where one for reading only is not.
    writes: whether it is to make a table that stays.
    """
    read_only = not writes and _is_read_only(url, makes_tables)
    with connect(url or MEMORY_URL, options, read_only=read_only) as engine:
        if names_file(url, table):
            yield engine, view_file(engine, table, reading)
        else:
            refuse_reading(table, reading)
            with open_table(engine, table, trusts_owner=trusts_owner, keeps=writes) as relation:
                yield engine, relation


@contextlib.contextmanager
def open_second_table(
    engine: Engine, url: str | None, table: str, trusts_owner: bool, name: str, reading: ReadOptions | None = None
) -> Iterator[Relation]:
    """Another table of the same session, or a file, which goes by this name; see `connect_to_table`."""
    if names_file(url, table):
        yield read_file_as(engine, table, reading, name).relation
    else:
        refuse_reading(table, reading)
        with open_table(engine, table, trusts_owner=trusts_owner) as relation:
            yield relation


def _is_read_only(url: str | None, makes_tables: bool) -> bool:
    """Tell whether the session with a database is to be one for reading only."""
    dialect = None if url is None else find_dialect(url)
    return url is not None and not (makes_tables and dialect is not None and not dialect.keeps_temporary_tables)


def names_file(url: str | None, table: str) -> bool:
    """Tell whether a table that is given beside a URL, or without one, is a file.

    Where the engine reads files beside its tables, it is one if it has the ending of a file, or a `/`, and no quote.
    """
    dialect = None if url is None else find_dialect(url)
    if url is None or dialect is None or not dialect.names_files:
        return url is None
    return '"' not in table and ("/" in table or is_data_file(table))


def refuse_reading(table: str, reading: ReadOptions | None) -> None:
    """Raise PolicyError where options for reading a file are given for a table."""
    if reading is not None:
        given = " and ".join(reading.given()) or "the reading of a file"
        raise PolicyError(f"{table} is a table, which has names and types of its own: leave {given} out.")


def read_to_draft(engine: Engine, path: str, options: ReadOptions) -> FileReading:
    """Read a file by the options given and by those that it shows; the reading has them all.

    A first line that reads like data is read as such. Each reading leaves fewer columns as texts, and the last one none
    that the file shows how to read.
    """
    try:
        reading = read_file_as(engine, path, options)
    except UndecidedHeader:
        reading = read_file_as(engine, path, replace(options, header=False))
    shown = suggested(reading)
    while replace(shown, names=reading.options.names) != reading.options:
        reading = read_file_as(engine, path, shown)
        shown = suggested(reading)
    return replace(reading, options=shown)


def view_file(engine: Engine, path: str, options: ReadOptions | None = None) -> Relation:
    return read_file_as(engine, path, options).relation


def read_file_as(engine: Engine, path: str, options: ReadOptions | None, name: str = "viewed_file") -> FileReading:
    reading = engine.read_file(Relation(name), path, options)
    call_by_file(engine, reading.relation, path)
    return reading
