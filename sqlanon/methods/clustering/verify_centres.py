"""The checks of a staged release of centres: nothing lost, nothing altered, every value the centre of its cluster.

They read the staged rows and what was captured of the source, in raw values. Which cluster a source row went to is
taken from the search as a claim, and the check is whether the centres, as published, are those of the raw values of
their clusters, and whether the published classes hold just the kept values of the rows that went to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.hierarchies import scratch_hierarchies
from sqlanon.plan.plan import Plan
from sqlanon.policy import Hierarchy, Show
from sqlanon.results.measures import Check
from sqlanon.sql import Expression, Identifier, RedactedValue, Relation, Text
from sqlanon.staging.cells import Shown
from sqlanon.staging.labels import EVERYTHING, NULL
from sqlanon.staging.recode import Recoding, cell_name, witness_of
from sqlanon.staging.staging import Staged
from sqlanon.values.expressions import comparable, double_of, text_of
from sqlanon.verification.checking import check_kept, count_misplaced
from sqlanon.verification.model_hierarchies import count_wrong_labels
from sqlanon.verification.release_checks import Claims
from sqlanon.work.workspace import Workspace


def check_clusters(
    engine: Engine, workspace: Workspace, plan: Plan, recoding: Recoding, staged: Staged
) -> dict[str, Check]:
    """All checks by name, each done however the others turn out; see `checking.check_release`.

    What source rows show stays as a work table, `witness_of`, to be measured.
    """
    checks = check_kept(engine, plan, recoding, staged)
    witness = create_witness(engine, workspace, recoding)
    (seen,) = engine.query_one("count_rows", table=witness)
    rows, omitted = recoding.coded.source_rows, recoding.partition.omitted
    beyond = max(0, omitted - plan.policy.suppressible(rows))
    checks["rows_add_up"] = replace(checks["rows_add_up"], violations=checks["rows_add_up"].violations + beyond)
    checks["centres_true"] = Check(_untrue(engine, plan, recoding, witness) + abs(rows - omitted - seen), seen)
    checks["classes_equal"] = Check(
        count_misplaced(engine, Claims(witness, recoding.regions), staged.relation, recoding), seen
    )
    if plan.policy.algorithm.kept_statistic == "variance":
        unequal = _count_unequal(engine, recoding, witness, staged.relation)
        checks["variances_equal"] = Check(unequal * max(seen, 1), seen)  # of such a column every row
    return checks


def create_witness(engine: Engine, workspace: Workspace, recoding: Recoding) -> Relation:
    """Create a table of raw values beside the cluster that each row went to, and what the release shows for it.

    Rows with the same words are equal, and may be in several clusters: the first of them is taken for the first.
    """
    table, coded = witness_of(workspace), recoding.coded
    engine.run(
        "methods/clustering/search/create_witness",
        witnessed=table,
        witness=coded.witness,
        assigned=recoding.partition.assigned,
        regions=recoding.regions,
        words=coded.word_columns,
        cells=[cell_name(number) for number in range(len(recoding.cells))],
    )
    engine.analyze(table, columns=[Identifier("leaf")])
    return table


def _untrue(engine: Engine, plan: Plan, recoding: Recoding, witness: Relation) -> int:
    """Count the rows of clusters that show what is not the centre of their raw values, or not the label of these.

    A row counts once for each column that is wrong.
    """
    given = {
        number: (column.attribute.column, spec)
        for number, column in enumerate(recoding.coded.quasi_identifiers)
        if (spec := plan.policy.attributes[column.attribute.name].hierarchy) is not None
    }
    untrue = count_untrue_ancestors(engine, recoding.coded.witness, witness, given) if given else 0
    numbers: list[dict[str, Expression]] = []
    for number, shown in enumerate(recoding.shown):
        column = shown.axis.field.attribute.column
        raw, cell = Markup(Identifier(f"r{number}")), Markup(cell_name(number))
        if number in given:
            continue
        if column.kind.is_numeric and plan.policy.attributes[shown.name].order is None:
            numbers.append({"raw": double_of(engine.render, raw, column.kind), "cell": cell})
        else:
            untrue += _count_untrue_categories(engine, plan, shown, witness, (raw, cell))
    if numbers:
        is_rescaled = plan.policy.algorithm.kept_statistic == "variance"
        (rows,) = engine.query_one(
            "methods/clustering/count_untrue_centres", witness=witness, numbers=numbers, is_rescaled=is_rescaled
        )
        untrue += int(rows)
    return untrue


def _count_unequal(engine: Engine, recoding: Recoding, witness: Relation, staged: Relation) -> int:
    """Count the columns of numbers whose mean or variance is not that of the raw values."""
    numbers = [
        {
            "raw": double_of(engine.render, Markup(Identifier(f"r{number}")), shown.kind),
            "published": Identifier(shown.name),
        }
        for number, shown in enumerate(recoding.shown)
        if shown.show is Show.MEAN
    ]
    (unequal,) = engine.query_one(
        "methods/clustering/count_unequal_spreads", witness=witness, staged=staged, numbers=numbers
    )
    return int(unequal)


def _count_untrue_categories(
    engine: Engine, plan: Plan, shown: Shown, witness: Relation, compared: tuple[Expression, Expression]
) -> int:
    """Count the rows that show what is not the median or mode of their cluster; compared: raw value and cell."""
    column, attribute = shown.axis.field.attribute.column, plan.policy.attributes[shown.name]
    values: dict[str, Any] = {"witness": witness}
    if attribute.order is not None:
        template = "methods/clustering/count_untrue_medians"
        raw, cell = (text_of(engine.render, value, column.kind, column.type) for value in compared)
        order = [RedactedValue(text) for text in attribute.order]
        values |= {"raw": raw, "cell": cell, "order": order, "is_convex": attribute.show is Show.CONVEX_MEDIAN}
    else:
        template = "methods/clustering/count_untrue_modes"
        raw, cell = (comparable(engine, value, column.kind) for value in compared)
        values |= {"raw": raw, "cell": cell}
    (untrue,) = engine.query_one(template, **values)
    return int(untrue)


def count_untrue_ancestors(
    engine: Engine, values: Relation, witness: Relation, given: Mapping[int, tuple[Column, Hierarchy]]
) -> int:
    """Count the rows of clusters that show another label than that of the lowest common ancestor of their raw values.

    values: `(r0, r1, …)`, the raw values of all rows of the source.
    witness: `(r0, r1, …, leaf, c0, c1, …)`, those of released rows beside their cluster and what it shows.
    given: column and hierarchy of quasi-identifiers, by number.
    """
    raw = {number: f"r{number}" for number in given}
    specs = {raw[number]: spec for number, (_, spec) in given.items()}
    columns = {raw[number]: replace(column, name=raw[number]) for number, (column, _) in given.items()}
    with scratch_hierarchies(engine, values, specs, columns) as built:
        untrue = 0
        for number, (column, spec) in given.items():
            hierarchy = built[raw[number]]
            untrue += count_wrong_labels(engine, column, spec, hierarchy, number)
            (count,) = engine.query_one(
                "verification/count_untrue_ancestors",
                witness=witness,
                hierarchy=hierarchy.table,
                raw=comparable(engine, Markup(Identifier(raw[number])), column.kind),
                value=comparable(engine, Markup(Identifier("value")), column.kind),
                cell=comparable(engine, Markup(cell_name(number)), Kind.TEXT),
                levels=range(hierarchy.height),
                everything=Text(EVERYTHING),
                null=Text(NULL),
            )
            untrue += int(count)
        return untrue
