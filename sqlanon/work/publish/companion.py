"""The second table of a release, such as `<table>_values`, published in the transaction that publishes the first.

Where there is one from an earlier release, its rows are replaced in place, so that it keeps what people attached to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import publisher_of
from sqlanon.engines.star import Form
from sqlanon.errors import ConflictError, PolicyError, SqlanonError
from sqlanon.sql import MAX_IDENTIFIER_BYTES, Identifier, Relation


@dataclass(frozen=True)
class Companion:
    """A kind of second table: the algorithm that makes it, the ending of its name, and its columns."""

    algorithm: str
    ending: str
    columns: tuple[str, ...]


VALUES = Companion("r-gather", "values", ("cluster", "column", "value", "count"))
NOISE = Companion("randomize", "noise", ("attribute", "method", "parameter", "true_value", "released_value", "amount"))


def companion_of(release: Relation, kind: Companion = VALUES) -> Relation:
    """The name of the second table of a release."""
    return release.sibling(f"{release.name}_{kind.ending}")


def companion_problems(
    engine: Engine, release: Relation, replace: bool, kind: Companion = VALUES
) -> list[SqlanonError]:
    """List the errors that publishing a second table would raise; nothing is changed."""
    if not engine.traits.has_transactions:
        return [PolicyError(engine.traits.has_transactions.lacking)]
    target = engine.resolve(release)
    companion = companion_of(target or release, kind)
    if len(companion.name.encode()) > MAX_IDENTIFIER_BYTES:
        return [
            PolicyError(
                f"The name {release} is too long for {kind.algorithm}, which makes a table {companion} beside it: names"
                f" have {MAX_IDENTIFIER_BYTES} bytes at most."
            )
        ]
    form = publisher_of(engine).form(companion)
    if form is Form.NOTHING or (
        target is not None and replace and form is Form.TABLE and _fits(engine, companion, kind)
    ):
        return []
    return [
        PolicyError(
            f"{kind.algorithm} makes a table {companion} beside the release, and there is something of this name that"
            " is no earlier release to be replaced (--replace): choose another name for the release."
        )
    ]


def publish_companion(engine: Engine, staged: Relation, release: Relation, kind: Companion = VALUES) -> None:
    """Let a staged second table take its place; call it in the transaction that publishes the first.

    Raises ConflictError where something else has come to its name, or its rows are not those that were staged.
    """
    companion = companion_of(engine.resolve(release) or release, kind)
    form = publisher_of(engine).form(companion)
    if form is Form.NOTHING:
        engine.run("work/publish/rename_table", table=staged, name=Identifier(companion.name))
        return
    if form is not Form.TABLE or not _fits(engine, companion, kind):
        raise ConflictError(f"{companion} was altered meanwhile; nothing was published. Run again.")
    engine.run("work/publish/delete_rows", table=companion)
    engine.run("work/publish/insert_rows", table=companion, staging=staged)
    (differing,) = engine.query_one("work/publish/compare_tables", one=companion, other=staged)
    if differing:
        raise ConflictError(f"Triggers or rules of {companion} alter its rows; nothing was published.")
    engine.run("work/publish/drop_table", table=staged)


def _fits(engine: Engine, companion: Relation, kind: Companion) -> bool:
    return tuple(column.name for column in engine.columns(companion)) == kind.columns
