"""Properties of a valid partition, in plain Python on raw values: independent of codes, nodes and the search."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from tests.oracle import brute_force

Row = tuple[Any, ...]
ROOT = "*"
JOBS = {
    "Clerk": ("Office", "Paid"),
    "Sales": ("Office", "Paid"),
    "Smith": ("Craft", "Paid"),
    "None": ("Idle", "Unpaid"),
}


@dataclass(frozen=True)
class Attribute:
    """A quasi-identifier: its type, some values, and with a hierarchy the way from a value to its ancestors.

    path: the groups of a known value from level 1 up to the root, as labels; "?" where this oracle knows no label.
    """

    type: str
    pool: tuple[Any, ...]
    hierarchy: Any = None
    path: Callable[[Any], tuple[str, ...]] | None = None

    @property
    def policy(self) -> dict[str, Any]:
        return {"role": "quasi-identifier"} | ({"hierarchy": self.hierarchy} if self.hierarchy else {})

    def ancestors(self, value: Any) -> tuple[Any, ...]:
        """A value and its groups; NULL is alone below the root."""
        assert self.path is not None
        path = self.path(value) if value is not None else (None,) * (len(self.path(self._known)) - 1) + (ROOT,)
        return (value, *path)

    @property
    def _known(self) -> Any:
        return next(value for value in self.pool if value is not None)


def order_of(value: Any) -> tuple[Any, ...]:
    """The order of values: NULL first, text by its bytes, NaN last."""
    if value is None:
        return (0,)
    if isinstance(value, str):
        return (1, value.encode())
    return (2,) if isinstance(value, float) and math.isnan(value) else (1, value)


def _widths(*widths: int) -> Callable[[Any], tuple[str, ...]]:
    return lambda value: (*(f"?{width}:{math.floor(value / width)}" for width in widths), ROOT)


def _period(value: datetime.date) -> tuple[str, ...]:
    return (f"{value:%Y-%m}", f"{value:%Y}", ROOT)


def _masked(value: str) -> tuple[str, ...]:
    return (value[:2] + "*", value[:1] + "**", ROOT)


_INTEGERS = (None, -7, 0, 1, 2, 3, 9, 40)
_WORDS = (None, "", "a", "B", "b, c", "NULL", "é", "z")
_DAYS = tuple(datetime.date(*day) for day in ((1969, 12, 31), (1970, 1, 1), (2024, 2, 1), (2024, 2, 29), (2025, 1, 1)))
FLAVOURS = (
    Attribute("INTEGER", _INTEGERS),
    Attribute("INTEGER", tuple(range(12))),
    Attribute("BIGINT", (None, -(2**63), -1, 0, 2**63 - 1)),
    Attribute("VARCHAR(9)", _WORDS),
    Attribute("DECIMAL(9, 2)", (None, Decimal("-1.50"), Decimal("0.00"), Decimal("2.25"), Decimal("10.00"))),
    Attribute("DOUBLE PRECISION", (None, -math.inf, -0.5, 0.0, -0.0, 1e-7, 0.1, 2.5e20, math.inf, math.nan)),
    Attribute("DOUBLE PRECISION", (None, -1.25, -0.0, 0.29, 0.57, 1.1, 2.0, 123456.789)),
    Attribute("DATE", (None, *_DAYS)),
    Attribute("BOOLEAN", (None, False, True)),
    Attribute("INTEGER", _INTEGERS, {"intervals": [5, 20]}, _widths(5, 20)),
    Attribute("VARCHAR(3)", (None, "100", "101", "110", "200", "210"), {"mask": "right"}, _masked),
    Attribute(
        "VARCHAR(9)", (None, *JOBS), {"mapping": {j: list(p) for j, p in JOBS.items()}}, lambda j: (*JOBS[j], ROOT)
    ),
    Attribute("DATE", (None, *_DAYS), {"date": ["month", "year"]}, _period),
    Attribute("VARCHAR(2)", (None, "f", "m", "x"), "suppress", lambda _value: (ROOT,)),
)


def satisfies(
    models: Sequence[dict[str, Any]],
    leaf: Sequence[Row],
    table: Sequence[Row],
    columns: Mapping[str, int] = MappingProxyType({"s": -2}),
    hair: float = 1e-8,
) -> bool:
    """Tell whether a class meets all models; rounded measures have a margin of `hair`, which may be negative.

    columns: where the sensitive attributes are in a row; `(…, s, id)` by default.
    """
    for model in models:
        column = columns[model.get("attribute", next(iter(columns)))]
        if not _meets(model, [row[column] for row in leaf], [row[column] for row in table], hair):
            return False
    return True


def _meets(model: dict[str, Any], values: list[Any], table: list[Any], hair: float) -> bool:
    match model["model"], model.get("distance"):
        case "k-anonymity", _:
            return len(values) >= model["k"]
        case "distinct-l-diversity", _:
            return brute_force.distinct(values) >= model["l"]
        case "entropy-l-diversity", _:
            return brute_force.entropy(values) >= math.log(model["l"]) - hair
        case "recursive-l-diversity", _:
            return brute_force.recursive_ratio(values, model["l"]) < Fraction(str(model["c"]))
        case "variance-diversity", _:
            return brute_force.variance(values) >= model["v"] - hair
        case "beta-likeness", _:
            return brute_force.least_beta(values, table, form=model["form"]) <= model["beta"] + hair
        case "delta-disclosure", _:
            return brute_force.disclosed_delta(values, table) < model["delta"] + hair
        case "alpha-k", _:
            share = brute_force.greatest_share(values, model["k"], model.get("values"))
            return share <= Fraction(str(model["alpha"]))
        case "confidence-bound", _:
            share = brute_force.greatest_share(values, 1, model.get("values"))
            return share <= Fraction(str(model["confidence"]))
        case _, "equal":
            return brute_force.equal_distance(values, table) <= model["t"] + hair
        case _, "kl":
            return brute_force.kl_divergence(values, table) <= model["t"] + hair
        case _, "ordered":
            order = sorted(set(table), key=order_of)
            return brute_force.ordered_distance(values, table, order) <= model["t"] + hair
        case _, "hierarchical":
            ancestors = {"x": ("1", ROOT), "y": ("1", ROOT), "z": ("2", ROOT), None: (None, ROOT)}
            return brute_force.hierarchical_distance(values, table, ancestors) <= model["t"] + hair
    raise ValueError(model)


def splittable(
    attributes: Sequence[Attribute], leaf: Sequence[Row], allowed: Callable[[Sequence[Row]], bool]
) -> list[int]:
    """The attributes on which a leaf could still be split into allowed parts, at any threshold."""
    return brute_force.allowable_splits(
        leaf,
        {i: order_of for i, a in enumerate(attributes) if a.path is None},
        {i: _children(a) for i, a in enumerate(attributes) if a.path is not None},
        allowed,
    )


def _children(attribute: Attribute) -> Callable[[Sequence[Any]], list[Callable[[Any], bool]]]:
    def tests(values: Sequence[Any]) -> list[Callable[[Any], bool]]:
        below = max(0, _common_level(attribute, values) - 1)
        groups = {attribute.ancestors(value)[below] for value in values}
        return [lambda value, g=group: attribute.ancestors(value)[below] == g for group in groups]

    return tests


def _common_level(attribute: Attribute, values: Sequence[Any]) -> int:
    """The level of the lowest common ancestor."""
    paths = [attribute.ancestors(value) for value in values]
    return next(level for level, groups in enumerate(zip(*paths, strict=True)) if len(set(groups)) == 1)


def are_disjoint(attributes: Sequence[Attribute], leaves: Sequence[Sequence[Row]]) -> bool:
    """Tell whether the regions of any two leaves are apart in some attribute, so that no point lies in both."""
    return all(
        any(_apart(a, [r[i] for r in one], [r[i] for r in other]) for i, a in enumerate(attributes))
        for place, one in enumerate(leaves)
        for other in leaves[:place]
    )


def _apart(attribute: Attribute, one: Sequence[Any], other: Sequence[Any]) -> bool:
    if attribute.path is None:
        first, second = sorted(order_of(v) for v in one), sorted(order_of(v) for v in other)
        return first[-1] < second[0] or second[-1] < first[0]
    level = max(_common_level(attribute, one), _common_level(attribute, other))
    return attribute.ancestors(one[0])[level] != attribute.ancestors(other[0])[level]


def describes(attribute: Attribute, cell: str, values: Sequence[Any]) -> bool:
    """Tell whether a label describes exactly the values in the leaf (or names their lowest common group)."""
    known = sorted({order_of(v): v for v in values if v is not None}.items())
    holds_null = any(v is None for v in values)
    if not known:
        return cell == "NULL"
    if attribute.path is not None:
        return _names_group(attribute, cell, values)
    if holds_null:
        opened = re.fullmatch(r"\{NULL, (.*)\}", cell, re.DOTALL)
        if opened is None:
            return False
        cell = opened[1]
    distinct = [value for _, value in known]
    if attribute.type.startswith(("VARCHAR", "BOOLEAN")):
        members = ", ".join(_member(value) for value in distinct)
        return cell == (members if holds_null or len(distinct) == 1 else "{" + members + "}")
    if len(distinct) == 1:
        return _reads(cell, distinct[0])
    if not holds_null:
        if cell[0] + cell[-1] != "[]":
            return False
        cell = cell[1:-1]
    ends = ((cell[:i], cell[i + 1 :]) for i, char in enumerate(cell) if char == "-")
    return any(_reads(low, distinct[0]) and _reads(high, distinct[-1]) for low, high in ends)


def _names_group(attribute: Attribute, cell: str, values: Sequence[Any]) -> bool:
    level = _common_level(attribute, values)
    group = attribute.ancestors(values[0])[level]
    if level == 0:
        return cell == (str(group))
    return cell == group or (group[0] == "?" and cell not in (ROOT, "NULL"))


def _member(value: Any) -> str:
    text = ("false", "true")[value] if isinstance(value, bool) else value
    misread = text in ("", "NULL") or re.search(r'[,{}"*\[\]]|^\s|\s$', text)
    return f'"{text}"' if misread else text


def _reads(text: str, value: Any) -> bool:
    """Tell whether a text reads as this value, and is written as plainly as can be."""
    if isinstance(value, datetime.date):
        return text == value.isoformat()
    try:
        number = Decimal(text)
    except ArithmeticError:
        return False
    if isinstance(value, float):
        return (float(number) == value or (math.isnan(float(number)) and math.isnan(value))) and not text.endswith(".0")
    return number == value
