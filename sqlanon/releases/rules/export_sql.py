"""Statements for people to own: the rules as one SELECT, and a view that reads the labels of a release.

The SELECT recodes row by row and checks nothing: whether the classes of its result satisfy a model is not its business.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from markupsafe import Markup

from sqlanon.catalog import RulesKind, Run
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.engines.dialects import dialect_named
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.intervals import bound_type
from sqlanon.plan.checks import released_names
from sqlanon.plan.persons import refuse_persons
from sqlanon.plan.pseudonyms import refuse_pseudonyms
from sqlanon.policy import Hierarchy, Policy, Show
from sqlanon.policy.loading import parse_stored
from sqlanon.releases.rules.box_labels import list_replaced
from sqlanon.releases.rules.row_expressions import RowSpelling
from sqlanon.releases.rules.store_rules import RuleAttribute, StoredRules
from sqlanon.releases.rules.tree_select import TreeSelect
from sqlanon.releases.rules.two_step import ByRepresentative, PartNames
from sqlanon.sql import Expression, Identifier, Relation, Text, checked_name, macro
from sqlanon.staging.labels import EVERYTHING, VALUES


class LevelsSelect:
    """The SELECT of rules that go by a level for each attribute, or by a cut through its hierarchy."""

    def __init__(self, engine: Engine, stored: StoredRules, rows: RowSpelling) -> None:
        self.engine, self.stored, self.rows = engine, stored, rows

    def text(self, table: Relation, row_filter: Expression | None) -> str:
        """Select the rows of a table that pass `row_filter`, recoded."""
        return self._select(table, row_filter, self._columns)

    def in_two_parts(self, table: Relation, row_filter: Expression | None, names: PartNames) -> ByRepresentative:
        """The same in two parts; PostgreSQL tells rows of a table by their addresses while a transaction goes on.

        What classes show is joined to their rows by address, and only the rows that are named so are read.
        """
        by, kept = names.representatives, self.rows.kept()
        own = {column["name"] for column in kept}
        keys = [{"name": name, "value": key} for name, key in zip(by.keys, self._keys, strict=False)]
        address = {"name": by.address, "value": macro("recoding.address")}
        label = {"name": by.class_column, "value": macro("recoding.of_class", by.class_column)}
        shown = [column for column in self._columns if column["name"] not in own]
        chosen = macro("recoding.join_representatives", by.table, by.address)
        named = macro("recoding.is_representative", by.table, by.address)
        return ByRepresentative(
            assigning=self._select(table, row_filter, [address, *keys, *kept], keyed=True),
            showing=self._select(table, named, [label, *keys, *shown], chosen, keyed=True),
            keys=by.keys[: len(keys)],
        )

    def _select(
        self,
        table: Relation,
        row_filter: Expression | None,
        columns: list[dict[str, Any]],
        *joins: Expression,
        keyed: bool = False,
    ) -> str:
        values = {"table": table, "columns": columns, "row_filter": row_filter}
        return self.rows.render(
            "releases/rules/select_levels", joins=[*joins, *self.rows.joins(keyed=keyed)], **values
        ).text

    @cached_property
    def _columns(self) -> list[dict[str, Any]]:
        return self.rows.columns({a.number: [cell] for a, cell in zip(self.rows.attributes, self._cells, strict=True)})

    @cached_property
    def _cells(self) -> list[Expression]:
        if len(self.stored.content.get("passes", ())) > 1:
            raise PolicyError("Rules of several passes can't be one SELECT: what a pass leaves depends on all rows.")
        if self.stored.record.kind is not RulesKind.LEVELS:
            return self._cuts()
        cells = []
        for attribute, level in self._levels:
            label = self.rows.label(attribute, level)
            cells.append(label if level == attribute.height else self._or_null(attribute, label))
        return cells

    @property
    def _keys(self) -> list[Expression]:
        """List the keys of rows: rows that are equal in all keys show the same."""
        if self.stored.record.kind is not RulesKind.LEVELS:
            return self._cells
        pairs = zip(self._levels, self._cells, strict=True)
        below = [(attribute, level, cell) for (attribute, level), cell in pairs if level != attribute.height]
        keys = [self.rows.key(attribute, level) or cell for attribute, level, cell in below]
        return keys or [Markup(Text(EVERYTHING))]

    @property
    def _levels(self) -> list[tuple[RuleAttribute, int]]:
        """The attributes with the levels that they are shown at."""
        levels = self.stored.content["passes"][0]
        pairs = [(attribute, levels[attribute.name]) for attribute in self.rows.attributes]
        if getattr(self.rows.policy.algorithm, "suppresses_attributes", False):
            return [(attribute, (attribute.height or 0) if level else 0) for attribute, level in pairs]
        return pairs

    def _or_null(self, attribute: RuleAttribute, label: Expression) -> Expression:
        return macro("recoding.label_or_null", label, self.rows.value(attribute))

    def _cuts(self) -> list[Expression]:
        replaced: dict[tuple[str, int], list[str]] = defaultdict(list)
        for name, level, label in list_replaced(self.engine, self.stored):
            replaced[name, level].append(label)
        cells: list[Expression] = []
        for attribute in self.rows.attributes:
            height = attribute.height or 0
            if not replaced[attribute.name, height]:
                cells.append(Markup(Text(EVERYTHING)))
                continue
            lowest = next((n for n in range(height - 1, 0, -1) if not replaced[attribute.name, n]), 0)
            levels = [
                {
                    "label": self.rows.label(attribute, level),
                    "replaced": [Text(label) for label in replaced[attribute.name, level]],
                }
                for level in range(height - 1, lowest, -1)
            ]
            under_cut = macro("recoding.label_under_cut", levels, self.rows.label(attribute, lowest))
            cells.append(self._or_null(attribute, under_cut))
        return cells


MOST_RULES = 100_000  # of one statement


def rules_select(
    engine: Engine, stored: StoredRules, run: Run, source: str | None = None, row_filter: Expression | None = None
) -> str:
    """The rules of a run as a SELECT over its source, or over another table; `engine` is where the rules are.

    row_filter: a condition on rows `s` of that table; others are left out.

    Raises PolicyError where there are too many rules, or where they cannot be said in one statement.
    """
    policy = parse_stored(run.policy)
    table = source if source is not None else policy.source.table
    if table is None:
        raise PolicyError("The source of the run is a file; name a table with --source.")
    return sayable_rules(engine, stored, policy).text(Relation.parse(table), row_filter)


def text_to_own(stored: StoredRules, text: str) -> str:
    """Write a statement of some rules for any session of the database that they are for."""
    return dialect_named(stored.content["dialect"]).text_for_others(text)


def sayable_rules(
    engine: Engine, stored: StoredRules, policy: Policy, person: dict[str, Any] | None = None
) -> TreeSelect | LevelsSelect:
    """The rules of a run with this policy, to be said in one statement, or in two; `engine` is where they are.

    person: the column of the statement that says whose row it is; see `RowSpelling`.

    Raises PolicyError where there are too many, or where they cannot be said.
    """
    if stored.record.leaves > MOST_RULES:
        raise PolicyError(
            f"There are {stored.record.leaves:,} rules, and a statement holds {MOST_RULES:,} at most: `sqlanon apply` "
            "recodes with any number."
        )
    if person is None:
        refuse_persons(policy, "the check of a statement's rows")
    refuse_pseudonyms(policy, "a SELECT has no secret key and no word lists, and")
    _require_sayable(stored, policy)
    kind = TreeSelect if stored.record.kind is RulesKind.TREE else LevelsSelect
    return kind(engine, stored, RowSpelling(stored, policy, person))


def _require_sayable(stored: StoredRules, policy: Policy) -> None:
    """Refuse shows that need another table."""
    wrong = []
    for attribute in stored.attributes:
        hierarchy = policy.attributes[attribute.name].hierarchy
        if attribute.show is not Show.LABEL and (hierarchy is not None or stored.record.leaves == 0):
            wrong.append(
                f"'{attribute.name}': show: {attribute.show.value} of a hierarchy can't be said in one SELECT."
            )
    if wrong:
        raise PolicyError([*wrong, "`sqlanon apply` recodes with these rules."])


_DAYS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)

_COUNTED = r"-?[0-9]+(?:[.][0-9]+)?"

_BEYOND = "[*]|-?Infinity"

_PERIODS = {
    "decade": "^([0-9]{3}0)s$",
    "year": "^([0-9]{4})$",
    "quarter": "^([0-9]{4})-Q([1-4])$",
    "month": "^([0-9]{4})-([0-9]{2})$",
    "week": "^([0-9]{4})-W([0-9]{2})$",
}

_DAY = "^([0-9]{4}-[0-9]{2}-[0-9]{2})$"


@dataclass(frozen=True)
class Period:
    """A period of a hierarchy of dates, and what its labels look like."""

    name: str
    pattern: Text


@dataclass(frozen=True)
class ParsedColumn:
    """A column of labels, and how its ends are read.

    pair: what a label of two ends looks like; single: one of a value. periods: those of a hierarchy of dates.
    """

    name: Identifier
    least: Identifier
    greatest: Identifier
    type: Expression
    pair: Text
    single: Text
    is_instant: bool
    has_zone: bool
    periods: tuple[Period, ...]


def labels_view(engine: Engine, stored: StoredRules, run: Run, view: str, release: str | None) -> str:
    """A CREATE VIEW over a run's release, or over another table with its columns; `engine` is where it will be.

    Raises PolicyError where there is nothing to read, or names collide.
    """
    policy = parse_stored(run.policy)
    if stored.content["dialect"] != engine.name:
        raise PolicyError(
            "The release was carried over to an engine with types of its own; `sqlanon.read_labels` reads its labels."
        )
    if release is None and policy.release.file is not None:
        raise PolicyError("The release is a file; load it, and name its table with --source.")
    columns = [_read(one, policy.attributes[one.name].hierarchy) for one in stored.attributes if _is_read(one, policy)]
    if not columns:
        raise PolicyError("The release has no labels of numbers or dates, so there is nothing to read back.")
    _refuse_collisions(policy, columns)
    named = Relation.parse(release if release is not None else run.release)
    relation = engine.resolve(named) or engine.traits.stored(named)
    new = engine.traits.stored(Relation.parse(view))
    statement = engine.render("releases/rules/create_labels_view", view=new, release=relation, columns=columns)
    return statement.text


def _is_read(attribute: RuleAttribute, policy: Policy) -> bool:
    """Tell whether labels of a column say numbers or dates; masks and own groups say no more than they show."""
    hierarchy = policy.attributes[attribute.name].hierarchy
    kinds = attribute.kind.is_numeric or attribute.kind in _DAYS
    return attribute.show is Show.LABEL and kinds and (hierarchy is None or hierarchy.kind in ("intervals", "date"))


def _read(attribute: RuleAttribute, hierarchy: Hierarchy | None) -> ParsedColumn:
    of_intervals = hierarchy is not None and hierarchy.kind == "intervals"
    kind: Expression = Markup(attribute.type)
    value, beyond = VALUES[attribute.kind], "[*]"
    if of_intervals and hierarchy is not None:
        kind = bound_type(hierarchy, attribute.column)
        if attribute.kind is not Kind.FLOAT:  # the ends of intervals beyond all numbers are no decimals
            value, beyond = _COUNTED, _BEYOND
    return ParsedColumn(
        Identifier(attribute.name),
        Identifier(checked_name(f"{attribute.name}_min")),
        Identifier(checked_name(f"{attribute.name}_max")),
        kind,
        Text(rf"^(?:\[|[{{]NULL, )(?:({value})|{beyond})-(?:({value})|{beyond})(?:\]|\)|[}}])$"),
        Text(rf"^({value})$|^[{{]NULL, ({value})[}}]$"),
        attribute.kind in _DAYS,
        attribute.kind is Kind.TIMESTAMPTZ,
        () if hierarchy is None or hierarchy.kind != "date" else _periods(attribute.kind),
    )


def _periods(kind: Kind) -> tuple[Period, ...]:
    """The periods that labels may name; of timestamps a day is one, too."""
    patterns = _PERIODS if kind is Kind.DATE else {**_PERIODS, "day": _DAY}
    return tuple(Period(name, Text(pattern)) for name, pattern in patterns.items())


def _refuse_collisions(policy: Policy, columns: list[ParsedColumn]) -> None:
    """Refuse names that the release has already, whatever the case."""
    taken = {name.lower() for column, one in policy.attributes.items() for name in released_names(column, one)}
    wrong = []
    for name in (end.name for column in columns for end in (column.least, column.greatest)):
        if name.lower() in taken:
            wrong.append(f"The release has a column '{name}' already; rename the source's column, or show bounds.")
        taken.add(name.lower())
    if wrong:
        raise PolicyError(wrong)
