"""Options for reading a file, from the policy, and the decision on each of the file's columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    "time": "TIME",
}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)", re.IGNORECASE)
_MOST_DIGITS = 38
_DELIMITERS = {",": "commas", ";": "semicolons", ":": "colons", " ": "spaces", "\t": "tabs", "\x1f": "unit separators"}


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


@dataclass(frozen=True)
class ReadOptions:
    """The policy's options for its source file.

    delimiter: between fields; None for the one that the header shows.
    null: fields without quotes that stand for NULL.
    types: columns and the type of each, as policies name types; other columns are judged by their values.
    dates: formats (of strptime) of columns that hold dates or moments.
    is_checked: whether the reading is held against a second one.
    """

    delimiter: str | None = None
    encoding: str = UTF_8
    null: tuple[str, ...] = ("",)
    types: Mapping[str, str] = field(default_factory=dict)
    dates: tuple[str, ...] = ()
    is_checked: bool = True


@dataclass(frozen=True)
class ReadColumn:
    """The decision on a column of a file: its type, the format of its dates, and the reason, in words.

    are_numbers: the column stays text, though all its values are numbers.
    """

    name: str
    type: str
    reason: str
    format: str | None = None
    remarkable: bool = False  # whether people should look at it
    are_numbers: bool = False


@dataclass(frozen=True)
class FileReading:
    """A file as a relation of the session, and how it was read. Nothing is decided of a Parquet file.

    delimiter, encoding, null: of delimited text.
    """

    relation: Relation
    format: str
    columns: tuple[ReadColumn, ...] = ()
    delimiter: str | None = None
    encoding: str | None = None
    null: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The public form, with what there is to tell."""
        given = {"delimiter": self.delimiter, "encoding": self.encoding, "null": list(self.null) or None}
        columns = [{"name": one.name, "type": one.type, "reason": one.reason} for one in self.columns]
        return {"format": self.format, **{key: value for key, value in given.items() if value}, "columns": columns}

    def lines(self) -> list[str]:
        """The same for people: a line on the file, and a line for each column that is worth a look."""
        if not self.columns:
            return []
        head = f"{self.format} file"
        if self.delimiter is not None:
            shown = _DELIMITERS.get(self.delimiter, f"'{self.delimiter}'")
            nulls = " or ".join("nothing" if text == "" else text for text in self.null)
            head += f", {self.encoding}, fields divided by {shown}, NULL where a field without quotes is {nulls or '-'}"
        return [head, *(f"{one.name}: {one.reason}" for one in self.columns if one.remarkable)]
