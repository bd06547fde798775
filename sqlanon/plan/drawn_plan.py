"""Places of runs that make no classes: the source and the release that a policy was resolved to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.plan.lookup import unknown_table
from sqlanon.plan.plan import find_release, find_source
from sqlanon.policy import Policy
from sqlanon.policy.document import path_text
from sqlanon.sql import Relation
from sqlanon.support.suggest import did_you_mean, quoted


@dataclass(frozen=True)
class DrawnPlan:
    """A policy with the relations of its source and its release, by which records and the catalog name them."""

    policy: Policy
    source: Relation
    release: Relation

    @property
    def source_place(self) -> str:
        return str(self.source)

    @property
    def source_name(self) -> str:
        return str(self.source)

    @property
    def release_name(self) -> str:
        return str(self.release)


def find_places(policy: Policy, engine: Engine, replace: bool) -> tuple[Relation, Relation, list[str]]:
    """Find the table that is the source, and the name of the release with what forbids it."""
    source = find_source(policy, engine)
    if source is None:
        raise PolicyError(f"source.table: {unknown_table(engine, policy.source.table or '')}")
    release, errors = find_release(policy, source, engine, replace)
    return source, release, [str(error) for error in errors]


def is_released(policy: Policy, column: Column) -> bool:
    """Tell whether a column is in the release: whether it has a role that leaves it there."""
    attribute = policy.attributes.get(column.name)
    return attribute is not None and not attribute.is_omitted


def name_problems(policy: Policy, columns: Sequence[Column], table: str) -> Iterator[str]:
    """Name the columns that are not there, and those that lack a role."""
    names = [column.name for column in columns]
    for name in policy.attributes:
        if name not in names:
            yield f"{path_text(('attributes', name))}: {table} has no such column; {did_you_mean(name, names)}"
    missing = [name for name in names if name not in policy.attributes]
    if missing:
        yield f"{table} has columns without a role: {', '.join(quoted(missing))}. Every column needs one."


def column_problems(policy: Policy, columns: Sequence[Column], table: str) -> Iterator[str]:
    """Name the columns that are not there, that lack a role, and whose values can't be told apart."""
    yield from name_problems(policy, columns, table)
    for column in columns:
        if is_released(policy, column) and column.kind is Kind.OTHER:
            yield (
                f"{path_text(('attributes', column.name))}: rows with values of type {column.type} can't be told apart"
                " and put in order; cast the column in a view, or leave it out (role: omit)."
            )
