"""Synthetic rows from the statistics of groups that a stream has joined, staged and checked without a source row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlanon.engines.base import Engine
from sqlanon.errors import ProtectionError
from sqlanon.methods.clustering.releases.synthetic import LEAST_DEVIATION, OFFSET, choose_grids, create_rows
from sqlanon.methods.clustering.verify_condensed import count_off_grid
from sqlanon.results.measures import Check
from sqlanon.sql import Identifier, RedactedValue, Relation, macro
from sqlanon.staging.staging import StagedTable
from sqlanon.work.publish import guard_staging
from sqlanon.work.workspace import Workspace

CONSTANT = 1e-12  # of a number's variance over all rows: what counts as none in a group, as sums are that exact


@dataclass(frozen=True)
class GroupSizes:
    """Groups, their rows, and those of the smallest and the largest."""

    groups: int
    rows: int
    smallest: int
    largest: int


def measure_groups(
    engine: Engine, groups: Relation, numbers: Sequence[Mapping[str, Any]]
) -> tuple[GroupSizes, list[tuple[float, float]]]:
    """Count groups and rows; measure each number's mean and variance over all rows."""
    row = engine.query_one("methods/clustering/streams/measure_groups", groups=groups, numbers=numbers)
    measured = [(float(row[place]), max(0.0, float(row[place + 1]))) for place in range(4, len(row), 2)]
    return GroupSizes(*map(int, row[:4])), measured


@dataclass(frozen=True)
class StreamedRows:
    """Synthetic rows of the groups of a stream.

    groups: `(group_number, n, m0, …, s0_0, …)`. regions: the drawn rows. numbers: the columns, for statements.
    """

    sizes: GroupSizes
    groups: Relation
    regions: Relation
    numbers: list[dict[str, Any]]

    @classmethod
    def draw(cls, engine: Engine, workspace: Workspace, groups: Relation, names: Sequence[str]) -> StreamedRows:
        """Draw as many rows for each group as it has.

        Raises ProtectionError where all rows have the same numbers.
        """
        numbers: list[dict[str, Any]] = [
            {"number": place, "name": Identifier(name), "cell": Identifier(f"c{place}")}
            for place, name in enumerate(names)
        ]
        sizes, measured = measure_groups(engine, groups, numbers)
        if sizes.groups < 2:
            raise ProtectionError("The job has one group, whose rows would all be drawn alike; wait for more rows.")
        if not any(variance for _, variance in measured):
            raise ProtectionError("All rows have the same numbers, and synthetic rows would show them.")
        for one, (mean, variance) in zip(numbers, measured, strict=True):
            one["mean"] = RedactedValue(mean)
            one["floor"] = RedactedValue(LEAST_DEVIATION * math.sqrt(variance))
            one["least"] = RedactedValue(CONSTANT * variance)
        factors, members, regions = map(workspace.table, ("factors", "members", "regions"))
        engine.run("methods/clustering/streams/create_factors", factors=factors, groups=groups, numbers=numbers)
        engine.run("methods/clustering/streams/create_members", members=members, groups=groups)
        engine.analyze(factors, members)
        choose_grids(engine, factors, numbers)
        create_rows(engine, regions, members=members, factors=factors, numbers=numbers, names=names)
        workspace.drop(members, factors)
        return cls(sizes, groups, regions, numbers)

    def stage(self, engine: Engine, workspace: Workspace, release: Relation, *, replace: bool) -> StagedTable:
        """Write the rows beside the release's place."""
        final = workspace.staging(release, engine)
        with engine.transaction():
            engine.run(
                "methods/clustering/streams/stage_rows", staging=final, regions=self.regions, numbers=self.numbers
            )
            grants = guard_staging(engine, final)
        return StagedTable(final, engine, final, release, grants, replace)

    def check(self, engine: Engine, workspace: Workspace, staged: Relation) -> dict[str, Check]:
        """Check the staged rows against the statistics: as many, spread as these say, and on their grids."""
        grouped, group = workspace.table("grouped"), Identifier("sqlanon_group")
        cells = [{"name": one["name"], "cell": one["cell"], "is_number": True} for one in self.numbers]
        engine.run(
            "methods/clustering/condensation/create_staged",
            grouped=grouped,
            staged=staged,
            regions=self.regions,
            cells=cells,
            group=group,
        )
        (seen,) = engine.query_one("count_rows", table=staged)
        strayed = unrounded = 0
        for place, one in enumerate(self.numbers):
            shown, grid = macro("relations.column", Identifier("s"), one["name"]), one["grid"]
            astray, *extent = engine.query_one(
                "methods/clustering/streams/count_strayed",
                groups=self.groups,
                staged=grouped,
                group=group,
                shown=shown,
                mean_column=Identifier(f"m{place}"),
                variance_column=Identifier(f"s{place}_{place}"),
                floor=one["floor"],
                least=one["least"],
                grid=RedactedValue(0.0) if grid is None else grid,
                numbers=len(self.numbers),
            )
            strayed += int(astray)
            off = count_off_grid(engine, grouped, shown, grid, OFFSET, *map(float, extent))
            unrounded += int(seen) if off is None else off
        workspace.drop(grouped)
        return {
            "rows_equal": Check(abs(int(seen) - self.sizes.rows), int(seen)),
            "groups_spread": Check(strayed, int(seen)),
            "numbers_rounded": Check(unrounded, int(seen)),
        }
