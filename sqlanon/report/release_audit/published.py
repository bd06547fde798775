"""A published release where it can be held against its source: its columns, and its rows beside those of the source."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from markupsafe import Markup

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.dialects import Dialect
from sqlanon.engines.embedded import EMBEDDED, MEMORY_URL
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.engines.star import CLASS_NUMBER
from sqlanon.plan.checks import released_names
from sqlanon.plan.connecting import reading_of_release
from sqlanon.plan.opening import open_release_table
from sqlanon.plan.plan import Plan
from sqlanon.policy import Policy, Role, Show
from sqlanon.sql import Identifier, Relation
from sqlanon.work.publish.release_files import is_text_file, open_file
from sqlanon.work.publish.transfer import transfer


def expected_names(policy: Policy) -> list[str]:
    """The columns that a release by this policy has, in the order in which the policy names them."""
    names = [name for column, one in policy.attributes.items() for name in released_names(column, one)]
    if not policy.algorithm.releases_clusters:
        return [*names, CLASS_NUMBER] if policy.algorithm.numbers_classes else names
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
    if plan.policy.algorithm.numbers_classes:
        columns.append(Column(CLASS_NUMBER, dialect.types["int64"], Kind.INTEGER))
    return columns


@contextlib.contextmanager
def open_published(
    policy: Policy, engine: Engine, table: str | None, options: EngineOptions | None
) -> Iterator[tuple[Engine, Relation]]:
    """The release, or another table or file in its place, and the session that reads it.

    That is the session of the source, where the release is in the same database or DuckDB's anyway.
    """
    file = policy.release.file and (table or policy.release.file)
    is_there = policy.release.url in (None, policy.source.url) and (file is None or engine.traits.reads_files)
    url = policy.release.url or "" if file is None else MEMORY_URL
    with contextlib.nullcontext(engine) if is_there else connect(url, options, read_only=file is None) as reader:
        if file is None:
            with open_release_table(reader, policy, table) as release:
                yield reader, release
        else:
            yield reader, reader.read_file(Relation("audited_file"), file, reading_of_release(file)).relation


def bring_published(
    policy: Policy, engine: Engine, reader: Engine, relation: Relation, table: str | None, expected: Sequence[Column]
) -> Relation:
    """The release with its types, as a relation of the source's session.

    Raises EngineError where a text of a file is no value of its column's type.
    """
    if policy.release.file is not None:
        file = Path(table or policy.release.file)
        relation = open_file(reader, file, _columns_of_file(engine, reader, relation, file, expected))
    if reader is engine:
        return relation
    brought = engine.temporary("audited_release")
    transfer(reader, relation, engine, brought)
    return _cast(engine, engine.resolve(brought) or brought, expected)


def _columns_of_file(
    engine: Engine, reader: Engine, relation: Relation, file: Path, expected: Sequence[Column]
) -> list[Column]:
    """The expected columns, with the types in which the reader gives them.

    Another engine than the source's gives the texts of a CSV as they are, as these are the texts of the source's.
    """
    read = {column.name: column for column in reader.columns(relation)}
    if reader is engine:
        types = {one.name: _own_type(engine, one, read[one.name]) for one in expected}
    else:
        types = {one.name: EMBEDDED.types["text"] for one in expected if one.type and is_text_file(file)}
    return [replace(one, type=types.get(one.name) or read[one.name].type) for one in expected]


def _own_type(engine: Engine, expected: Column, read: Column) -> str | None:
    """The type of the source that the text of a value is cast to; None where it is compared by that text."""
    if read.kind is Kind.TEXT and expected.kind is Kind.OTHER and not engine.traits.reads_own_texts:
        return None
    if read.kind is Kind.TEXT and not expected.type:  # bounds that are NULL in all rows
        return engine.traits.types["float64" if expected.kind.is_numeric else expected.kind]
    return expected.type or None


def _cast(engine: Engine, brought: Relation, expected: Sequence[Column]) -> Relation:
    """Make a copy of the release with the types of the source, where they differ."""
    wanted = {column.name: column for column in expected}
    columns = [(one, _own_type(engine, wanted[one.name], one)) for one in engine.columns(brought)]
    if all(type_ in (None, column.type) for column, type_ in columns):
        return brought
    typed = engine.temporary("audited_types")
    listed = [{"name": Identifier(one.name), "type": Markup(type_ or one.type)} for one, type_ in columns]
    engine.run("report/release_audit/cast_release", typed=typed, release=brought, columns=listed)
    engine.run("engines/drop_table", table=brought)
    return engine.resolve(typed) or typed


def rescaled_columns(policy: Policy, published: Sequence[Column], expected: Sequence[Column]) -> frozenset[str]:
    """Name the decimals without a declared scale to which the release gave one; a CSV has their texts."""
    if policy.release.file is not None and is_text_file(policy.release.file):
        return frozenset()
    free = {one.name for one in expected if one.kind is Kind.DECIMAL and one.decimals is None}
    return frozenset(one.name for one in published if one.name in free and one.kind is Kind.DECIMAL)


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
