"""Types for columns of texts: one that every value survives byte for byte, cast and cast back; else text.

The database looks at all values: at some rows with every test, at more, and then at all, with those passed so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.read_options import (
    CUSTOMARY,
    PLAIN,
    Fits,
    NumberMarks,
    ReadColumn,
    ReadOptions,
    fewest,
    type_named,
)
from sqlanon.errors import PolicyError
from sqlanon.sql import Identifier, Relation, Text

_FEW_ROWS = 50
_FIRST_ROWS = 2_000
_COLUMNS_A_STATEMENT = 50
_COLUMNS_TOGETHER = 500  # whose first texts are one column of a statement
_FINITE = ("DOUBLE", "DATE", "TIMESTAMP")
_DAY = r"\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK = r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6}0*)?)?"
_LOSSLESS = {  # texts that the type takes without rounding, and that mean one thing only
    "BIGINT": r"\s*[-+]?[0-9]+\s*",
    "HUGEINT": r"\s*[-+]?[0-9]+\s*",
    "DATE": rf"{_DAY}\s*",
    "TIMESTAMP": rf"{_DAY}([ T]{_CLOCK}\s*(Z|UTC|[-+]00(:?00)?)?)?",
    "TIMESTAMPTZ": rf"{_DAY}[ T]{_CLOCK}(Z|[-+][0-9]{{2}}(:?[0-9]{{2}})?)",
    "TIME": rf"\s*{_CLOCK}\s*",
}
_BLANK = r" \x{a0}\x{202f}\x{2009}"
_SIGN = r"([%‰$€£¥₹]|EUR|USD|GBP|CHF|SEK|NOK|DKK|PLN|CZK|HUF|JPY|Fr\.|kr|zł|Kč)?"
_WHOLE = rf"(0|[1-9][0-9]*|[1-9][0-9]{{0,2}}([.,'\x{{2019}}{_BLANK}][0-9]{{3}})+)"
_FORMS = {  # of kinds of tests; with a plus a number has fewer digits than one of a telephone
    "number": r"\s*(-?[1-9][0-9]*(\.[0-9]+)?|[-+]?(0|[1-9][0-9]{0,5})(\.[0-9]+)?|[-+]?\.[0-9]+)([eE][-+]?[0-9]+)?\s*",
    "punctuated": rf"\s*[-+]?[0-9]([0-9.,'\x{{2019}}{_BLANK}]*[0-9])?\s*",
    "amount": rf"\s*[-(]?[{_BLANK}]*{_SIGN}[{_BLANK}]*-?({_WHOLE}([.,][0-9]+)?|[.,][0-9]+)[{_BLANK}]*{_SIGN}[-)]?\s*",
}
_YEAR = r"(19|20)[0-9]{2}"
_OF_TIME = {  # kinds of tests for times that no format of dates reads
    "quarters": rf"(?i)\s*({_YEAR}[-/ ]?Q[1-4]|Q[1-4][-/ ]?{_YEAR})\s*",
    "days of the week": r"(?i)\s*(mon|tues?|wed(nes)?|thu(rs)?|fri|sat(ur)?|sun)(day)?\s*",
}
_NUMBERS = ("BIGINT", "HUGEINT", "DOUBLE", "DECIMAL")
_TYPES = ("BIGINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP", "TIME")  # the first that all values survive
_OF_POLICY = {  # types that columns of texts are tried with, so that people are told what to write
    "DATE": "date",
    "TIMESTAMPTZ": "timestamptz",
    "TIMESTAMP": "timestamp",
    "TIME": "time",
}
_TAKEN_BY = {  # the types of formats by which a column is read that the policy gives a type, or none
    None: ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIME"),
    "DATE": ("DATE",),
    "TIMESTAMP": ("DATE", "TIMESTAMP"),
    "TIMESTAMPTZ": ("TIMESTAMPTZ",),
    "TIME": ("TIME",),
}
_TIME_PARTS = ("%H", "%I", "%M", "%S", "%c", "%X")
_DAY_PARTS = ("%Y", "%y", "%d", "%j", "%m", "%b", "%B", "%c", "%x", "%G")
_CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_DAYS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d")
_SHORT_DAYS = ("%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%m-%y")
_NAMED = ("%d-{0}-%Y", "%d {0} %Y", "%d. {0} %Y", "{0} %d, %Y", "{0} %d %Y", "%Y-{0}-%d", "%Y {0} %d")
_WITH_NAMES = (
    *(form.format(month) for form in _NAMED for month in ("%b", "%B")),
    *("%d-%b-%y", "%d %b %y", "%d%b%Y"),
    *(
        f"{day}, {form}"
        for day, month in (("%a", "%b"), ("%A", "%B"))
        for form in (f"%d {month} %Y", f"{month} %d, %Y")
    ),
    *("%d %b %Y %H:%M", "%d %b %Y %H:%M:%S", "%a, %d %b %Y %H:%M:%S %z"),
)
_MONTHS = ("%Y-%m", "%Y/%m", "%m/%Y", "%m.%Y", "%m-%Y", "%b %Y", "%B %Y", "%b-%Y", "%b-%y", "%Y-%b")
_WEEKS = ("%G-W%V", "%G-W%V-%u")
USUAL_DATES = (
    *(day + clock for clock in _CLOCKS for day in _DAYS),
    *_SHORT_DAYS,
    *_WITH_NAMES,
    *_MONTHS,
    *_WEEKS,
)
"""Formats of dates that a text column is tried with, so that people are told what to write."""


@dataclass(frozen=True)
class _Test:
    """A test of a column's texts; see the template `count_texts`."""

    column: str
    kind: str
    type: str | None = None
    format: str | None = None
    marks: NumberMarks = PLAIN

    def arguments(self) -> dict[str, object]:
        pattern = (_FORMS | _OF_TIME).get(self.kind)
        if self.kind == "casts" and self.type is not None:
            pattern = _lossless(self.type)
        return {
            "column": Identifier(self.column),
            "kind": self.kind,
            "type": None if self.type is None else Markup(self.type),
            "format": None if self.format is None else Text(self.format),
            "finite": self.type in _FINITE,
            "has_year": self.format is not None and ("%Y" in self.format or "%G" in self.format),
            "marks": marks_of(self.marks, self.type or "DOUBLE"),
            "pattern": None if pattern is None else Text(pattern),
        }


_Counts = dict[_Test, int | None]
_Tests = Mapping[str, Sequence[_Test]]
"""The tests of columns, by name."""


def marks_of(marks: NumberMarks, type_: str | None) -> dict[str, object] | None:
    """The marks of numbers of a type as templates take them; None for those of databases, and for other types."""
    if marks.are_plain or not (type_ or "").startswith(_NUMBERS):
        return None
    thousands = None if marks.thousands is None else Text(marks.thousands)
    return {"form": Text(marks.form), "thousands": thousands, "decimal": Text(marks.decimal)}


def decide_types(engine: Engine, texts: Relation, names: Sequence[str], options: ReadOptions) -> list[ReadColumn]:
    """Decide on a type for each column of a table of texts; raises PolicyError where a policy's type does not fit."""
    decisions = {name: _TypeDecision(name, options) for name in names}
    few = _count_first(engine, texts, {name: one.first_tests() for name, one in decisions.items()}, _FEW_ROWS)
    more = {name: one.more_tests(few[name]) for name, one in decisions.items()}
    counted = _count_first(engine, texts, more, _FIRST_ROWS)
    first = {name: few[name] | counted[name] for name in names}
    every = _count(engine, texts, {name: one.tests_of_all(first[name]) for name, one in decisions.items()})
    of_hints = {name: one.tests_for_hints(first[name], every[name]) for name, one in decisions.items()}
    hints = _count(engine, texts, of_hints)
    for name, one in decisions.items():
        one.counts = every[name] | hints[name]
    problems = [problem for one in decisions.values() if (problem := one.problem()) is not None]
    if problems:
        raise PolicyError(problems)
    columns = [one.decision() for one in decisions.values()]
    return _with_marks(engine, texts, columns) if any(one.fits.marks for one in columns) else columns


def _with_marks(engine: Engine, texts: Relation, columns: list[ReadColumn]) -> list[ReadColumn]:
    """Note the marks with which numbers that are read with a point would be numbers too."""
    fractions = [one.name for one in columns if one.is_fraction]
    tests = {name: [_Test(name, "number", marks=marks) for marks in CUSTOMARY] for name in fractions}
    counts = _count(engine, texts, {name: [_Test(name, "present"), *tests[name]] for name in fractions})
    measured = {}
    for name, counted in counts.items():
        present = counted[_Test(name, "present")]
        measured[name] = Fits(marks=tuple(test.marks for test in tests[name] if counted[test] == present))
    return [replace(one, fits=measured.get(one.name, one.fits)) for one in columns]


class _TypeDecision:
    """One column: what it is tried with, and what comes of it."""

    def __init__(self, name: str, options: ReadOptions) -> None:
        self._name = name
        self._dates = options.dates
        self._marks = options.marks
        wanted = options.types.get(name)
        self._wanted = None if wanted is None else type_named(wanted)
        self.counts: Mapping[_Test, int | None] = {}

    def _test(self, kind: str, type_: str | None = None, format_: str | None = None) -> _Test:
        is_of_numbers = kind in ("number", "scale") or (type_ or "").startswith(_NUMBERS)
        return _Test(self._name, kind, type_, format_, self._marks if is_of_numbers else PLAIN)

    @property
    def _present(self) -> _Test:
        return self._test("present")

    def _by_format(self, formats: Sequence[str]) -> list[_Test]:
        tests = [self._test("parses", type_of_format(form), form) for form in formats]
        return [test for test in tests if test.type in _TAKEN_BY.get(self._wanted, ())]

    def _of_marks(self) -> list[_Test]:
        """The tests for numbers with other marks than those that are given."""
        given = [one for one in CUSTOMARY if self._marks.are_plain or one.decimal == self._marks.decimal]
        return [_Test(self._name, "number", marks=one) for one in (PLAIN, *given) if one != self._marks]

    def first_tests(self) -> list[_Test]:
        """All tests, for some rows."""
        if self._wanted is not None:
            return [self._present]
        survives = [self._test("survives", type_) for type_ in _TYPES]
        hints = [self._test(kind) for kind in ("number", "dated", "punctuated", "amount", *_OF_TIME)]
        return [self._present, *self._by_format(self._dates), *survives, self._test("scale"), *hints]

    def more_tests(self, few: Mapping[_Test, int | None]) -> list[_Test]:
        """Those that few rows have passed, those that measure, and formats of dates where texts look like dates."""
        measures = [self._present, *(self._test(kind) for kind in ("scale", "number", "punctuated", "amount"))]
        passed = [test for test in self.first_tests() if test in measures or few[test] == few[self._present]]
        dated = [*self._by_format(USUAL_DATES), *self._of_types()]
        return [*passed, *(dated if self._test("dated") in passed else [])]

    def tests_of_all(self, first: Mapping[_Test, int | None]) -> list[_Test]:
        """Those that are left for all rows."""
        if self._wanted is not None:
            more = [] if self._wanted == "VARCHAR" else [self._test("casts", self._wanted)]
            unchanged = self._kept(self._test("survives", self._wanted))
            return [self._present, *self._by_format(self._dates), *more, unchanged]
        kept = [*self._by_format(self._dates), *(self._test("survives", type_) for type_ in _TYPES)]
        passed = [test for test in kept if first[test] == first[self._present]]
        scale = first[self._test("scale")]
        decimals = [] if scale is None or not 0 < scale <= 18 else [f"DECIMAL({width},{scale})" for width in (18, 38)]
        every = [self._present, *passed, *(self._test("survives", type_) for type_ in decimals)]
        return list(dict.fromkeys([*every, *(self._kept(one) for one in every)]))

    def _kept(self, test: _Test) -> _Test:
        """The test of a type by which texts are written back with their marks too."""
        return replace(test, kind="kept") if test.kind == "survives" and not test.marks.are_plain else test

    def tests_for_hints(self, first: Mapping[_Test, int | None], every: Mapping[_Test, int | None]) -> list[_Test]:
        """List the tests whose results people are told for a column that stays text."""
        present = first.get(self._present)
        if self._wanted is not None or not present or self._chosen(every) is not None:
            return []
        number, punctuated, amount = (self._test(kind) for kind in ("number", "punctuated", "amount"))
        tried = [*self._by_format(USUAL_DATES), *self._of_types()]
        dates = [test for test in tried if first.get(test) == present]
        amounts = [punctuated, amount] if first[amount] == present else []
        dates += [test for test in map(self._test, _OF_TIME) if first.get(test) == present]
        if 2 * max(first[number] or 0, first[punctuated] or 0) <= present:
            return [*dates, *amounts]
        return [number, self._test("casts", "BIGINT"), *self._of_marks(), *dates, *amounts]

    def _of_types(self) -> list[_Test]:
        return [self._test("casts", type_) for type_ in _OF_POLICY]

    def _chosen(self, counts: Mapping[_Test, int | None]) -> _Test | None:
        """The first test of a type that all values pass; None where there is none, or no value."""
        present = counts[self._present]
        types = _TYPES if self._wanted is None else (self._wanted,)
        kind = "survives" if self._wanted is None else "casts"
        decimals = [test.type for test in counts if (test.type or "").startswith("DEC")]
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
        passed = max(count or 0 for test, count in self.counts.items() if test.kind in ("casts", "parses"))
        return (
            f"source.types: {present - passed:,} of the {present:,} values of {Identifier(self._name)} are no"
            f" {self._wanted}; name another type, {self._remedy()}, or what stands for NULL (source.null)."
        )

    def _remedy(self) -> str:
        if (self._wanted or "").startswith(_NUMBERS):
            return "the marks of its numbers (source.decimal, source.thousands)"
        return "the format of its dates (source.dates)"

    def decision(self) -> ReadColumn:
        """The type of the column, and why."""
        present, chosen = self.counts[self._present] or 0, self._chosen(self.counts)
        if self._wanted is not None:
            return self._as_wanted(present, chosen)
        if chosen is None or chosen.type is None:
            return self._as_text(present)
        if chosen.format is not None:
            reason = f"{chosen.type} by the format {chosen.format}; written as ISO 8601"
            return ReadColumn(self._name, chosen.type, reason, chosen.format, remarkable=True)
        if self.counts[self._kept(chosen)] == present:
            return ReadColumn(self._name, chosen.type, f"{chosen.type}: all values are written back as they are")
        reason = f"{chosen.type}: numbers with {chosen.marks}; written with a point and without marks of thousands"
        return ReadColumn(self._name, chosen.type, reason, remarkable=True)

    def _as_text(self, present: int) -> ReadColumn:
        fits, are_numbers = self._fits(present), present > 0 and self.counts.get(self._test("number")) == present
        hint = self._hint(present, fits)
        return ReadColumn(
            self._name,
            "VARCHAR",
            hint or "text",
            remarkable=hint is not None,
            are_numbers=are_numbers,
            hint=hint,
            fits=fits,
        )

    def _as_wanted(self, present: int, chosen: _Test | None) -> ReadColumn:
        type_ = self._wanted or "VARCHAR"
        otherwise = present - (self.counts[self._kept(self._test("survives", type_))] or 0)
        reason = f"{type_}, as the policy says"
        if otherwise and type_ != "VARCHAR":
            reason += f"; {otherwise:,} of its {present:,} values are written otherwise than in the file"
        return ReadColumn(self._name, type_, reason, None if chosen is None else chosen.format, remarkable=True)

    def _fits(self, present: int) -> Fits:
        """List what would read all values of a column that stays text."""
        passed = {test for test, count in self.counts.items() if count == present}
        if not present:
            return Fits()
        if self._test("casts", "BIGINT") in passed and self._test("number") in passed:
            return Fits(type="integer")
        if self._test("number") in passed:
            return Fits(type=None if self._marks.are_plain else "double")
        types = [name for type_, name in _OF_POLICY.items() if self._test("casts", type_) in passed]
        if types:
            return Fits(type=types[0])
        dates = [test.format for test in self._by_format(USUAL_DATES) if test in passed and test.format is not None]
        marks = [test.marks for test in self._of_marks() if test in passed]
        return Fits(tuple(dates), tuple(marks))

    def _hint(self, present: int, fits: Fits) -> str | None:
        """Suggest what to write for a column that stays text, where it need not."""
        if fits.type is not None:
            return f"text, as its values would be written otherwise; source.types ({fits.type}) reads them"
        if fits.dates:
            return f"text; its values fit the dates {' and '.join(fits.dates)}: source.dates reads them as dates"
        if kind := next((kind for kind in _OF_TIME if self.counts.get(self._test(kind)) == present > 0), None):
            return (
                f"text; its values are {kind}, which no format of dates reads: a hierarchy (mapping) generalizes them"
            )
        if fits.marks:
            return f"text; its values are numbers with {' or '.join(map(str, fewest(fits.marks)))}: say it in source"
        counts = {test: count for test, count in self.counts.items() if test == self._test("number")}
        counts |= {test: self.counts[test] for test in self._of_marks() if test in self.counts}
        best = max(counts, key=lambda test: counts[test] or 0, default=None)
        numbers = 0 if best is None else counts[best] or 0
        if 0 < numbers == present:
            return "text, as its numbers would be written otherwise; source.types (double) reads them as numbers"
        if self.counts.get(self._test("amount")) == present != self.counts.get(self._test("punctuated")):
            return "text, as its numbers have signs (currency, percent, parentheses); write plain ones into the file"
        if best is None or 2 * numbers <= present:
            return None
        with_marks = "" if best.marks == self._marks else f" with {best.marks}"
        return (
            f"text, as {present - numbers:,} of its {present:,} values are no numbers{with_marks}; if they stand for"
            " NULL, name them in source.null"
        )


def _count(engine: Engine, texts: Relation, tests: _Tests) -> dict[str, _Counts]:
    """Count the values of each column that pass each of its tests: a statement for so many columns."""
    counts: dict[str, _Counts] = {name: {} for name in tests}
    for part in _parts([name for name, of in tests.items() if of], _COLUMNS_A_STATEMENT):
        asked = [test for name in part for test in tests[name]]
        row = engine.query_one("engines/count_texts", table=texts, tests=[test.arguments() for test in asked])
        for test, count in zip(asked, row, strict=True):
            counts[test.column][test] = count
    return counts


def _count_first(engine: Engine, texts: Relation, tests: _Tests, limit: int) -> dict[str, _Counts]:
    """Count the same in the first rows: columns with the same tests are taken together, as planning is what costs."""
    same: dict[tuple[_Test, ...], list[str]] = {}
    for name, of in tests.items():
        same.setdefault(tuple(replace(test, column="text") for test in of), []).append(name)
    counts: dict[str, _Counts] = {}
    for asked, names in same.items():
        arguments = [test.arguments() for test in asked]
        for part in _parts(names, _COLUMNS_TOGETHER):
            columns = [Identifier(name) for name in part]
            rows = engine.query("engines/count_first_texts", table=texts, columns=columns, tests=arguments, limit=limit)
            counts |= {
                name: dict(zip(tests[name], row, strict=True)) for name, (_, *row) in zip(part, rows, strict=True)
            }
    return counts


def _parts(names: Sequence[str], most: int) -> Iterator[Sequence[str]]:
    return (names[start : start + most] for start in range(0, len(names), most))


def type_of_format(format_: str) -> str:
    """The type of values with a format of dates, moments or times."""
    if "%z" in format_:
        return "TIMESTAMPTZ"
    if not any(part in format_ for part in _TIME_PARTS):
        return "DATE"
    return "TIMESTAMP" if any(part in format_ for part in _DAY_PARTS) else "TIME"


def _lossless(type_: str) -> str | None:
    """The texts that a type takes as they are, where it would round others."""
    if type_.startswith("DECIMAL"):
        scale = int(type_.rstrip(")").partition(",")[2])
        return rf"\s*[-+]?[0-9]*(\.[0-9]{{0,{scale}}}0*)?\s*"
    return _LOSSLESS.get(type_)
