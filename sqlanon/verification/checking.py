"""The checks of a staged release beside its privacy models: nothing lost, nothing altered, every region true.

They read the staged rows and what was captured of the source, in raw values. Which region a source row went to is
taken from the search as a claim, and the check is whether that region, as published, covers the row, and whether the
classes hold just the kept values of the source rows that went to them. Labels of hierarchies are those that the policy
gives the raw values: no table of hierarchies that the search used is read.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.engines.star import CLASS_NUMBER, Star
from sqlanon.hierarchies.limits import Limits
from sqlanon.plan.plan import Plan
from sqlanon.policy import Role
from sqlanon.results.measures import Check
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.staging.recode import Recoding, cell_name, create_witness, end_name, rows_repeat
from sqlanon.staging.staging import Staged
from sqlanon.staging.star import order_of_cells
from sqlanon.values.expressions import exact
from sqlanon.verification.covered_rows import CoveredRows
from sqlanon.verification.limited import check_limits
from sqlanon.verification.policy_labels import Ladder, load_lines, with_length
from sqlanon.verification.release_checks import (
    Claims,
    ReleasedRegion,
    classes_equal,
    columns_equal,
    multisets_equal,
    rows_add_up,
)
from sqlanon.work.workspace import Workspace


def check_release(
    engine: Engine, workspace: Workspace, plan: Plan, recoding: Recoding, staged: Staged
) -> dict[str, Check]:
    """All checks by name, each done however the others turn out.

    Where the release hides whose its rows are, the source rows stay as a work table, `witness_of`, to count persons.
    """
    coded = recoding.coded
    checks = check_kept(engine, plan, recoding, staged)
    rows = create_witness(engine, workspace, recoding)
    engine.analyze(rows, columns=[Identifier("leaf")])
    cells = [*(cell_name(i) for i in range(len(recoding.cells))), *recoding.ends]
    claims = Claims(rows, recoding.regions, cells, coded.witness_is_sample, recoding.partition.suppressed_leaf)
    (seen,) = engine.query_one("verification/count_seen", witness=claims.witness)
    ladders = _ladders(engine, workspace, plan, recoding)
    whole = not coded.witness_is_sample
    limited = [
        check_limits(engine, plan, field.attribute, coded.witness, f"r{place}", whole=whole)
        for place, field in enumerate(coded.quasi_identifiers)
    ]
    regions = _regions(plan, recoding, ladders, [one.limits for one in limited])
    outside = CoveredRows(claims, regions).with_rows(engine, int(seen)) + _unseen(engine, recoding, seen)
    outside += sum(one.violations for one in limited)
    checks["regions_contain"] = Check(outside, seen, sample=coded.witness_is_sample)
    if not coded.witness_is_sample:
        checks["classes_equal"] = Check(count_misplaced(engine, claims, staged.relation, recoding), seen)
    workspace.drop(*(ladder.lines for ladder in ladders if ladder is not None and ladder.lines is not None))
    if coded.person is None:
        workspace.drop(rows)
    return checks


def check_kept(engine: Engine, plan: Plan, recoding: Recoding, staged: Staged) -> dict[str, Check]:
    """Check that no row and no kept value is missing or altered, whatever the release shows beside them."""
    coded, omitted = recoding.coded, recoding.partition.omitted
    (rows,) = engine.query_one("count_rows", table=staged.relation)
    kept = [attribute.column for attribute in plan.kept]
    checks = {
        "rows_add_up": Check(rows_add_up(coded.source_rows, rows, omitted), rows),
        "columns_equal": Check(_other_columns(engine, plan, recoding, staged), rows),
    }
    if staged.star is not None:
        checks["classes_numbered"] = Check(_misnumbered(engine, staged.star, recoding), rows)
    if coded.multiset is not None:
        violations = multisets_equal(engine, coded.multiset, staged.relation, kept, omitted)
        checks["values_equal"] = Check(violations, rows)
    return checks


def _misnumbered(engine: Engine, star: Star, recoding: Recoding) -> int:
    """Classes whose number is not their place by what they show, rows without a class, and classes without rows."""
    (violations,) = engine.query_one(
        "verification/count_misnumbered",
        rows=star.rows,
        classes=star.classes,
        number=Identifier(CLASS_NUMBER),
        order=order_of_cells(engine, recoding, [Markup(cell.column) for cell in recoding.cells]),
    )
    return int(violations)


def _other_columns(engine: Engine, plan: Plan, recoding: Recoding, staged: Staged) -> int:
    """The columns that are missing, too many, or not what the cells and the kept attributes make, in that order.

    Types are those of the rows' own database: another one may call them otherwise, and what is carried over to it is
    compared value by value.
    """
    shown = {column.name: column.type for column in engine.columns(recoding.regions)}
    types = {cell.column.name: shown.get(cell_name(number).name) for number, cell in enumerate(recoding.cells)}
    expected = []
    for attribute in plan.attributes:
        if attribute.role is Role.QUASI_IDENTIFIER:
            expected += [(column.name, types[column.name]) for column in recoding.columns_of(attribute.name)]
        else:
            expected.append((attribute.column.name, attribute.column.type))
    expected += [(column.name, types[column.name]) for column in recoding.own_columns]
    columns = [(column.name, column.type) for column in engine.columns(staged.relation)]
    names = [name for name, _ in expected]
    return columns_equal(expected, columns) + columns_equal(
        names, [column.name for column in staged.engine.columns(staged.final)]
    )


def _ladders(engine: Engine, workspace: Workspace, plan: Plan, recoding: Recoding) -> list[Ladder | None]:
    """The hierarchies of the quasi-identifiers as the policy has them, and the levels that the release may show."""
    levels = recoding.partition.levels
    ladders: list[Ladder | None] = []
    for place, field in enumerate(recoding.coded.quasi_identifiers):
        attribute = field.attribute
        if attribute.hierarchy is None:
            ladders.append(None)
            continue
        # a sample may lack the longest text: there the height of the hierarchy is taken for it, if no text is longer
        coded, claimed = recoding.coded, field.coding.hierarchy
        least = claimed.height if claimed is not None and coded.witness_is_sample else 1
        spec = with_length(engine, attribute.hierarchy, attribute.column, coded.witness, f"r{place}", least)
        ladder = Ladder(spec, levels=None if levels is None else levels[place])
        lines = workspace.table("lines", place)
        ladders.append(load_lines(engine, ladder, attribute.column, plan.base_directory, lines))
    return ladders


def _unseen(engine: Engine, recoding: Recoding, seen: int) -> int:
    """The rows of a sample that went to no class, where none may be left out."""
    if not recoding.coded.witness_is_sample or recoding.partition.omitted:
        return 0
    (rows,) = engine.query_one("count_rows", table=recoding.coded.witness)
    return int(rows) - seen


def _regions(
    plan: Plan, recoding: Recoding, ladders: Sequence[Ladder | None], limits: Sequence[Limits]
) -> list[ReleasedRegion]:
    cells, ends = itertools.count(), itertools.count()
    whole = not recoding.boxed and not recoding.coded.witness_is_sample
    return [
        ReleasedRegion(
            shown.axis.field.attribute.column,
            f"r{place}",
            tuple(cell_name(next(cells)).name for _ in shown.cells),
            shown.show,
            ladders[place],
            tuple(end_name(next(ends)).name for _ in shown.ends) if recoding.has_ends else (),
            recoding.boxed and not shown.ends,
            exact_ranges=whole and not shown.axis.leveled,
            limits=limits[place],
            hides_nulls=plan.policy.attributes[shown.name].hides_nulls,
        )
        for place, shown in enumerate(recoding.shown)
    ]


def count_misplaced(engine: Engine, claims: Claims, staged: Relation, recoding: Recoding) -> int:
    """Count rows of published classes, with their kept values, that differ from the source rows that went there.

    Equal source rows of a class are counted first where they are many: fewer rows are given what their class shows.
    """
    cells = [(Markup(cell.column), Markup(cell_name(number))) for number, cell in enumerate(recoding.cells)]
    kept = kept_values(engine, recoding.coded)
    if not rows_repeat(engine, recoding):
        return classes_equal(engine, claims.witness, staged, [*cells, *kept])
    names = [Markup(Identifier(f"k{number}")) for number in range(len(kept))]
    values = [(seen, name) for (_, seen), name in zip(kept, names, strict=True)]
    shown = [cell_name(number) for number in range(len(recoding.cells))]
    witness = macro("verification.counted_with_cells", claims.rows, claims.classes, shown, values)
    published = [published for published, _ in kept]
    return classes_equal(engine, witness, staged, [*cells, *zip(published, names, strict=True)], counted=True)


def kept_values(engine: Engine, coded: CodedTable) -> list[tuple[Expression, Expression]]:
    """Write the kept values as the release has them, and as the source rows do."""
    values: list[tuple[Expression, Expression]] = []
    for number, field in enumerate(coded.kept):
        column = field.attribute.column
        published = exact(engine, column, Markup(Identifier(column.name)))
        values += zip(published, exact(engine, column, Markup(Identifier(f"v{number}"))), strict=True)
    return values
