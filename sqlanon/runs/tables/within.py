"""The search for classes of a table whose rows refer to rows about people: within the classes of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlanon.algorithms import SearchRequest
from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.algorithms.tree.grouped import partition_within
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.distinct_tuples import Tuples
from sqlanon.encoding.person_tuples import count_persons
from sqlanon.errors import ProtectionError
from sqlanon.plan.plan import Plan
from sqlanon.policy.tables import TablePart
from sqlanon.releases.base import Release
from sqlanon.releases.rules.store_rules import StoredRules
from sqlanon.runs.execution import ClassRun, Encoded
from sqlanon.runs.result_builder import ResultBuilder
from sqlanon.runs.search_source import Search
from sqlanon.runs.tables.references import (
    KeyClasses,
    check_groups,
    create_key_classes,
    group_name,
    place_rows,
    with_group,
)
from sqlanon.sql import Identifier
from sqlanon.staging.partition import Partition
from sqlanon.staging.staging import Staged


class SearchTogether(Search):
    """A search for a table that is released with others: it leaves no rules, by which it would be released alone."""

    def keep_rules(self, run: ClassRun, release: Release) -> StoredRules | None:  # noqa: ARG002
        return None


class SearchWithin(SearchTogether):
    """A partition within the classes of the rows that a table's rows refer to.

    classes: of the staged tables that it may refer to, by name. key_classes: of its own keys, where others refer to it.
    """

    unmatched = 0
    key_classes: KeyClasses | None = None

    def __init__(self, part: TablePart, classes: Mapping[str, KeyClasses]) -> None:
        super().__init__(part.policy.algorithm, SearchOptions())
        self.part = part
        self.classes = classes

    def begin(self, run: ClassRun, release: str) -> None:
        super().begin(run, release)
        self.group = group_name(self.part, [one.name for one in run.plan.coded])

    def placed(self, run: ClassRun, plan: Plan) -> Plan:
        """Leave out what refers to rows that the release does not have; the rest gets the numbers of its groups."""
        run.plan, copy = with_group(run.plan, self.group), run.workspace.table("placed")
        columns = [one.name for one in plan.coded]
        self.unmatched = place_rows(run.engine, plan.source, columns, copy, self.part, self.classes, self.group)
        run.workspace.drop(*([plan.source] if plan.source != run.plan.source else []))
        return replace(with_group(plan, self.group), source=copy)

    def encode(self, run: ClassRun) -> Encoded:
        (rows,) = run.engine.query_one("count_rows", table=run.snapshot.source)
        if not rows:
            raise ProtectionError(
                f"No row of {run.plan.source_name} refers to rows that the release has; nothing of it can be released."
            )
        encoded = super().encode(run)
        return Encoded(encoded.coded, unmatched_rows=self.unmatched)

    def distinct_tuples(self, run: ClassRun, coded: CodedTable) -> Tuples | None:
        return count_persons(run.engine, run.workspace, coded, str(self.part.person), run.models)

    def _search(self, run: ClassRun, request: SearchRequest, encoded: Encoded) -> Any:
        assert request.tuples is not None
        names = (self.group, str(self.part.person))
        partition = partition_within(
            run.engine, run.workspace, encoded.coded, request.tuples, request.models, names, request.report
        )
        self._require_budget(run, encoded, partition)
        return partition

    def _require_budget(self, run: ClassRun, encoded: Encoded, partition: Partition) -> None:
        """Refuse a release that leaves out more rows for the models than the policy allows."""
        rows, most = encoded.coded.source_rows, run.policy.suppressible(encoded.coded.source_rows)
        if partition.suppressed <= most:
            return
        raise ProtectionError(
            f"tables.{self.part.name}: {partition.suppressed:,} of {rows:,} rows are in groups ({self.group}) where too"
            f" few persons have rows, or rows that are too much alike; suppression allows {most:,}. Allow more, or make"
            " the classes of people larger: by a larger k there, or coarser hierarchies."
        )

    def add_notes(self, outcome: ResultBuilder) -> None:
        if self.unmatched:
            refer = "row refers" if self.unmatched == 1 else "rows refer"
            outcome.notes += (
                f"{self.unmatched:,} {refer} to rows that the release does not have, or to those of several persons,"
                " and are left out.",
            )

    def finish(self, run: ClassRun, staged: Staged) -> None:
        """Check the groups by the staged tables, and take their numbers out of what readers will see."""
        run.outcome.checks["references"] = check_groups(run.engine, self.part, staged.final, self.classes, self.group)
        if self.part.key is not None:
            shown = run.release.shown_columns
            self.key_classes = create_key_classes(run.engine, run.workspace, self.part, staged.final, shown)
        staged.engine.run("runs/tables/drop_column", table=staged.final, column=Identifier(self.group))
