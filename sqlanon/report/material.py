"""Material of a report: the record of a run, its tree, and the dry runs with other k. All of it aggregates."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlanon.catalog import Catalog, ReleaseRecord, Run
from sqlanon.releases.rules.store_rules import read_rules
from sqlanon.report.drawing.tree import DrawnNode, first_levels
from sqlanon.results.run_result import RunResult
from sqlanon.runs.choices import Choices, choices_of
from sqlanon.runs.tradeoffs.sweeping import TradeoffPoint, recorded_points


@dataclass(frozen=True)
class Material:
    """A recorded run.

    policy: as it was recorded. result: None where the run came to none.
    choices: what a run that applied rules was told; frozen: the run whose rules they are, which holds their figures.
    tree: the first levels of its partition tree, if the catalog holds one. points: this run and others with other k.
    """

    run: Run
    policy: dict[str, Any]
    result: RunResult | None
    releases: tuple[ReleaseRecord, ...]
    tree: DrawnNode | None
    points: tuple[TradeoffPoint, ...]
    choices: Choices | None = None
    frozen: Run | None = None


def collect(catalog: Catalog, name: str) -> Material:
    """Read a run, named as for `Catalog.run`; raises PolicyError if there is none."""
    run = catalog.run(name)
    choices = choices_of(catalog, run)
    return Material(
        run=run,
        policy=json.loads(run.policy),
        result=run.result,
        releases=tuple(catalog.releases(run.id)),
        tree=None if catalog.rules(run.id) is None else first_levels(catalog.store, read_rules(catalog, run.id)),
        points=recorded_points(run, catalog.dry_runs(run.source)) if run.result is not None else (),
        choices=choices,
        frozen=None if choices is None or choices.applied is None else catalog.run(choices.applied),
    )
