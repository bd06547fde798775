"""The checks of a published release against its source, by raw values and the policy alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.coded_table import CodedTable, encode_witness
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.hierarchies.limits import Limits
from sqlanon.plan.checks import released_names
from sqlanon.plan.plan import Plan
from sqlanon.policy import Policy, Recodes, Show
from sqlanon.report.release_audit.placing import ShownField, create_reaches, open_ends, place_rows
from sqlanon.results.measures import Check
from sqlanon.sql import Expression, Identifier, Relation, Text, free_name, macro
from sqlanon.staging.labels import EVERYTHING, NULL
from sqlanon.staging.recode import cell_name
from sqlanon.values.expressions import comparable
from sqlanon.verification.checking import kept_values
from sqlanon.verification.limited import check_limits
from sqlanon.verification.policy_labels import Ladder, load_lines, with_length
from sqlanon.verification.release_checks import Claims, ReleasedRegion, classes_equal, multisets_equal, regions_contain
from sqlanon.work.workspace import Workspace

LINKED = ("regions_contain", "classes_equal", "labels_fit")
"""The checks that need to know in which class a source row is."""


@dataclass(frozen=True)
class Known:
    """Facts about the run that made a release.

    boxed: whether it shows boxes from cut to cut, as stored rules do; None where nothing is known of it.
    budget: the share of rows that it may leave out. rows: how many it released, where that is known of this source.
    counterfeits: rows of nobody among them.
    """

    boxed: bool | None
    budget: float
    rows: int | None = None
    counterfeits: int = 0


@dataclass
class Held:
    """Results of the checks: those that were made, the reasons why others were not, and the number of rows left out."""

    omitted: int | None = None
    checks: dict[str, Check] = field(default_factory=dict)
    unchecked: dict[str, str] = field(default_factory=dict)


def hold_against_source(
    engine: Engine, workspace: Workspace, plan: Plan, release: Relation, known: Known, *, whole: bool = False
) -> Held:
    """Make every check of a release that has the columns which the plan gives it.

    whole: whether the cells of all rows are held against raw values, however many there are; else those of a random
        sample where a run would take one too.
    """
    held = Held()
    with engine.transaction():
        coded = encode_witness(engine, _with_person(plan), workspace, whole=whole)
        released = {column.name: column for column in engine.columns(release)}
        holding = _Holding(engine, workspace, plan, coded, release, released)
        holding.count_rows(held, known)
        holding.check_classes(held, known.boxed)
    return held


def _with_person(plan: Plan) -> Plan:
    """Plan to keep whose the rows are, last of all, where rows of a person that show the same were released once."""
    if plan.person is None or not plan.policy.algorithm.merges_rows:
        return plan
    return replace(plan, attributes=(*plan.attributes, plan.person))


@dataclass(frozen=True)
class _Holding:
    """A release and its coded source in one session."""

    engine: Engine
    workspace: Workspace
    plan: Plan
    coded: CodedTable
    release: Relation
    released: Mapping[str, Column]

    def count_rows(self, held: Held, known: Known) -> None:
        """Check that no row is too many, that no more are left out than may be, and that all kept values are there.

        Of a run that is known as many rows must be there as it released, though the policy may allow for fewer.
        """
        (rows,) = self.engine.query_one("count_rows", table=self.release)
        omitted, stars = self.coded.source_rows + known.counterfeits - rows, self.plan.policy.stars
        allowed = 0 if stars else int(Decimal(str(known.budget)) * self.coded.source_rows)
        if self.plan.policy.algorithm.merges_rows:  # `classes_equal` counts the persons of each class
            allowed = omitted
        astray = 0 if known.rows is None else abs(rows - known.rows)
        held.omitted = max(omitted, 0)
        held.checks["rows_add_up"] = Check(max(-omitted, omitted - allowed, astray, 0), rows)
        kept = [attribute.column for attribute in self.plan.kept]
        if kept and known.counterfeits:
            held.unchecked["values_equal"] = _COUNTERFEITS.format(counterfeits=known.counterfeits)
        elif kept:
            names = [Identifier(column.name) for column in kept]
            each = macro("relations.each_once", self.plan.source, names, free_name("n", [one.name for one in kept]))
            violations = multisets_equal(self.engine, each, self.release, kept, max(omitted, 0))
            held.checks["values_equal"] = Check(violations, rows)

    def check_classes(self, held: Held, boxed: bool | None) -> None:
        """Find the class of each source row, then hold what it shows and keeps against the row's raw values."""
        algorithm = self.plan.policy.algorithm
        if algorithm.recodes in _UNPLACED or algorithm.regions_overlap or algorithm.numbers_classes:
            kind = "numbered classes" if algorithm.numbers_classes else "a relaxed partitioning"
            overlaps = f"regions of {kind} overlap, so that values do not say which class a row is in"
            reason = algorithm.hides_classes or _UNPLACED.get(algorithm.recodes, overlaps)
            held.unchecked |= dict.fromkeys(LINKED, f"{reason}; the run checked it before it published")
            return
        shown = shown_fields(self.plan.policy, self.coded, self.released)
        classes = create_classes(self.engine, self.workspace, shown, self.release)
        suppressed_leaf = self._suppressed_leaf(shown, classes)
        if boxed is None:
            boxed = any(open_ends(self.engine, classes, one) for one in shown)
        boxed = boxed or self.plan.policy.from_cut_to_cut
        reaches = create_reaches(self.engine, self.workspace, self.coded, shown, classes, boxed)
        placed = place_rows(self.engine, self.workspace, self.coded, shown, classes, reaches)
        if placed.undecided and reaches.vague:
            held.unchecked |= dict.fromkeys(LINKED, _UNDECIDED.format(columns=", ".join(reaches.vague)))
            return
        is_sample = self.coded.witness_is_sample
        witness = self._create_witness(shown, placed.tuples)
        cells = [cell for one in shown for cell in one.cells]
        claims = Claims(witness, classes, cells, is_sample, suppressed_leaf)
        (seen,) = self.engine.query_one("count_rows", table=witness)
        limited = [
            check_limits(self.engine, self.plan, one.field.attribute, self.plan.source, one.column.name, whole=True)
            for one in shown
        ]
        regions = [self._region(one, boxed, checked.limits) for one, checked in zip(shown, limited, strict=True)]
        outside = regions_contain(self.engine, claims, regions) + sum(checked.violations for checked in limited)
        outside += self._unplaced(seen, held.omitted or 0)
        held.checks["regions_contain"] = Check(outside, seen, sample=is_sample)
        clear = [one for one in shown if one.column.name not in reaches.vague]
        held.checks["classes_equal"] = Check(self._misplaced(shown, claims), seen, sample=is_sample)
        if is_sample and not shows_on_rows(self.plan.policy):
            held.unchecked["labels_fit"] = _SAMPLED
            return
        misshapen = count_misshapen(self.engine, self.plan.policy, clear, claims, boxed)
        held.checks["labels_fit"] = Check(misshapen, seen, sample=is_sample)

    def _unplaced(self, seen: int, omitted: int) -> int:
        """The rows of a sample that no class holds, where they are more than chance explains by the rows left out.

        Of all rows `rows_add_up` and `classes_equal` tell it.
        """
        if not self.coded.witness_is_sample:
            return 0
        (rows,) = self.engine.query_one("count_rows", table=self.coded.witness)
        expected = omitted * self.coded.witness_share
        return max(0, int(rows) - int(seen) - math.ceil(expected + _DEVIATIONS * math.sqrt(expected)))

    def _suppressed_leaf(self, shown: list[ShownField], classes: Relation) -> int | None:
        """The class of suppressed rows, where the policy shows them."""
        if not self.plan.policy.stars:
            return None
        texts = [
            cell for one in shown for cell, column in zip(one.cells, one.released, strict=True) if column.kind == "text"
        ]
        others = [cell for one in shown for cell in one.cells if cell not in texts]
        (leaf,) = self.engine.query_one(
            "report/release_audit/find_starred",
            classes=classes,
            texts=texts,
            others=others,
            everything=Text(EVERYTHING),
        )
        return None if leaf is None or not texts else int(leaf)

    def _create_witness(self, shown: list[ShownField], placed: Relation | Expression) -> Relation:
        witness = self.workspace.table("witnessed")
        raw = [
            *(Identifier(f"r{number}") for number in range(len(shown))),
            *(Identifier(f"v{number}") for number in range(len(self.coded.kept))),
        ]
        self.engine.run(
            "report/release_audit/create_witness",
            witnessed=witness,
            witness=self.coded.witness,
            placed=placed,
            raw=raw,
            axes=[{"x": one.x, "code": one.field.code(Identifier("r"))} for one in shown],
            words=self.coded.word_columns,
        )
        self.engine.analyze(witness)
        return witness

    def _region(self, shown: ShownField, boxed: bool, limits: Limits) -> ReleasedRegion:
        cells = tuple(cell.name for cell in shown.cells)
        exact_ranges = not boxed and shown.field.coding.hierarchy is None and not self.coded.witness_is_sample
        return ReleasedRegion(
            shown.column,
            f"r{shown.number}",
            cells,
            shown.show,
            self._ladder(shown),
            boxed=boxed,
            exact_ranges=exact_ranges,
            limits=limits,
        )

    def _ladder(self, shown: ShownField) -> Ladder | None:
        """The hierarchy as the policy has it; a mask is as long as the longest text."""
        spec = shown.field.attribute.hierarchy
        if spec is None:
            return None
        spec = with_length(self.engine, spec, shown.column, self.plan.source, shown.column.name)
        lines = self.workspace.table("lines", shown.number)
        return load_lines(self.engine, Ladder(spec), shown.column, self.plan.base_directory, lines)

    def _misplaced(self, shown: list[ShownField], claims: Claims) -> int:
        """Rows of the published classes, with their kept values, that differ from the source rows in them.

        Of a sample the rows that the classes lack.
        """
        keys: list[tuple[Expression, Expression]] = [
            (_published(self.engine, column), Markup(cell))
            for one in shown
            for cell, column in zip(one.cells, one.released, strict=True)
        ]
        if self.plan.policy.algorithm.merges_rows:
            claims = self._merged(claims)
        else:
            keys += kept_values(self.engine, self.coded)
        if not claims.is_sample:
            return classes_equal(self.engine, claims.witness, self.release, keys)
        names = [Identifier(f"x{number}") for number in range(len(keys))]
        (lacking,) = self.engine.query_one(
            "report/release_audit/count_lacking", witness=claims.witness, release=self.release, keys=keys, names=names
        )
        return int(lacking)

    def _merged(self, claims: Claims) -> Claims:
        """The same witness with one row for each class of a person, and each row of nobody known."""
        person, merged = self.plan.person, self.workspace.table("merged")
        assert person is not None
        value = Markup(Identifier(f"v{len(self.coded.kept) - 1}"))
        self.engine.run(
            "report/release_audit/merge_rows",
            merged=merged,
            witness=claims.rows,
            person=comparable(self.engine, value, person.column.kind),
        )
        self.engine.analyze(merged)
        return replace(claims, rows=merged)


def shown_fields(policy: Policy, coded: CodedTable, released: Mapping[str, Column]) -> list[ShownField]:
    """Pair quasi-identifiers with the columns of a release, of which `released` has all that stand for one, or none.

    Those without a column are left out.
    """
    shown, first = [], 0
    for number, one in enumerate(coded.quasi_identifiers):
        names = released_names(one.attribute.name, policy.attributes[one.attribute.name])
        columns = tuple(released[name] for name in names if name in released)
        cells = tuple(cell_name(first + place) for place in range(len(columns)))
        if columns:
            shown.append(ShownField(number, one, columns, cells))
        first += len(columns)
    return shown


def _published(engine: Engine, column: Column) -> Expression:
    return comparable(engine, Markup(Identifier(column.name)), column.kind)


def create_classes(engine: Engine, workspace: Workspace, shown: list[ShownField], release: Relation) -> Relation:
    """Write down the classes of a release by what they show, with the numbers of their cells."""
    classes = workspace.table("classes")
    pairs = [pair for one in shown for pair in zip(one.cells, one.released, strict=True)]
    engine.run(
        "report/release_audit/create_classes",
        classes=classes,
        release=release,
        cells=[{"name": name, "value": _published(engine, column)} for name, column in pairs],
        keys=[one.cells for one in shown],
    )
    engine.analyze(classes)
    return classes


_COUNTERFEITS = (
    "the release shows counterfeits ({counterfeits:,}), which nothing tells from other rows; the run checked these"
    " before it published"
)
_UNPLACED = {
    Recodes.CLUSTERS: "the centre of a cluster does not say which rows it is of",
    Recodes.CELLS: "rows with single cells suppressed do not say which rows of the source they are",
}
_SAMPLED = "it takes all rows of a class, and rows were drawn; --all looks at every row"
_DEVIATIONS = 8  # of the number of drawn rows that were left out: further off than chance comes
_UNDECIDED = (
    "what the release shows of {columns} does not say which values it stands for, so that rows of the source can't be"
    " told apart by class"
)


def count_misshapen(engine: Engine, policy: Policy, shown: list[ShownField], claims: Claims, boxed: bool) -> int:
    """The rows, over all quasi-identifiers with a hierarchy, whose label is none that the algorithm gives them.

    Trees show the lowest group that holds a class's values (unless they are `boxed`); full-domain generalization all
    values at one level; top-down specialization each value in one way, as ordered-set partitioning does without
    hierarchies.
    """
    return sum(_count(engine, policy, one, claims, boxed) for one in shown if one.show is Show.LABEL)


def shows_on_rows(policy: Policy) -> bool:
    """Tell whether a label of another kind is seen on single rows; else it takes all rows of its class."""
    return policy.algorithm.shows_cuts or policy.algorithm.recodes in (Recodes.CUTS, Recodes.LEVELS)


def _count(engine: Engine, policy: Policy, shown: ShownField, claims: Claims, boxed: bool) -> int:
    (cell,) = shown.cells
    hierarchy, recodes = shown.field.coding.hierarchy, policy.algorithm.recodes
    named: dict[str, Any] = {"witness": claims.witness, "cell": cell, "x": shown.x, "suppressed_leaf": claims.starred}
    if policy.algorithm.shows_cuts or (hierarchy is not None and recodes is Recodes.CUTS):
        return int(*engine.query_one("report/release_audit/count_several_labels", **named))
    if hierarchy is None or (policy.remainder == "recode" if recodes is Recodes.LEVELS else boxed):
        return 0
    named |= {"everything": Text(EVERYTHING), "null": Text(NULL), "dictionary": hierarchy.table}
    if recodes is Recodes.LEVELS:
        levels = range(hierarchy.height + 1)
        return int(min(engine.query_one("report/release_audit/count_off_level", **named, levels=levels)))
    return int(*engine.query_one("report/release_audit/count_wide_groups", **named, shifts=hierarchy.shifts))
