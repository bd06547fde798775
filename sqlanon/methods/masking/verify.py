"""Checks of releases that copy rows, from the source's own values, the policy, and what is staged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.methods.masking.shifts import ROWS, DateShift
from sqlanon.plan.plan import Plan
from sqlanon.policy import Show
from sqlanon.results.measures import Check
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.staging.staging import Staged
from sqlanon.values.expressions import comparable, exact, hashable
from sqlanon.verification.pseudonyms import check_pseudonyms
from sqlanon.verification.release_checks import columns_equal
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class SourceDigests:
    """The figures of the source that a release is held against, of the snapshot that the release is made of.

    kept: a digest of the multiset of rows in the columns that are kept. shifted: of these with the dates as they must
    be shown, None where none is shifted. misplaced: the persons whose dates would be moved by no number of days, or by
    one that the policy does not allow. grouped: by the name of each identifier whose pseudonyms tell rows apart, a
    digest of the multisets of kept rows that its values have.
    """

    rows: int
    kept: str
    grouped: Mapping[str, str]
    shifted: str | None = None
    misplaced: int = 0


def measure_source(engine: Engine, plan: Plan, shifts: Sequence[DateShift] = ()) -> SourceDigests:
    """Measure the source by its raw values, in a scan for all kept columns, one for shifted and one for each pseudonym.

    Call it in the transaction that stages the release. shifts: the days by which the dates of persons are moved.
    """
    types = {column.name: column for column in engine.columns(plan.source)}
    kept = kept_columns(plan)
    rows, digest = digest_rows(engine, kept, plan.source)
    shifted = _digest_shifted(engine, kept, shifts, plan.source, shifts) if shifts else None
    misplaced = sum(one.count_misplaced(engine) for one in shifts)
    grouped = {
        one.name: _digest_groups(engine, kept, types[one.name], plan.source)
        for one in plan.pseudonyms
        if kept and one.show.tells_apart
    }
    return SourceDigests(rows, digest, grouped, shifted, misplaced)


def check_masked(
    engine: Engine,
    workspace: Workspace,
    plan: Plan,
    figures: SourceDigests,
    staged: Staged,
    shifts: Sequence[DateShift] = (),
) -> dict[str, Check]:
    """Check a staged release, by the names of the checks; call it in the transaction that reads the source."""
    columns = {column.name: column for column in engine.columns(staged.relation)}
    wanted = [one.name for one in plan.attributes]
    checks = {"columns_equal": Check(columns_equal(wanted, list(columns)), len(wanted))}
    if checks["columns_equal"].violations:
        return checks
    kept = kept_columns(plan)
    rows, digest = digest_rows(engine, kept, staged.relation)
    checks["rows_equal"] = Check(abs(rows - figures.rows), figures.rows)
    checks["values_equal"] = Check(int(digest != figures.kept), figures.rows)
    if shifts:
        differs = _digest_shifted(engine, kept, shifts, staged.relation, ()) != figures.shifted
        checks["dates_shifted"] = Check(figures.misplaced + int(differs), figures.rows)
    if figures.grouped:
        moved = sum(
            _digest_groups(engine, kept, columns[name], staged.relation) != digest
            for name, digest in figures.grouped.items()
        )
        checks["pseudonyms_of_rows"] = Check(moved, len(figures.grouped))
    return checks | check_pseudonyms(engine, workspace, plan, staged, 0)


def kept_columns(plan: Plan) -> list[Column]:
    """List the columns that the release has as they are."""
    return [one.column for one in plan.read if one.show is not Show.SHIFTED]


def _digest_shifted(
    engine: Engine, kept: Sequence[Column], shifts: Sequence[DateShift], relation: Relation, joined: Sequence[DateShift]
) -> str:
    """Digest kept columns with shifted ones as they are counted, in days or microseconds.

    joined: the shifts by whose numbers of days the counts are moved; none in rows that are shifted already.
    """
    (digest,) = engine.query_one(
        "methods/masking/digest_shifted",
        relation=relation,
        values=_values(engine, kept, ROWS),
        dates=[one.counted(engine, is_moved=one in joined) for one in shifts],
        shifts=[one.joined(engine) for one in joined],
    )
    return str(digest)


def digest_rows(engine: Engine, columns: Sequence[Column], relation: Relation) -> tuple[int, str]:
    """Count the rows of a relation, and sum up their hashes, which are of one version of an engine."""
    rows, digest = engine.query_one("methods/masking/digest_rows", relation=relation, values=_values(engine, columns))
    return int(rows), str(digest)


def _digest_groups(engine: Engine, kept: Sequence[Column], column: Column, relation: Relation) -> str:
    """Digest the multisets of kept rows that the values of a column have, whatever these values are."""
    (digest,) = engine.query_one(
        "methods/masking/digest_groups",
        relation=relation,
        values=_values(engine, kept),
        group=comparable(engine, Markup(Identifier(column.name)), column.kind),
    )
    return str(digest)


def _values(engine: Engine, columns: Sequence[Column], alias: Identifier | None = None) -> list[Expression]:
    """Write the values of columns as rows are digested by them; alias: of the relation, where it has one."""
    names: list[tuple[Column, Expression]] = [
        (
            column,
            Markup(Identifier(column.name))
            if alias is None
            else macro("relations.column", alias, Identifier(column.name)),
        )
        for column in columns
    ]
    return [part for column, name in names for part in (hashable(engine, column, name), *exact(engine, column, name))]
