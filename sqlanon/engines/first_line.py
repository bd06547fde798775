"""The first line of delimited text held against the lines below it: names of columns, or data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlanon.errors import PolicyError
from sqlanon.sql import Identifier, Relation, Text

_FIRST_ROWS = 2_000
_COLUMNS_A_STATEMENT = 50
_DIGITS = re.compile(r"[0-9]+")
_SIGNS_OF_KEYS = re.compile(r"[0-9A-Za-z]")
_LEAST_KEY = 12  # characters of keys whose digits and letters have no order, such as UUIDs and hashes
_WHOLE = re.compile(r"[0-9]+")
_NO_VALUE = {"na", "n/a", "nan", "null", "none", "nil", "unknown", "missing", "k.a."}
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")

Query = Callable[..., Sequence[Any]]
"""Render a template with its arguments, and give the one row of its statement."""


class UndecidedHeader(PolicyError):
    """The first line of a file reads like data, and nobody said whether it holds the names of the columns."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"The first line of {path} reads like data, not like names of columns; it would be the header of all that"
            " is published. Say in source: header: false, with names: [...] for the columns, or header: true if it does"
            " hold names. On a command line that takes the file itself: --no-header or --header."
        )

    def __reduce__(self) -> tuple[type[PolicyError], tuple[tuple[str, ...]]]:
        return PolicyError, (self.problems,)


def reads_like_data(query: Query, texts: Relation, first: dict[str, str]) -> bool:
    """Tell whether the first line of a file is like those below it.

    texts: the lines below, as texts. first: the field in the first line of each column of `texts`.

    A field speaks for data that occurs below in its column, that is an address of mail, or that holds digits and has
    the form of a value there: `39`, `1.5`, `A12`, `03.04.1980`, or of all values, as keys have. A field with letters,
    and no digits, over values that all have digits speaks for names, unless it is a word for no value. Where both
    occur, the more fields decide, and whole numbers count for nothing: years, and places in a row, are names too.
    A line without any name holds data. Where nothing else speaks, so does one that lacks a name above values and before
    other names, unless these are the numbers of rows in the first column.
    """
    fields = [_Field(column, text, is_first=place == 0) for place, (column, text) in enumerate(first.items())]
    if all(one.is_nameless for one in fields):
        return True
    for part in _parts(fields):
        row = query(
            "engines/compare_first_line", table=texts, columns=[one.arguments() for one in part], limit=_FIRST_ROWS
        )
        for place, one in enumerate(part):
            one.present, one.equal, one.formed, one.keyed, one.digits, one.years = row[6 * place : 6 * place + 6]
    if not any(one.present for one in fields):
        return any(one.is_figure for one in fields)
    names = sum(one.is_name for one in fields)
    data = sum(one.is_data for one in fields)
    if data or names:
        return data > names
    while not fields[-1].text:
        fields.pop()
    return any(one.is_number or one.is_gap for one in fields) or _any_occurs(query, texts, fields)


def _any_occurs(query: Query, texts: Relation, fields: Sequence[_Field]) -> bool:
    """Tell whether a field of the first line is a value anywhere below it, in its column."""
    for part in _parts([one for one in fields if one.text]):
        columns = [{"name": Identifier(one.column), "text": Text(one.text)} for one in part]
        if any(query("engines/count_equal_texts", table=texts, columns=columns)):
            return True
    return False


@dataclass
class _Field:
    """A field of the first line, and how many of the first values below are present, equal, of its form, with digits.

    keyed: how many differ from it in digits and letters alone. years: how many are years.
    """

    column: str
    text: str
    is_first: bool
    present: int = 0
    equal: int = 0
    formed: int = 0
    keyed: int = 0
    digits: int = 0
    years: int = 0

    def arguments(self) -> dict[str, object]:
        return {
            "name": Identifier(self.column),
            "text": Text(self.text),
            "form": Text(_DIGITS.sub("9", self.text)),
            "key": Text(_SIGNS_OF_KEYS.sub("x", self.text)),
        }

    @property
    def is_nameless(self) -> bool:
        """Tell whether the field has nothing of a name: no letter or digit, or a word for no value."""
        return not any(char.isalnum() for char in self.text) or self.text.strip().lower() in _NO_VALUE

    @property
    def is_gap(self) -> bool:
        """Tell whether a name is lacking above values; the first column may be one of numbers of rows."""
        is_index = self.is_first and not self.text and self.digits == self.present
        return self.is_nameless and self.present > 0 and not is_index

    @property
    def is_key(self) -> bool:
        """Tell whether all values are keys as the field is."""
        return self.has_digits and len(self.text) >= _LEAST_KEY and 0 < self.keyed == self.present

    @property
    def has_digits(self) -> bool:
        return _DIGITS.search(self.text) is not None

    @property
    def is_figure(self) -> bool:
        """Tell whether the field is a number or date, by itself, and no year."""
        is_year = _YEAR.fullmatch(self.text) is not None
        return self.has_digits and not is_year and not any(char.isalpha() for char in self.text)

    @property
    def is_data(self) -> bool:
        return (
            (self.equal > 0 and self.text != "")
            or "@" in self.text
            or self.is_key
            or (self.formed > 0 and self.has_digits and _WHOLE.fullmatch(self.text) is None)
        )

    @property
    def is_number(self) -> bool:
        """Tell whether the field is a whole number over such; a year over other numbers is a name."""
        is_year = _YEAR.fullmatch(self.text) is not None
        return self.formed > 0 and _WHOLE.fullmatch(self.text) is not None and (not is_year or self.years > 0)

    @property
    def is_name(self) -> bool:
        has_letters = any(char.isalpha() for char in self.text)
        return 0 < self.digits == self.present and has_letters and not self.has_digits and not self.is_nameless


def _parts(fields: Sequence[_Field]) -> Iterator[list[_Field]]:
    rest = iter(fields)
    while part := list(islice(rest, _COLUMNS_A_STATEMENT)):
        yield part
