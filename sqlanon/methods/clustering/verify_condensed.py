"""The checks of a staged release of synthetic rows: as many as there were, spread as the source's, none of them one.

The groups are taken from the search as a claim; all else is reckoned from the staged rows and from what was captured of
the source, in raw values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.plan.plan import Plan
from sqlanon.results.measures import Check
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation, free_name, macro
from sqlanon.staging.recode import Recoding, cell_name
from sqlanon.staging.staging import Staged
from sqlanon.values.expressions import double_of, exact
from sqlanon.verification.checking import check_kept
from sqlanon.verification.release_checks import classes_equal
from sqlanon.work.workspace import Workspace

FINEST, COARSEST = 2.0**-29, 2.0**-26  # of grids, in the greatest standard deviation of a group
COARSEST_OF_SIZE = 2.0**-46  # of the number that is farthest from 0: doubles of its size tell no finer grid


@dataclass(frozen=True)
class DrawnNumber:
    """A quasi-identifier whose released numbers are drawn.

    floor: its standard deviation in a group whose rows all have the same number.
    grid: the distance of neighbouring points of the grid that released numbers are on; None where all are equal.
    """

    floor: RedactedValue
    grid: RedactedValue | None


@dataclass(frozen=True)
class CondensedRows:
    """Synthetic rows.

    recoding: a region for each of them, with the number `grouped` of its group.
    groups: `(leaf, p0, p1, …)`, the words of every source row with its group.
    factors: `(leaf, region, n, …)`, the statistics of each group.
    numbers: the quasi-identifiers that are drawn, by their place.
    offset: of all grids from 0, in steps.
    """

    recoding: Recoding
    groups: Relation
    factors: Relation
    numbers: dict[int, DrawnNumber]
    offset: float


def check_condensed(
    engine: Engine, workspace: Workspace, plan: Plan, drawn: CondensedRows, staged: Staged
) -> dict[str, Check]:
    """All checks by name, each done however the others turn out; see `checking.check_release`."""
    recoding = drawn.recoding
    checks = check_kept(engine, plan, recoding, staged)
    witness, grouped, group = create_witness(engine, workspace, drawn), workspace.table("grouped"), _group(recoding)
    cells = [
        {"name": cell.column, "cell": cell_name(place), "is_number": place in drawn.numbers}
        for place, cell in enumerate(recoding.cells)
    ]
    engine.run(
        "methods/clustering/condensation/create_staged",
        grouped=grouped,
        staged=staged.relation,
        regions=recoding.regions,
        cells=cells,
        group=group,
    )
    engine.analyze(grouped)
    (seen,) = engine.query_one("count_rows", table=witness)
    missed = abs(recoding.coded.source_rows - seen)
    checks["groups_equal"] = Check(_unequal(engine, drawn, witness, grouped, group) + missed, seen)
    if plan.policy.target is not None:
        checks["targets_apart"] = Check(_mixed(engine, plan.policy.target, drawn, witness), seen)
    strayed, unrounded = _measure_spread(engine, drawn, witness, grouped, group)
    checks["groups_spread"] = Check(strayed, seen)
    checks["numbers_rounded"] = Check(unrounded, seen)
    pairs = [(shown, raw) for _, shown, raw in _numbers(engine, drawn)]
    (shown_rows,) = engine.query_one(
        "methods/clustering/count_shown_rows", staged=staged.relation, witness=witness, pairs=pairs
    )
    checks["rows_new"] = Check(int(shown_rows), seen)
    workspace.drop(witness, grouped)
    return checks


def create_judged(engine: Engine, workspace: Workspace, drawn: CondensedRows) -> tuple[Relation, str]:
    """Create a table of the kept values of all source rows with their groups; also returns the groups' column."""
    judged, group, witness = (
        workspace.table("judged"),
        _group(drawn.recoding),
        create_witness(engine, workspace, drawn),
    )
    kept = [
        {"name": Identifier(field.attribute.name), "value": Identifier(f"v{place}")}
        for place, field in enumerate(drawn.recoding.coded.kept)
    ]
    engine.run("methods/clustering/condensation/create_judged", judged=judged, witness=witness, group=group, kept=kept)
    engine.analyze(judged)
    workspace.drop(witness)
    return judged, group.name


def _group(recoding: Recoding) -> Identifier:
    coded = recoding.coded
    return group_column([field.attribute.name for field in (*coded.quasi_identifiers, *coded.kept)])


def group_column(names: Iterable[str]) -> Identifier:
    """Name the column of groups beside columns of a release with these names."""
    return free_name("group_number", names)


def create_witness(engine: Engine, workspace: Workspace, drawn: CondensedRows) -> Relation:
    """Create a table of raw values with the group that each source row went to."""
    table, coded = workspace.table("witnessed"), drawn.recoding.coded
    engine.run(
        "methods/clustering/condensation/create_witness",
        witnessed=table,
        witness=coded.witness,
        assigned=drawn.groups,
        words=coded.word_columns,
    )
    engine.analyze(table, columns=[Identifier("leaf")])
    return table


def _numbers(engine: Engine, drawn: CondensedRows) -> list[tuple[int, Expression, Expression]]:
    """The places of numbers among quasi-identifiers, with the released and the raw value."""
    return [
        (
            place,
            macro("verification.in_release", cell.column),
            double_of(engine.render, macro("verification.in_witness", Identifier(f"r{place}")), shown.kind),
        )
        for place, (cell, shown) in enumerate(zip(drawn.recoding.cells, drawn.recoding.shown, strict=True))
        if place in drawn.numbers
    ]


def _measure_spread(
    engine: Engine, drawn: CondensedRows, witness: Relation, grouped: Relation, group: Identifier
) -> tuple[int, int]:
    """Count rows of groups whose numbers are not spread about the raw means as the raw ones are, and rows off a grid.

    A grid that is too fine, or too coarse, for the raw numbers counts all rows.
    """
    strayed = unrounded = 0
    for place, shown, raw in _numbers(engine, drawn):
        one = drawn.numbers[place]
        astray, *extent = engine.query_one(
            "methods/clustering/count_strayed",
            witness=witness,
            staged=grouped,
            group=group,
            raw=raw,
            shown=shown,
            floor=one.floor,
            grid=RedactedValue(0.0) if one.grid is None else one.grid,
            numbers=len(drawn.numbers),
        )
        strayed += int(astray)
        off = count_off_grid(engine, grouped, shown, one.grid, drawn.offset, *map(float, extent))
        unrounded += drawn.recoding.coded.source_rows if off is None else off
    return strayed, unrounded


def count_off_grid(
    engine: Engine,
    staged: Relation,
    shown: Expression,
    grid: RedactedValue | None,
    offset: float,
    deviation: float,
    size: float,
) -> int | None:
    """Count staged rows whose number is off its grid; None where the grid does not suit the raw numbers.

    A grid must hide the steps of draws and be no coarser than that, or the size of doubles, takes; see
    `releases.synthetic`. A number without deviation has no grid, and no row is off it.

    deviation: the greatest of a group. size: the distance from 0 of the number that is farthest.
    """
    if grid is None:
        return 0
    coarsest = max(COARSEST * deviation, COARSEST_OF_SIZE * size)
    if not FINEST * deviation <= float(grid.value) <= coarsest:
        return None
    return int(
        engine.query_one("methods/clustering/count_unrounded", staged=staged, shown=shown, grid=grid, offset=offset)[0]
    )


def _mixed(engine: Engine, target: str, drawn: CondensedRows, witness: Relation) -> int:
    """Count rows of groups that hold several values of the target."""
    kept = [field.attribute for field in drawn.recoding.coded.kept]
    place, column = next((place, one.column) for place, one in enumerate(kept) if one.name == target)
    keys = exact(engine, column, Markup(Identifier(f"v{place}")))
    (mixed,) = engine.query_one("methods/clustering/condensation/count_mixed", witness=witness, keys=keys)
    return int(mixed)


def _unequal(engine: Engine, drawn: CondensedRows, witness: Relation, grouped: Relation, group: Identifier) -> int:
    """Count rows by which groups differ in their kept values, or in one of their categories."""
    base = [(macro("verification.in_release", group), macro("verification.in_witness", Identifier("leaf")))]
    kept = [(field.attribute.column, f"v{place}") for place, field in enumerate(drawn.recoding.coded.kept)]
    sides = [kept]
    for place, shown in enumerate(drawn.recoding.shown):
        if place not in drawn.numbers:
            sides.append([(shown.axis.field.attribute.column, f"r{place}")])
    total = 0
    for columns in sides:
        keys = list(base)
        for column, raw in columns:
            published = exact(engine, column, macro("verification.in_release", Identifier(column.name)))
            seen = exact(engine, column, macro("verification.in_witness", Identifier(raw)))
            keys += zip(published, seen, strict=True)
        total += classes_equal(engine, witness, grouped, keys)
    return total
