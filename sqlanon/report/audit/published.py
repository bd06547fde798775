"""A published release where it can be held against its source: its columns, and its rows beside those of the source."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.dialects import Dialect
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.plan.checks import released_names
from sqlanon.plan.connecting import reading_of_release
from sqlanon.plan.opening import open_release_table
from sqlanon.plan.plan import Plan
from sqlanon.policy import Policy, Role, Show
from sqlanon.sql import Relation
from sqlanon.work.publish.files import open_file
from sqlanon.work.publish.transfer import transfer


def expected_names(policy: Policy) -> list[str]:
    """The columns that a release by this policy has, in the order in which the policy names them."""
    names = [name for column, one in policy.attributes.items() for name in released_names(column, one)]
    if not policy.algorithm.releases_clusters:
        return names
    quasi = [name for name, one in policy.attributes.items() if one.role is Role.QUASI_IDENTIFIER]
    return ["cluster", *quasi, "rows", "radius"]


def expected_columns(plan: Plan, dialect: type[Dialect]) -> list[Column]:
    """The columns that a release has, in the order of the source's, with the types of the source's engine.

    The bounds of groups have a type that depends on the hierarchy: it is left empty.
    """
    columns: list[Column] = []
    for attribute in plan.attributes:
        column, specified = attribute.column, plan.policy.attributes[attribute.name]
        names = released_names(attribute.name, specified)
        if attribute.role is not Role.QUASI_IDENTIFIER:
            columns.append(column)
        elif attribute.show is Show.BOUNDS:
            type_ = "" if attribute.hierarchy is not None else column.type
            columns += [Column(name, type_, column.kind) for name in names]
        elif attribute.show is Show.LABEL:
            columns.append(Column(attribute.name, dialect.types["text"], Kind.TEXT))
        elif attribute.show.is_centre:
            columns.append(column)
        elif attribute.show is Show.RANGE:
            columns.append(Column(attribute.name, dialect.range_types[column.kind], Kind.OTHER))
        else:
            columns.append(Column(attribute.name, dialect.types["float64"], Kind.FLOAT))
    return columns


@contextlib.contextmanager
def open_published(
    policy: Policy, engine: Engine, table: str | None, options: EngineOptions | None
) -> Iterator[tuple[Engine, Relation]]:
    """The release, or another table or file in its place, and the session that reads it.

    That is the session of the source, where the release is in the same database or DuckDB's anyway.
    """
    with _open_reader(policy, engine, options) as reader:
        if policy.release.file is None:
            with open_release_table(reader, policy, table) as release:
                yield reader, release
        else:
            file = table or policy.release.file
            yield (
                reader,
                reader.read_file(
                    Relation("audited_file"), file, reading_of_release(file, is_own=table is None)
                ).relation,
            )


@contextlib.contextmanager
def _open_reader(policy: Policy, engine: Engine, options: EngineOptions | None) -> Iterator[Engine]:
    file = policy.release.file is not None
    if policy.release.url in (None, policy.source.url) and (not file or engine.traits.reads_files):
        yield engine
        return
    with connect(MEMORY_URL if file else policy.release.url or "", options, read_only=not file) as other:
        yield other


def bring_published(
    policy: Policy, engine: Engine, reader: Engine, relation: Relation, table: str | None, expected: Sequence[Column]
) -> Relation:
    """The release with its types, as a relation of the source's session.

    Raises EngineError where a text of a file is no value of its column's type.
    """
    file = policy.release.file
    if file is not None:
        read = {column.name: column.type for column in reader.columns(relation)}
        own = {column.name: column.type for column in expected if reader is engine and column.type}
        typed = [Column(one.name, own.get(one.name, read[one.name]), one.kind) for one in expected]
        relation = open_file(reader, Path(table or file), typed)
    if reader is engine:
        return relation
    brought = engine.temporary("audited_release")
    transfer(reader, relation, engine, brought)
    return engine.resolve(brought) or brought


def wrong_columns(expected: Sequence[Column], actual: Sequence[Column], *, typed: bool) -> list[str]:
    """The names of columns that are missing, too many, in another place or of another type."""
    wanted = [(column.name, column) for column in expected]
    seen = [(column.name, column) for column in actual]
    if [name for name, _ in wanted] != [name for name, _ in seen]:
        names, others = {name for name, _ in wanted}, {name for name, _ in seen}
        moved = [a for (a, _), (b, _) in zip(wanted, seen, strict=False) if a != b]
        return sorted(names ^ others) or moved
    return [
        name for (name, one), (_, other) in zip(wanted, seen, strict=True) if typed and one.type not in ("", other.type)
    ]
