"""Types for columns of texts: one that every value survives byte for byte, cast and cast back; else text.

The database looks at all values: at some rows with every test, at more, and then at all, with those passed so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.read_options import ReadColumn, ReadOptions, type_named
from sqlanon.errors import PolicyError
from sqlanon.sql import Identifier, Relation, Text

_FEW_ROWS = 50
_FIRST_ROWS = 2_000
_COLUMNS_A_STATEMENT = 50
_FINITE = ("DOUBLE", "DATE", "TIMESTAMP")
_LOSSLESS = {  # texts that the type takes without rounding, and that mean one thing only
    "BIGINT": r"\s*[-+]?[0-9]+\s*",
    "HUGEINT": r"\s*[-+]?[0-9]+\s*",
    "DATE": r"\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}\s*",
    "TIMESTAMP": r"\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T].*)?",
}
_TYPES = ("BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP", "TIME")  # the first that all values survive
_TIME_PARTS = ("%H", "%I", "%M", "%S")
USUAL_DATES = (
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%Y/%m/%d",
    "%d/%m/%y",
    "%m/%d/%y",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%SZ",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
)
"""Formats of dates that a text column is tried with, so that people are told what to write."""


@dataclass(frozen=True)
class _Test:
    """A test of a column's texts; see the template `count_texts`."""

    column: str
    kind: str
    type: str | None = None
    format: str | None = None

    def arguments(self) -> dict[str, object]:
        pattern = _lossless(self.type) if self.kind == "casts" and self.type is not None else None
        return {
            "column": Identifier(self.column),
            "kind": self.kind,
            "type": None if self.type is None else Markup(self.type),
            "format": None if self.format is None else Text(self.format),
            "finite": self.type in _FINITE,
            "pattern": None if pattern is None else Text(pattern),
        }


def decide_types(engine: Engine, texts: Relation, names: Sequence[str], options: ReadOptions) -> list[ReadColumn]:
    """Decide on a type for each column of a table of texts; raises PolicyError where a policy's type does not fit."""
    decisions = [_TypeDecision(name, options) for name in names]
    for part in _parts(decisions):
        few = _count(engine, texts, [test for one in part for test in one.first_tests()], _FEW_ROWS)
        first = few | _count(engine, texts, [test for one in part for test in one.more_tests(few)], _FIRST_ROWS)
        every = _count(engine, texts, [test for one in part for test in one.tests_of_all(first)])
        hints = _count(engine, texts, [test for one in part for test in one.tests_for_hints(first, every)])
        for one in part:
            one.counts = every | hints
    problems = [problem for one in decisions if (problem := one.problem()) is not None]
    if problems:
        raise PolicyError(problems)
    return [one.decision() for one in decisions]


class _TypeDecision:
    """One column: what it is tried with, and what comes of it."""

    def __init__(self, name: str, options: ReadOptions) -> None:
        self._name = name
        self._dates = options.dates
        wanted = options.types.get(name)
        self._wanted = None if wanted is None else type_named(wanted)
        self.counts: Mapping[_Test, int | None] = {}

    def _test(self, kind: str, type_: str | None = None, format_: str | None = None) -> _Test:
        return _Test(self._name, kind, type_, format_)

    @property
    def _present(self) -> _Test:
        return self._test("present")

    @property
    def _takes_dates(self) -> bool:
        return self._wanted in (None, "DATE", "TIMESTAMP")

    def _by_format(self, formats: Sequence[str]) -> list[_Test]:
        return [self._test("parses", _type_of(form), form) for form in formats] if self._takes_dates else []

    def first_tests(self) -> list[_Test]:
        """All tests, for some rows."""
        if self._wanted is not None:
            return [self._present]
        survives = [self._test("survives", type_) for type_ in _TYPES]
        hints = [self._test("number"), self._test("dated")]
        return [self._present, *self._by_format(self._dates), *survives, self._test("scale"), *hints]

    def more_tests(self, few: Mapping[_Test, int | None]) -> list[_Test]:
        """Those that few rows have passed, those that measure, and formats of dates where texts look like dates."""
        measures = (self._present, self._test("scale"), self._test("number"))
        passed = [test for test in self.first_tests() if test in measures or few[test] == few[self._present]]
        return [*passed, *(self._by_format(USUAL_DATES) if self._test("dated") in passed else [])]

    def tests_of_all(self, first: Mapping[_Test, int | None]) -> list[_Test]:
        """Those that are left for all rows."""
        if self._wanted is not None:
            more = [] if self._wanted == "VARCHAR" else [self._test("casts", self._wanted)]
            return [self._present, *self._by_format(self._dates), *more, self._test("survives", self._wanted)]
        kept = [*self._by_format(self._dates), *(self._test("survives", type_) for type_ in _TYPES)]
        passed = [test for test in kept if first[test] == first[self._present]]
        scale = first[self._test("scale")]
        decimals = [] if scale is None or not 0 < scale <= 18 else [f"DECIMAL({width},{scale})" for width in (18, 38)]
        return [self._present, *passed, *(self._test("survives", type_) for type_ in decimals)]

    def tests_for_hints(self, first: Mapping[_Test, int | None], every: Mapping[_Test, int | None]) -> list[_Test]:
        """List the tests whose results people are told for a column that stays text."""
        present = first.get(self._present)
        if self._wanted is not None or not present or self._chosen(every) is not None:
            return []
        number = self._test("number")
        dates = [test for test in self._by_format(USUAL_DATES) if first.get(test) == present]
        return [*([number] if 2 * (first[number] or 0) > present else []), *dates]

    def _chosen(self, counts: Mapping[_Test, int | None]) -> _Test | None:
        """The first test of a type that all values pass; None where there is none, or no value."""
        present = counts[self._present]
        types = _TYPES if self._wanted is None else (self._wanted,)
        kind = "survives" if self._wanted is None else "casts"
        decimals = [test.type for test in counts if test.column == self._name and (test.type or "").startswith("DEC")]
        tests = [
            *self._by_format(self._dates),
            *(self._test(kind, type_) for type_ in dict.fromkeys([*types, *decimals])),
        ]
        return next((test for test in tests if present and counts.get(test) == present), None)

    def problem(self) -> str | None:
        """Explain what is wrong with the type that the policy gives the column."""
        present = self.counts[self._present] or 0
        if self._wanted in (None, "VARCHAR") or not present or self._chosen(self.counts) is not None:
            return None
        passed = max(self.counts[test] or 0 for test in self.counts if self._is_cast(test))
        return (
            f"source.types: {present - passed:,} of the {present:,} values of {Identifier(self._name)} are no"
            f" {self._wanted}; name another type, the format of its dates (source.dates), or what stands for NULL"
            " (source.null)."
        )

    def _is_cast(self, test: _Test) -> bool:
        return test.column == self._name and test.kind in ("casts", "parses")

    def decision(self) -> ReadColumn:
        """The type of the column, and why."""
        present, chosen = self.counts[self._present] or 0, self._chosen(self.counts)
        if self._wanted is not None:
            return self._as_wanted(present, chosen)
        if chosen is None or chosen.type is None:
            hint = self._hint(present)
            are_numbers = present > 0 and self.counts.get(self._test("number")) == present
            return ReadColumn(
                self._name, "VARCHAR", hint or "text", remarkable=hint is not None, are_numbers=are_numbers
            )
        if chosen.format is not None:
            reason = f"{chosen.type} by the format {chosen.format}; written as ISO 8601"
            return ReadColumn(self._name, chosen.type, reason, chosen.format, remarkable=True)
        return ReadColumn(self._name, chosen.type, f"{chosen.type}: all values are written back as they are")

    def _as_wanted(self, present: int, chosen: _Test | None) -> ReadColumn:
        type_ = self._wanted or "VARCHAR"
        otherwise = present - (self.counts[self._test("survives", type_)] or 0)
        reason = f"{type_}, as the policy says"
        if otherwise and type_ != "VARCHAR":
            reason += f"; {otherwise:,} of its {present:,} values are written otherwise than in the file"
        return ReadColumn(self._name, type_, reason, None if chosen is None else chosen.format, remarkable=True)

    def _hint(self, present: int) -> str | None:
        """Suggest what to write for a column that stays text, where it need not."""
        numbers = self.counts.get(self._test("number"))
        dates = [test.format for test in self._by_format(USUAL_DATES) if self.counts.get(test) == present]
        if dates:
            return f"text; its values fit the dates {' and '.join(map(str, dates))}: source.dates reads them as dates"
        if numbers == present and present:
            return "text, as its numbers would be written otherwise; source.types (double) reads them as numbers"
        if numbers:
            return (
                f"text, as {present - numbers:,} of its {present:,} values are no numbers; if they stand for NULL, name"
                " them in source.null"
            )
        return None


def _count(
    engine: Engine, texts: Relation, tests: Sequence[_Test], limit: int | None = None
) -> dict[_Test, int | None]:
    """Count the values that pass each test."""
    if not tests:
        return {}
    row = engine.query_one("engine/count_texts", table=texts, tests=[test.arguments() for test in tests], limit=limit)
    return dict(zip(tests, row, strict=True))


def _parts(decisions: Sequence[_TypeDecision]) -> Iterator[list[_TypeDecision]]:
    rest = iter(decisions)
    while part := list(islice(rest, _COLUMNS_A_STATEMENT)):
        yield part


def _type_of(format_: str) -> str:
    return "TIMESTAMP" if any(part in format_ for part in _TIME_PARTS) else "DATE"


def _lossless(type_: str) -> str | None:
    """The texts that a type takes as they are, where it would round others."""
    if type_.startswith("DECIMAL"):
        scale = int(type_.rstrip(")").partition(",")[2])
        return rf"\s*[-+]?[0-9]*(\.[0-9]{{0,{scale}}}0*)?\s*"
    return _LOSSLESS.get(type_)
