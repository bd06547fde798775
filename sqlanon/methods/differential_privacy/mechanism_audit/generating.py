"""Tables that are generated from declared domains, with values at their ends and beyond, and neighbouring tables."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from sqlanon.engines.columns import Kind
from sqlanon.engines.dialects import Dialect
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.methods.differential_privacy.public_domain import NumberDomain, PublicDomain, TaxonomyDomain

Row = tuple[str | None, ...]
_Value = TypeVar("_Value")
_ROWS = 40
_PERSONS = 15
_EQUAL_ROWS = 5
_MOST_VALUES = 8  # values of a column
_MOST_COPIES = 50  # of a person's rows
_UNDECLARED = "undeclared values"
_OTHERS = {
    Kind.TEXT: "an undeclared value",
    Kind.ENUM: "an undeclared value",
    Kind.INTEGER: "987654321",
    Kind.DATE: "1876-05-04",
    Kind.UUID: "00000000-0000-4000-8000-00000000abcd",
}
_FORMS = {
    Kind.INTEGER: re.compile(r"-?\d{1,18}"),
    Kind.DATE: re.compile(r"\d{4}-\d\d-\d\d"),
    Kind.UUID: re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    Kind.BOOLEAN: re.compile("true|false"),
}


@dataclass(frozen=True)
class GeneratedColumn:
    """A column of a generated table: its type, and the values that its rows hold.

    usual: declared ones, the first and the last among them. unusual: by name, less and more than the domain,
    undeclared, NULL; as far as there are any. last: the one of the last place, which may be NULL.
    """

    name: str
    type: str
    nullable: bool
    usual: Sequence[str]
    unusual: dict[str, str | None]
    last: str | None = None


@dataclass(frozen=True)
class GeneratedTable:
    """A table, and its units, each of which a neighbour lacks.

    units: for each a description of its values, and the places of its rows.
    """

    columns: list[GeneratedColumn]
    rows: list[Row]
    units: list[tuple[str, list[int]]]

    def neighbours(self) -> Iterator[tuple[str, list[Row]]]:
        """Yield, for each unit, its description and the rows of the table without it."""
        for what, places in self.units:
            yield what, [row for place, row in enumerate(self.rows) if place not in places]


def generate_table(plan: PrivatePlan, dialect: type[Dialect]) -> GeneratedTable:
    """Generate a table of a plan's columns, with rows within the domains and rows beyond them.

    Where persons are the unit, some have more rows than a release counts.
    """
    draw = random.Random(1)  # of no secret
    columns = [_column(name, domain, dialect) for name, domain in plan.domains.items()]
    if plan.target is not None:
        columns.append(_column(*plan.target, dialect))
    others = [name for name in plan.policy.attributes if name not in plan.shown]
    persons = [name for name in others if name == plan.persons]
    columns += [GeneratedColumn(name, dialect.types["text"], True, (), {}) for name in others]

    def row(person: str, values: Sequence[str | None]) -> Row:
        return (*values, *((person if name in persons else None) for name in others))

    shown = columns[: len(plan.shown)]
    rows = [row(str(number % _PERSONS), [draw.choice(column.usual) for column in shown]) for number in range(_ROWS)]
    units: list[tuple[str, list[int]]] = []
    copies = min(plan.contribution + 1, _MOST_COPIES) if persons else 1
    first = [column.usual[0] for column in shown]
    counted = shown if plan.target is None else shown[:-1]
    last = [*(column.last for column in counted), *(column.usual[-1] for column in shown[len(counted) :])]
    kinds: dict[str, Sequence[Sequence[str | None]]] = {"usual values": [first] * _EQUAL_ROWS, "the last cell": [last]}
    kinds |= {
        what: [_unusual(what, shown, first, is_target=plan.target is not None)]
        for what in ("less than the domains", "more than the domains", _UNDECLARED, "NULL", "another class")
    }
    for what, made in kinds.items():
        units.append((what, list(range(len(rows), len(rows) + copies))))
        for person, values in enumerate(made):
            rows += [row(f"{what} {person}", values)] * copies
    if persons:
        rows.append(row(persons[0], first))
        rows[-1] = (*rows[-1][: len(shown)], *(None for _ in others))  # of no person
    return GeneratedTable(columns, rows, units)


def _unusual(
    what: str, columns: Sequence[GeneratedColumn], usual: Sequence[str], *, is_target: bool
) -> list[str | None]:
    """The values of a row that is unusual in all columns with domains, or in the class alone."""
    last = len(columns) - 1 if is_target else len(columns)
    return [
        column.unusual.get(_UNDECLARED if number == last else what, value)
        if (number == last) == (what == "another class")
        else value
        for number, (column, value) in enumerate(zip(columns, usual, strict=True))
    ]


def _column(name: str, domain: PublicDomain, dialect: type[Dialect]) -> GeneratedColumn:
    """Choose the type of a column and its values from the declared domain."""
    column = domain.column
    if isinstance(domain, NumberDomain):
        whole = column.kind is Kind.INTEGER
        type_ = {Kind.INTEGER: dialect.types["int64"], Kind.FLOAT: dialect.types["float64"]}.get(
            column.kind, f"DECIMAL(38,{domain.scale})"
        )
        every = _with_ends(range(domain.steps))
        usual = [_number(domain, domain.first + step * domain.width, whole) for step in every]
        unusual: dict[str, str | None] = {
            "less than the domains": _number(domain, domain.first - 10 * domain.width, whole),
            "more than the domains": _number(domain, domain.first + (domain.steps + 10) * domain.width, whole),
        }
    else:
        assert isinstance(domain, TaxonomyDomain)
        kind = Kind.TEXT if column.kind is Kind.ENUM else column.kind
        type_ = dialect.types["int64" if kind is Kind.INTEGER else kind.value]
        usual, unusual = _with_ends(_representable(kind, domain)), {}
        if column.kind in _OTHERS and _OTHERS[column.kind] not in domain.places:
            unusual[_UNDECLARED] = _OTHERS[column.kind]
    last: str | None = usual[-1]
    if isinstance(domain, TaxonomyDomain) and domain.other == len(domain.places):  # else they are a declared value, too
        last = unusual.get(_UNDECLARED, last)
    if column.nullable:
        unusual["NULL"] = last = None
    return GeneratedColumn(name, type_, column.nullable, usual, unusual, last)


def _with_ends(values: Sequence[_Value]) -> list[_Value]:
    """Choose a few values, the first and the last among them."""
    chosen = range(0, len(values), -(-len(values) // _MOST_VALUES) or 1)
    return list(dict.fromkeys([*(values[place] for place in chosen), *values[-1:]]))


def _representable(kind: Kind, domain: TaxonomyDomain) -> list[str]:
    """List the declared values that a type can hold; no row has any other declared value."""
    return [value for value in domain.places if kind not in _FORMS or _FORMS[kind].fullmatch(value)]


def _number(domain: NumberDomain, units: int, whole: bool) -> str:
    """Write a number, given in units of the domain's last decimal place."""
    number = Decimal(units).scaleb(-domain.scale)
    return str(int(number)) if whole else f"{number:f}"
