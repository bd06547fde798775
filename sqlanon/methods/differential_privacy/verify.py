"""Checks of releases of noisy counts, from the table, the policy's public domains and the labels that were chosen.

The guarantee itself can't be seen in a table: it is a property of how the table was drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.methods.differential_privacy.public_domain import PublicDomain
from sqlanon.policy.differential_privacy import COUNT
from sqlanon.results.measures import Check
from sqlanon.sql import Identifier, Relation


def check_counts(
    engine: Engine,
    labels: Relation,
    release: Relation,
    plan: PrivatePlan,
    cells: int,
    cut: Mapping[str, Sequence[str]],
    threshold: int | None = None,
) -> dict[str, Check]:
    """Check a release by name: its columns, its cells, and its labels.

    labels: a table of the cut's labels. cells: all combinations of these.
    threshold: the least count that is released; None where all cells are.
    """
    as_rows = plan.algorithm.as_ == "rows"
    shown = [*plan.shown, *([] if as_rows else [COUNT])]
    columns = [column.name for column in engine.columns(release)]
    checks = {
        "columns_declared": Check(int(columns != shown), len(shown)),
        "labels_public": Check(_not_public(plan, cut), sum(map(len, cut.values()))),
    }
    if columns != shown:
        return checks
    asked: dict[str, Any] = {
        "labels": labels,
        "release": release,
        "as_rows": as_rows,
        "count": Identifier(COUNT),
        "attributes": [{"number": number, "name": Identifier(name)} for number, name in enumerate(plan.shown)],
    }
    if threshold is not None:
        shown_cells, foreign, below = engine.query_one(
            "methods/differential_privacy/count_cells_below", threshold=threshold, **asked
        )
        checks["cells_public"] = Check(int(foreign), int(shown_cells))
        checks["cells_above_threshold"] = Check(int(below), int(shown_cells))
        return checks
    foreign, wrong = engine.query_one("methods/differential_privacy/count_wrong_cells", **asked)
    checks["cells_public"] = Check(int(foreign), cells)
    if not as_rows:
        checks["cells_complete"] = Check(int(wrong), cells)
    return checks


def _not_public(plan: PrivatePlan, cut: Mapping[str, Sequence[str]]) -> int:
    """Count the columns whose labels are not groups that cover the declared domain, each place once."""
    domains: dict[str, PublicDomain] = {**plan.domains, **({} if plan.target is None else dict([plan.target]))}
    return sum(not _covers(domain, cut.get(name, ())) for name, domain in domains.items())


def _covers(domain: PublicDomain, labels: Sequence[str]) -> bool:
    """Tell whether labels, in their order, are those of groups that take each other's turn from the first place on."""
    at = 0
    for label in labels:
        node = domain.group(label, at)
        if node is None:
            return False
        at = node.high
    return at == domain.size


def check_drawn(
    engine: Engine,
    labels: Relation,
    release: Relation,
    drawn: Relation,
    plan: PrivatePlan,
    cut: Mapping[str, Sequence[str]],
) -> Check:
    """Check that every cell shows the count that was drawn for it, found by its labels.

    labels: a table of the cut's labels. drawn: a table of cells by number, each with its noisy count.
    """
    different, cells = engine.query_one(
        "methods/differential_privacy/count_other_counts",
        labels=labels,
        release=release,
        drawn=drawn,
        as_rows=plan.algorithm.as_ == "rows",
        count=Identifier(COUNT),
        attributes=[
            {"number": number, "name": Identifier(name), "size": len(cut[name])}
            for number, name in enumerate(plan.shown)
        ],
    )
    return Check(int(different), int(cells))
