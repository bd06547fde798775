"""Releases of numbered classes, of which several may have the same labels, with rows of nobody among those of persons.

Rows of persons are staged as those of any release. Counterfeits join them, in the same order, so that nothing tells
them apart; all claims about the others are checked without them.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.engines.star import CLASS_NUMBER
from sqlanon.plan.plan import Plan
from sqlanon.releases.base import Judged
from sqlanon.releases.generalized import Regions
from sqlanon.results.measures import Check
from sqlanon.sql import Identifier, Relation, macro
from sqlanon.staging.cells import Cell
from sqlanon.staging.partition import Partition
from sqlanon.staging.recode import cell_name, create_regions
from sqlanon.staging.staging import Staged
from sqlanon.values.expressions import exact
from sqlanon.work.session import Session
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class NumberedClasses(Regions):
    """Classes with a number of their own.

    counterfeits: a work table `(leaf, raw)`, a row for each row of nobody: its class, and its value of `attribute`.
    """

    counterfeits: Relation = field(kw_only=True)
    attribute: str = field(kw_only=True)

    @classmethod
    def number(
        cls,
        engine: Engine,
        workspace: Workspace,
        coded: CodedTable,
        partition: Partition,
        sets: Relation,
        counterfeits: Relation,
        attribute: str,
    ) -> NumberedClasses:
        """Write down what classes show, and number them by their labels, and then by their values.

        sets: a work table `(leaf, shown)`, the values of each class as one text.
        """
        recoding = create_regions(engine, workspace, coded, partition)
        numbered, place = workspace.table("numbered_regions"), len(recoding.cells)
        engine.run(
            "methods/invariance/number_classes",
            numbered=numbered,
            regions=recoding.regions,
            sets=sets,
            number=cell_name(place),
        )
        workspace.drop(recoding.regions, sets)
        engine.analyze(numbered)
        cell = Cell(Identifier(CLASS_NUMBER), macro("rows.cell", cell_name(place)), ())
        return cls(
            replace(recoding, regions=numbered, cells=(*recoding.cells, cell)),
            counterfeits=counterfeits,
            attribute=attribute,
        )

    @contextlib.contextmanager
    def stage(self, session: Session, plan: Plan, workspace: Workspace, *, replace: bool) -> Iterator[Staged]:
        """Stage the rows of persons, and then those of nobody among them."""
        with super().stage(session, plan, workspace, replace=replace) as staged:
            engine, added = session.engine, workspace.table("with_counterfeits")
            columns = engine.columns(staged.final)
            (kept,) = [column for column in columns if column.name == self.attribute]
            order = [Markup(Identifier(CLASS_NUMBER)), *exact(engine, kept, Markup(Identifier(kept.name)))]
            with engine.transaction():
                engine.run(
                    "methods/invariance/add_counterfeits",
                    added=added,
                    staged=staged.final,
                    columns=[Identifier(column.name) for column in columns],
                    **self._of_nobody([column.name for column in columns]),
                )
                engine.run("methods/invariance/empty_staged", staged=staged.final)
                engine.run("methods/invariance/stage_sorted", staged=staged.final, added=added, order=order)
            workspace.drop(added)
            engine.analyze(staged.final)
            yield staged

    def _of_nobody(self, columns: Sequence[str]) -> dict[str, Any]:
        """Name what a counterfeit shows in each column of the release."""
        cells = {cell.column.name: cell_name(number) for number, cell in enumerate(self.recoding.cells)}
        shown = [{"cell": cells.get(name)} for name in columns]
        return {"counterfeits": self.counterfeits, "regions": self.recoding.regions, "shown": shown}

    def check_claims(self, engine: Engine, workspace: Workspace, plan: Plan, staged: Staged) -> dict[str, Check]:
        """Check the rows of persons as those of any release, and that all others are the counterfeits."""
        genuine = workspace.table("genuine")
        columns = [column.name for column in engine.columns(staged.final)]
        engine.run(
            "methods/invariance/create_genuine",
            genuine=genuine,
            staged=staged.final,
            columns=[Identifier(name) for name in columns],
            **self._of_nobody(columns),
        )
        counts = [engine.query_one("count_rows", table=one)[0] for one in (staged.final, genuine, self.counterfeits)]
        without = copy.copy(staged)
        without.relation = without.final = genuine
        checks = super().check_claims(engine, workspace, plan, without)
        workspace.drop(genuine)
        everything, persons, counterfeits = map(int, counts)
        checks["counterfeits_counted"] = Check(abs(everything - persons - counterfeits), everything)
        return checks

    @contextlib.contextmanager
    def judged(
        self, engine: Engine, workspace: Workspace, plan: Plan, staged: Staged, *, whole: bool = False
    ) -> Iterator[Judged]:
        """Give the rows of persons, and the staged ones, whose classes have rows of nobody too."""
        with super().judged(engine, workspace, plan, staged, whole=whole) as judged:
            yield replace(judged, published=staged.final)
