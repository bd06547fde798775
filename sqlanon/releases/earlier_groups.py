"""The groups that persons are in by all that was entered in their account, divided by the classes of a new release.

Here they are counted before the release is staged, so that its classes can be merged where such a group would be too
small or too alike. The transaction that publishes holds the release against the account again, and decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.catalog import Catalog
from sqlanon.catalog.accounts import ReleaseAccount
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.domains import Sensitive, create_domains
from sqlanon.engines.base import Engine
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.models.solver import settle_groups
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.staging.partition import Partition
from sqlanon.staging.recode import Recoding
from sqlanon.values.expressions import text_of_person
from sqlanon.work.workspace import Workspace

_LEAF, _REGION, _NODE = (Identifier(name) for name in ("leaf", "region", "node"))


@dataclass(frozen=True)
class FailingGroups:
    """The groups of a release's persons: a work table `(number, node, odd, earlier, n)`, and the numbers that fail.

    failing: `(class)`, the numbers of groups that are too small, or violate a model. count: how many these are.
    nodes: the classes of the release. absent: the persons of earlier groups whom the release lacks, and who are too
        few.
    """

    groups: Relation
    failing: Relation
    count: int
    nodes: int
    absent: int


@dataclass(frozen=True)
class Remainder:
    """Persons whom no coarsening of the release protects, as they are too few, or too alike, even in a single class.

    came: those who are in no earlier release. stayed: those of earlier groups. left: those whom the release lacks.
    uniform: those in groups that violate a model of sensitive values.
    """

    came: int
    stayed: int
    left: int
    uniform: int

    @property
    def is_empty(self) -> bool:
        return not any(vars(self).values())


@dataclass(frozen=True)
class EarlierGroups:
    """The coded rows of a run, with the groups that their persons are in already.

    models: those of sensitive values; k: the least number of persons of a group.
    rows: a work table `(p0, p1, …, earlier)`, of every coded row the number of its person's group, 0 for none.
    sizes: a work table `(earlier, n)` of all earlier groups.
    """

    engine: Engine
    workspace: Workspace
    coded: CodedTable
    models: tuple[PrivacyModel, ...]
    k: int
    rows: Relation
    sizes: Relation
    sensitive: tuple[Sensitive, ...]

    @classmethod
    def create(
        cls,
        engine: Engine,
        workspace: Workspace,
        coded: CodedTable,
        person: str,
        account: tuple[Catalog, ReleaseAccount],
        models: Sequence[PrivacyModel],
        k: int,
    ) -> EarlierGroups:
        """Look up the person of every row in the account; person: the column that tells persons apart."""
        catalog, entered = account
        rows, sizes = workspace.table("earlier_rows"), workspace.table("earlier_sizes")
        known = {"account": entered.id, "persons": catalog.account_tables["account_persons"]}
        engine.run(
            "releases/earlier/create_rows",
            rows=rows,
            witness=coded.witness,
            words=coded.word_columns,
            person=text_of_witness(engine, coded, person),
            accounts=catalog.account_tables["accounts"],
            **known,
        )
        engine.run("releases/earlier/create_sizes", sizes=sizes, **known)
        engine.analyze(rows, sizes)
        judging = tuple(one for one in models if one.attribute is not None and one.scope == "class")
        domains = create_domains(engine, workspace, coded, judging, rows)  # trees use the coded rows up
        return cls(engine, workspace, coded, judging, k, rows, sizes, domains)

    def hold(self, recoding: Recoding) -> bool:
        """Tell whether every group that the classes of a recoding make is large and diverse enough."""
        return self._hold(recoding.partition.assigned, recoding.regions, _REGION)

    def hold_partition(self, partition: Partition) -> bool:
        """Tell the same of a partition, of which each leaf is a class."""
        return self._hold(partition.assigned, partition.leaves, _LEAF)

    def _hold(self, assigned: Relation | Expression, classes: Relation | Expression, node: Identifier) -> bool:
        located = self.locate(assigned)
        judged = located.list_failing(classes, node)
        self.workspace.drop(judged.groups, judged.failing, located.table)
        return not judged.count and not judged.absent

    def find_remainder(self, assigned: Relation | Expression) -> Remainder:
        """Count the persons whom not even a single class of all rows protects."""
        located = self.locate(assigned)
        judged = located.list_failing(located.table, None)
        values = {"groups": judged.groups, "failing": judged.failing, "k": self.k}
        came, stayed, uniform = self.engine.query_one("releases/earlier/count_remainder", **values)
        self.workspace.drop(judged.groups, judged.failing, located.table)
        return Remainder(int(came), int(stayed), judged.absent, int(uniform))

    def locate(
        self, assigned: Relation | Expression, routes: Relation | None = None, *, is_odd: bool = False
    ) -> LocatedGroups:
        """Count the rows of each leaf by earlier groups and sensitive values.

        assigned: `(leaf, p0, p1, …)`. routes: `(place, node)`, where leaves are places of these nodes. is_odd: whether
        `assigned` has a column `odd`, of rows that are in a class of their own beside others of their leaf.
        """
        table = self.workspace.table("located")
        self.workspace.drop(table)
        self.engine.run(
            "releases/earlier/create_located",
            located=table,
            rows=self.rows,
            assigned=assigned,
            routes=routes,
            is_odd=is_odd,
            words=self.coded.word_columns,
            values=[
                {"word": one.word, "mask": one.mask, "column": Identifier(f"s{place}")}
                for place, one in enumerate(self.sensitive)
            ],
        )
        self.engine.analyze(table)
        return LocatedGroups(self, table)


@dataclass(frozen=True)
class LocatedGroups:
    """Earlier groups in leaves: a work table `(leaf, odd, earlier, s0, s1, …, n)`."""

    earlier: EarlierGroups
    table: Relation

    def list_failing(self, classes: Relation | Expression, node: Identifier | None = _NODE) -> FailingGroups:
        """List the groups that are too small, or violate a model, where leaves are put together to classes.

        classes: each leaf with the class that it is of, in the column `node`; None for a single class of all rows.
        """
        earlier, engine = self.earlier, self.earlier.engine
        groups, failing = (earlier.workspace.table(name) for name in ("earlier_groups", "failing_groups"))
        earlier.workspace.drop(groups, failing)
        of_classes: dict[str, Any] = {"located": self.table, "classes": classes, "node": node}
        engine.run("releases/earlier/create_groups", groups=groups, **of_classes)
        engine.analyze(groups)
        measures = self._measure(groups, of_classes)
        engine.run("releases/earlier/list_failing", failing=failing, groups=groups, k=earlier.k, measures=measures)
        counted = engine.query_one(
            "releases/earlier/count_failing", failing=failing, groups=groups, sizes=earlier.sizes, k=earlier.k
        )
        return FailingGroups(groups, failing, *map(int, counted))

    def _measure(self, groups: Relation, of_classes: dict[str, Any]) -> list[Expression]:
        engine, named = self.earlier.engine, {one.name: place for place, one in enumerate(self.earlier.sensitive)}

        def groups_of(model: PrivacyModel) -> Groups:
            place = named[str(model.attribute)]
            one, column = self.earlier.sensitive[place], Identifier(f"s{place}")
            counted = engine.render("releases/earlier/count_values", groups=groups, column=column, **of_classes)
            return Groups(
                classes=macro("relations.numbered_classes", groups),
                avs=macro("relations.subquery", counted),
                domain=Markup(one.domain),
                rows=self.earlier.coded.source_rows,
                height=one.height,
            )

        models = settle_groups(engine, self.earlier.models, groups_of)
        return [model.measure(engine.render, groups_of(model)) for model in models]


def text_of_witness(engine: Engine, coded: CodedTable, person: str) -> Expression:
    """The text that the person of a witness is known by."""
    kept = [field.attribute.name for field in coded.kept]
    name = f"v{len(kept) if coded.person is not None else kept.index(person)}"
    (column,) = [one for one in engine.columns(coded.witness) if one.name == name]
    return text_of_person(engine.render, macro("codes.in_source", Identifier(name)), column)
