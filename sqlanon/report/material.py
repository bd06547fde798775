"""What a report is made from: the record of a run, its tree, and what was tried with other k. All of it aggregates."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlanon.catalog import Catalog, ReleaseRecord, Run
from sqlanon.exploring.trials import Point, recorded_points
from sqlanon.rules.first_levels import Node, first_levels
from sqlanon.rules.store import read_rules


@dataclass(frozen=True)
class Material:
    """A recorded run.

    policy: as it was recorded. result: what `run --json` printed, empty where the run came to none.
    tree: the first levels of its partition tree, if the catalog holds one. points: this run and others with other k.
    """

    run: Run
    policy: dict[str, Any]
    result: dict[str, Any]
    releases: tuple[ReleaseRecord, ...]
    tree: Node | None
    points: tuple[Point, ...]


def collect(catalog: Catalog, name: str) -> Material:
    """Read a run, named as for `Catalog.run`; raises PolicyError if there is none."""
    run = catalog.run(name)
    return Material(
        run=run,
        policy=json.loads(run.policy),
        result=dict(run.result or {}),
        releases=tuple(catalog.releases(run.id)),
        tree=_tree(catalog, run),
        points=recorded_points(run, catalog.trials(run.source)) if run.result else (),
    )


def _tree(catalog: Catalog, run: Run) -> Node | None:
    if catalog.rules(run.id) is None:
        return None
    return first_levels(catalog.store, read_rules(catalog, run.id))
