"""A release as a view that one can compute with: the ends of labels beside them, read by SQL; docs/labels.md."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.catalog import Run
from sqlanon.engines.base import Engine, Kind
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.intervals import bound_type
from sqlanon.plan.checks import released_names
from sqlanon.policy import Hierarchy, Policy, Show
from sqlanon.policy.loading import parse_stored
from sqlanon.rules.store import StoredRules
from sqlanon.rules.tables import RuleAttribute
from sqlanon.sql import Identifier, Relation, Text, checked_name, expression
from sqlanon.verification.release_checks import VALUES

_MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
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
class ReadColumn:
    """A column of labels, and how its ends are read.

    pair: what a label of two ends looks like; single: one of a value. periods: those of a hierarchy of dates.
    """

    cell: Markup
    least: Identifier
    greatest: Identifier
    type: Markup
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
    if stored.content["dialect"] != engine.dialect:
        raise PolicyError(
            "The release was carried over to an engine with types of its own; `sqlanon.read_labels` reads its labels."
        )
    if release is None and policy.release.file is not None:
        raise PolicyError("The release is a file; load it, and name its table with --source.")
    columns = [_read(one, policy.attributes[one.name].hierarchy) for one in stored.attributes if _is_read(one, policy)]
    if not columns:
        raise PolicyError("The release has no labels of numbers or dates, so there is nothing to read back.")
    _refuse_collisions(policy, columns)
    relation = Relation.parse(release if release is not None else run.release)
    statement = engine.render("rules/create_labels_view", view=Relation.parse(view), release=relation, columns=columns)
    return statement.text


def _is_read(attribute: RuleAttribute, policy: Policy) -> bool:
    """Tell whether labels of a column say numbers or dates; masks and own groups say no more than they show."""
    hierarchy = policy.attributes[attribute.name].hierarchy
    kinds = attribute.kind.is_numeric or attribute.kind in _MOMENTS
    return attribute.show is Show.LABEL and kinds and (hierarchy is None or hierarchy.kind in ("intervals", "date"))


def _read(attribute: RuleAttribute, hierarchy: Hierarchy | None) -> ReadColumn:
    of_intervals = hierarchy is not None and hierarchy.kind == "intervals"
    value, beyond, kind = VALUES[attribute.kind], "[*]", Markup(attribute.type)
    if of_intervals and hierarchy is not None:
        kind = bound_type(hierarchy, attribute.column)
        if attribute.kind is not Kind.FLOAT:  # the ends of intervals beyond all numbers are no decimals
            value, beyond = _COUNTED, _BEYOND
    return ReadColumn(
        expression("r.{name}", name=Identifier(attribute.name)),
        Identifier(checked_name(f"{attribute.name}_min")),
        Identifier(checked_name(f"{attribute.name}_max")),
        kind,
        Text(rf"^(?:\[|[{{]NULL, )(?:({value})|{beyond})-(?:({value})|{beyond})(?:\]|\)|[}}])$"),
        Text(rf"^({value})$|^[{{]NULL, ({value})[}}]$"),
        attribute.kind in _MOMENTS,
        attribute.kind is Kind.TIMESTAMPTZ,
        () if hierarchy is None or hierarchy.kind != "date" else _periods(attribute.kind),
    )


def _periods(kind: Kind) -> tuple[Period, ...]:
    """The periods that labels may name; of timestamps a day is one, too."""
    patterns = _PERIODS if kind is Kind.DATE else {**_PERIODS, "day": _DAY}
    return tuple(Period(name, Text(pattern)) for name, pattern in patterns.items())


def _refuse_collisions(policy: Policy, columns: list[ReadColumn]) -> None:
    """Refuse names that the release has already, whatever the case."""
    taken = {name.lower() for column, one in policy.attributes.items() for name in released_names(column, one)}
    wrong = []
    for name in (end.name for column in columns for end in (column.least, column.greatest)):
        if name.lower() in taken:
            wrong.append(f"The release has a column '{name}' already; rename the source's column, or show bounds.")
        taken.add(name.lower())
    if wrong:
        raise PolicyError(wrong)
