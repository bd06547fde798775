"""Options for reading a file: a policy's, those that a file suggests, and each column's reading."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from sqlanon.errors import PolicyError
from sqlanon.sql import Relation

UTF_8 = "utf-8"


_NAMED = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "hugeint": "HUGEINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
    "time": "TIME",
}


_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)", re.IGNORECASE)


_MOST_DIGITS = 38


_DELIMITERS = {",": "commas", ";": "semicolons", ":": "colons", " ": "spaces", "\t": "tabs", "\x1f": "unit separators"}


DECIMALS = (".", ",")


_BLANKS = {" ": "blank", "\u00a0": "no-break space", "\u202f": "narrow no-break space", "\u2009": "thin space"}


THOUSANDS = (".", ",", "'", "\u2019", *_BLANKS)


_LEFT_TO_PEOPLE = ("time",)  # 10:30 may be a length of time


def type_named(name: str) -> str:
    """The engine's name of a type that a policy names, such as integer or decimal(9,2); raises PolicyError."""
    if name.lower() in _NAMED:
        return _NAMED[name.lower()]
    decimal = _DECIMAL.fullmatch(name)
    if decimal and 0 < int(decimal[1]) <= _MOST_DIGITS and int(decimal[2]) <= int(decimal[1]):
        return f"DECIMAL({int(decimal[1])},{int(decimal[2])})"
    raise PolicyError(f"'{name}' is not a type of a file's column: there are {', '.join(_NAMED)} and decimal(p,s).")


def is_text_encoding(name: str) -> bool:
    """Tell whether Python knows an encoding of text by this name."""
    try:
        "".encode(name)
    except (LookupError, ValueError):
        return False
    return True


_VALUES = frozenset({"null", "types", "dates", "decimal", "thousands"})


_MAY_BE_EMPTY = ("null", "header")  # an empty list, and false, say something


_EFFECTIVE = {  # what can be said of each format of files; of delimited text everything
    "xlsx": (_VALUES | {"header", "names"}, "a spreadsheet, whose cells are apart"),
    "json": (_VALUES, "JSON: UTF-8, whose objects name their values"),
    "parquet": (frozenset[str](), "Parquet, which has names, types and NULLs of its own"),
}


@dataclass(frozen=True)
class ReadOptions:
    """The policy's options for its source file; None and nothing stand for what the file shows by itself.

    delimiter: between fields; by default the one that the first line shows.
    encoding: of the text; UTF-8 by default.
    null: fields without quotes that stand for NULL, by default the empty one; of JSON and spreadsheets, texts that do.
    types: columns and the type of each, as policies name types; other columns are judged by their values.
    dates: formats (of strptime) of columns that hold dates or moments.
    header: whether the first line holds the names of the columns; None where this is not said.
    names: the names of the columns, in place of those in the first line, or of none.
    decimal, thousands: the marks within numbers; see `NumberMarks`.
    is_checked: whether the reading is held against a second one.
    """

    delimiter: str | None = None
    encoding: str | None = None
    null: tuple[str, ...] | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    dates: tuple[str, ...] = ()
    header: bool | None = None
    names: tuple[str, ...] = ()
    decimal: str | None = None
    thousands: str | None = None
    is_checked: bool = True

    @property
    def marks(self) -> NumberMarks:
        """The marks within numbers."""
        return NumberMarks(self.decimal or PLAIN.decimal, self.thousands)

    def given(self) -> dict[str, Any]:
        """The options that say something, by their names in policies."""
        values = {name: getattr(self, name) for name in POLICY_OPTIONS}
        return {key: value for key, value in values.items() if value is not None and (value or key in _MAY_BE_EMPTY)}

    def problems(self) -> list[str]:
        """List what is wrong with the options, whatever the file; each is said of `source`."""
        problems = self.marks.problems()
        folded = [name.casefold() for name in self.names]
        if self.names and self.header is None:
            problems.append(
                "has names, and must say what the first line holds: header: false for data; header: true for names"
                " that these are to replace."
            )
        if not all(folded) or len(set(folded)) < len(folded):
            problems.append("has names of which one is empty, or there twice; case does not tell names apart.")
        return problems

    def ineffective(self, format_: str) -> dict[str, Any]:
        """The options that do nothing for a format of files."""
        effective, _ = _EFFECTIVE.get(format_, (frozenset(self.given()), ""))
        return {key: value for key, value in self.given().items() if key not in effective}

    def require_effective(self, format_: str, path: str) -> None:
        """Refuse wrong options, and those that do nothing for a file of this format. Raises PolicyError."""
        problems = [f"source {problem}" for problem in self.problems()]
        if idle := list(self.ineffective(format_)):
            effective, kind = _EFFECTIVE[format_]
            rest = f"; it takes {', '.join(sorted(effective))}" if effective else ""
            problems.append(
                f"source: {' and '.join(idle)} can't be said of {path}, as it is {kind}; leave this out{rest}."
            )
        if problems:
            raise PolicyError(problems)


POLICY_OPTIONS = tuple(one.name for one in fields(ReadOptions) if one.name != "is_checked")


"""The options that a policy can say of its source."""


@dataclass(frozen=True)
class Fits:
    """The ways to read all values of a column that stays text: formats of dates, marks of numbers, a type."""

    dates: tuple[str, ...] = ()
    marks: tuple[NumberMarks, ...] = ()
    type: str | None = None


@dataclass(frozen=True)
class ReadColumn:
    """The decision on a column of a file: its type, the format of its dates, and the reason, in words.

    are_numbers: the column stays text, though all its values are numbers.
    hint: what the policy can say of a column that stays text, for it to be more; None for nothing.
    fits: what would read all values of such a column; of fractions, the marks that would fit them too.
    """

    name: str
    type: str
    reason: str
    format: str | None = None
    remarkable: bool = False  # whether people should look at it
    are_numbers: bool = False
    hint: str | None = None
    fits: Fits = Fits()

    @property
    def is_fraction(self) -> bool:
        """Tell whether the column was read as numbers with a decimal mark."""
        return self.type == "DOUBLE" or self.type.startswith("DECIMAL")


@dataclass(frozen=True)
class FileReading:
    """A file as a relation of the session, and how it was read. Nothing is decided of a Parquet file.

    delimiter, encoding, null: of delimited text.
    options: those by which it was read.
    """

    relation: Relation
    format: str
    columns: tuple[ReadColumn, ...] = ()
    delimiter: str | None = None
    encoding: str | None = None
    null: tuple[str, ...] = ()
    options: ReadOptions = field(default_factory=ReadOptions)

    def as_json(self) -> dict[str, Any]:
        """The public form, with what there is to tell."""
        given: dict[str, Any] = {"delimiter": self.delimiter, "encoding": self.encoding, "null": list(self.null)}
        given |= {key: getattr(self.options, key) for key in ("header", "decimal", "thousands")}
        columns = [{"name": one.name, "type": one.type, "reason": one.reason} for one in self.columns]
        return {
            "format": self.format,
            **{key: it for key, it in given.items() if it not in (None, [])},
            "columns": columns,
        }

    def lines(self) -> list[str]:
        """The same for people: a line on the file, and a line for each column that is worth a look."""
        if not self.columns:
            return []
        head = f"{self.format} file"
        if self.delimiter is not None:
            shown = _DELIMITERS.get(self.delimiter, f"'{self.delimiter}'")
            nulls = " or ".join("nothing" if text == "" else text for text in self.null)
            head += f", {self.encoding}, fields divided by {shown}, NULL where a field without quotes is {nulls or '-'}"
        if self.options.header is False:
            head += ", no names in its first line"
        return [head, *(f"{one.name}: {one.reason}" for one in self.columns if one.remarkable)]


@dataclass(frozen=True)
class NumberMarks:
    """The decimal mark of numbers, and the mark between groups of three digits; None where digits are not grouped."""

    decimal: str = "."
    thousands: str | None = None

    @property
    def are_plain(self) -> bool:
        """Tell whether the numbers are written as databases write them."""
        return self == PLAIN

    @property
    def form(self) -> str:
        """The pattern of the numbers, with blanks around: either all thousands are divided, or none."""
        grouped = "" if self.thousands is None else f"[0-9]{{1,3}}(?:{re.escape(self.thousands)}[0-9]{{3}})+|"
        return rf"\s*[-+]?(?:{grouped}[0-9]+)?(?:{re.escape(self.decimal)}[0-9]*)?(?:[eE][-+]?[0-9]+)?\s*"

    def problems(self) -> list[str]:
        """List what is wrong with the marks; each is said of `source`."""
        problems = []
        if self.decimal not in DECIMALS:
            problems.append("has a wrong decimal: it is . or , in quotes.")
        if self.thousands is not None and self.thousands not in THOUSANDS:
            problems.append(
                "has a wrong thousands: it is one of . , ' \u2019 in quotes, a blank, or a no-break, narrow no-break"
                ' or thin space ("\\u00a0", "\\u202f", "\\u2009").'
            )
        if self.thousands == self.decimal:
            problems.append(f"has {_shown(self.decimal)} as decimal (the default is .) and as thousands; name another.")
        return problems

    def __str__(self) -> str:
        """The marks as policies write them."""
        parts = [f"decimal: {_shown(self.decimal)}"] if self.decimal != PLAIN.decimal else []
        return " and ".join([*parts, *([f"thousands: {_shown(self.thousands)}"] if self.thousands else [])])


PLAIN = NumberMarks()


CUSTOMARY = tuple(
    NumberMarks(decimal, thousands)
    for decimal in reversed(DECIMALS)
    for thousands in (None, *THOUSANDS)
    if thousands != decimal and (decimal, thousands) != (".", None)
)


"""The marks that columns of texts are tried with, so that people are told what to write."""


def fewest(candidates: Sequence[NumberMarks]) -> list[NumberMarks]:
    """Those of the marks that each do without another: no mark of thousands where none is needed, else a point."""
    without = [one for one in candidates if one.thousands is None or NumberMarks(one.decimal) not in candidates]
    return [one for one in without if one.decimal == "." or NumberMarks(".", one.thousands) not in without]


def _shown(mark: str) -> str:
    """A mark in quotes, as YAML takes it; blanks that look alike are told by their numbers and names."""
    if mark in _BLANKS and mark != " ":
        return f'"\\u{ord(mark):04x}" ({_BLANKS[mark]})'
    return f'"{mark}"'


def suggested(reading: FileReading) -> ReadOptions:
    """The options by which a file was read, and those that would make more of columns that stayed text.

    Marks of numbers and formats of dates hold for the whole file, so that they are suggested where one fits all columns
    that need any. Columns of a file without names are called as they were.
    """
    options, columns = reading.options, reading.columns
    marks = _marks(columns)
    if marks is not None and options.thousands is None and options.decimal in (None, marks.decimal):
        decimal = None if marks.decimal == "." else marks.decimal
        options = replace(options, decimal=options.decimal or decimal, thousands=marks.thousands)
    kinds = {one.name: one.fits.type for one in columns}
    types = {name: type_ for name, type_ in kinds.items() if type_ is not None and type_ not in _LEFT_TO_PEOPLE}
    options = replace(
        options, types={**types, **options.types}, dates=tuple(dict.fromkeys((*options.dates, *_dates(columns))))
    )
    if options.header is False and not options.names:
        options = replace(options, names=tuple(one.name for one in columns))
    return options


def _marks(columns: Iterable[ReadColumn]) -> NumberMarks | None:
    """The marks that all numbers of the file have, where some have other marks than those of databases."""
    sets = [set(one.fits.marks) for one in columns if one.fits.marks or one.is_fraction]
    if not any(one.fits.marks and one.type == "VARCHAR" for one in columns):
        return None
    common = set.intersection(*sets)
    least = fewest([marks for marks in CUSTOMARY if marks in common])
    return least[0] if len(least) == 1 else None


def _dates(columns: Sequence[ReadColumn]) -> list[str]:
    """The formats that are the only ones to fit a column, and leave no other column in doubt.

    Months are left to people, as they lack a day, and years of two digits, as `1.2.03` may be a number of a version.
    """
    single = [one.fits.dates[0] for one in columns if len(one.fits.dates) == 1]
    only = {form for form in single if "%d" in form and "%Y" in form}
    if any(len(only.intersection(one.fits.dates)) > 1 for one in columns):
        return []
    return sorted(only)
