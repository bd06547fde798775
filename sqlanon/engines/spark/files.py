"""Files that Spark reads where the session is: Parquet, and CSV as strict as Spark can be made.

Spark itself takes a quote that is never closed for one field up to the end, drops blank lines, reads `""` as NULL and
bytes that are no UTF-8 as others. So lines are checked before: each has all fields, and ends outside of quotes.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from sqlanon.engines.files import STANDARD_INPUT, column_names
from sqlanon.engines.first_line import UndecidedHeader, reads_like_data
from sqlanon.engines.read_options import UTF_8, FileReading, ReadColumn, ReadOptions, type_named
from sqlanon.engines.spark.errors import condition_of, is_denied
from sqlanon.errors import AccessError, ConflictError, EngineError, PolicyError, SqlanonError
from sqlanon.sql import Expression, Identifier, Relation, Text, short_hash

if TYPE_CHECKING:
    from sqlanon.engines.spark.engine import SparkEngine

Columns = list[tuple[str, Any]]
_EMPTY = "\ufdd0"  # stands for an empty text in quotes; Unicode keeps it for the use inside of programs
_CSV = (".csv", ".csv.gz")
_PARQUET = ".parquet"
_WILDCARD = re.compile(r"[*?\[{]")
_REMEDY = "there, or all of them by the policy (source: header: true, names: [...])"
_OF_HEADER = "CSV header does not conform to the schema"
_OTHERS = (".tsv", ".json", ".jsonl", ".ndjson", ".xlsx", ".gz", ".zst", ".orc", ".avro", ".txt")
_FORMS = {
    "text": "",
    "integer": r"[-+]?\d{1,19}",
    "hugeint": r"[-+]?\d{1,38}",
    "double": r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?",
    "boolean": r"(?i)true|false",
    "date": r"\d{4}-\d\d-\d\d",
    "timestamp": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?",
    "timestamptz": r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[-+]\d\d(:?\d\d)?)",
}
"""The form that texts have which are read as a type: Spark would take `1d` for a number and `2024` for a day."""
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_READING = (
    ("inferSchema", "false"),
    ("mode", "FAILFAST"),
    ("columnPruning", "false"),
    ("quote", '"'),
    ("escape", '"'),
    ("emptyValue", _EMPTY),
)


class FilesOfSpark:
    """The files at a path or pattern, where a session with Spark is."""

    def __init__(self, engine: SparkEngine, path: str) -> None:
        self._engine = engine
        self._path = path

    def read(self, relation: Relation, options: ReadOptions) -> FileReading:
        """Make a temporary view of all rows; see `Engine.read_file`.

        Raises PolicyError for files that are missing, of another kind, or not as `options` say.
        """
        options.require_effective("csv" if _is_csv(self._path) else "parquet", self._path)
        if _is_csv(self._path):
            return self._read_csv(relation, options)
        if self._path == STANDARD_INPUT or self._path.lower().endswith(_OTHERS):
            raise PolicyError(f"{self._path} is not a kind of file that Spark reads here: .parquet, .csv or .csv.gz.")
        self._view(relation, "parquet")
        self._require_same_columns(relation)
        return FileReading(relation, "parquet")

    def version(self) -> tuple[int, ...] | None:
        """The number, size and a hash of names, sizes and times of the files; None where there are none."""
        files = self._name_view("listed")
        try:
            self._view(files, "binaryFile")
        except PolicyError:
            return None
        (version,) = self._engine.query_there("engines/measure_files", files=files)
        return tuple(map(int, version))

    def _read_csv(self, relation: Relation, options: ReadOptions) -> FileReading:
        self._refuse_options(options)
        delimiter, texts = options.delimiter or ",", self._name_view("texts")
        has_header = options.header is not False
        form = (*_READING, ("header", str(has_header).lower()), ("sep", delimiter))
        renames = bool(options.names) and not _WILDCARD.search(self._path)  # so that no header has to have these names
        self._view(texts, "csv", (*form, ("enforceSchema", str(renames).lower())))
        own = [name for name, _ in self._columns(texts)]
        self._check_lines(len(own), delimiter)
        if options.header is None:
            self._require_header(own, form)
        if has_header and not renames:
            self._check_names(texts, own)
        names = column_names(
            ["" if name == f"_c{place}" else name for place, name in enumerate(own)], options, self._path
        )
        if unknown := [name for name in options.types if name not in names]:
            raise PolicyError(f"{self._path} has no column {Identifier(unknown[0])} (source.types).")
        listed = [
            {"name": Identifier(name), "text": Identifier(text), "type": _cast(options.types.get(name))}
            for name, text in zip(names, own, strict=True)
        ]
        self._check_types(texts, listed, options)
        self._engine.run_there("engines/view_texts", view=relation, texts=texts, columns=listed, empty=Text(_EMPTY))
        columns = tuple(_column_as_read(name, options.types.get(name)) for name in names)
        return FileReading(relation, "csv", columns, delimiter, UTF_8, ("",), options)

    def _refuse_options(self, options: ReadOptions) -> None:
        """Refuse to read text in ways that Spark has not."""
        given = options.given()
        idle = [key for key in ("dates", "decimal", "thousands") if key in given]
        idle += ["encoding"] if (options.encoding or UTF_8).lower().replace("-", "") != "utf8" else []
        idle += ["null"] if given.get("null", ("",)) != ("",) else []
        if idle:
            raise PolicyError(
                f"{self._path}: Spark reads text of UTF-8 in which NULL is a field with nothing in it, days are as"
                f" 2024-12-31 and numbers as 1234.5; leave out {', '.join(idle)}, and convert the file where it is"
                " otherwise."
            )

    def _require_header(self, names: Sequence[str], form: Sequence[tuple[str, str]]) -> None:
        """Refuse a first line that reads like data, where nobody said what it holds; its names are not checked yet."""
        texts = self._name_view("first")
        self._view(texts, "csv", form)
        first = {name: "" if name == f"_c{place}" else name for place, name in enumerate(names)}
        if reads_like_data(lambda name, **kwargs: self._engine.query_there(name, **kwargs)[0], texts, first):
            raise UndecidedHeader(self._path)

    def _check_lines(self, fields: int, delimiter: str) -> None:
        lines = self._name_view("lines")
        self._view(lines, "text")
        ((foreign, malformed),) = self._engine.query_there(
            "engines/count_malformed_lines", lines=lines, form=Text(_form_of_line(fields, delimiter))
        )
        if foreign:
            raise PolicyError(f"{self._path}: lines that are not UTF-8: {foreign:,}; convert the file.")
        if malformed:
            raise PolicyError(
                f"{self._path}: lines with more or fewer fields than the header, or with a quote that does not begin"
                f" and end a field: {malformed:,}. Where fields hold line ends, write the table as Parquet."
            )

    def _check_names(self, texts: Relation, names: Sequence[str]) -> None:
        """Refuse headers that Spark would find to be others than the names that it has made of them.

        It numbers names that are equal, but for case, so that they differ, and names a column that has none.
        """
        problems = _problems_of_header(names)
        if not problems and not _WILDCARD.search(self._path):
            return
        try:
            self._engine.query_there("count_rows", table=texts)
        except EngineError as error:
            if _OF_HEADER not in str(error.__cause__):
                raise
            several = ["the files do not have the same columns in the same order, by the names in their headers."]
            raise PolicyError([f"{self._path}: {problem}" for problem in problems or several]) from None

    def _check_types(self, texts: Relation, listed: Sequence[dict[str, Any]], options: ReadOptions) -> None:
        kinds = options.types
        typed = [
            one | {"form": Text(_form_of_type(kinds[one["name"].name]))} for one in listed if one["type"] is not None
        ]
        if not typed:
            return
        (counts,) = self._engine.query_there("engines/count_mistyped_values", texts=texts, columns=typed)
        wrong = [
            f"{self._path}: {count:,} values of column {one['name']} are no {kinds[one['name'].name]} (source.types)."
            for one, count in zip(typed, counts, strict=True)
            if count
        ]
        if wrong:
            raise PolicyError(wrong)

    def _require_same_columns(self, relation: Relation) -> None:
        """Refuse files of other columns: Spark would read what one of them lacks as NULL."""
        whole, one = self._columns(relation), self._name_view("one")
        first: Columns | None = None
        for path in self._list():
            FilesOfSpark(self._engine, path)._view(one, "parquet")
            own = self._columns(one)
            first = first or own
            if own != first or own != whole[: len(own)]:  # columns of directories, such as day=1, come last
                raise PolicyError(
                    f"The files of {self._path} do not have the same columns in the same types and order."
                )

    def _list(self) -> Iterator[str]:
        files = self._name_view("listed")
        self._view(files, "binaryFile")
        for (path,) in self._engine.query_there("engines/list_files", files=files):
            yield path

    def _view(self, view: Relation, form: str, options: Sequence[tuple[str, str]] = ()) -> None:
        """Make a temporary view of the files."""
        listed = [(Text(name), Text(value)) for name, value in (("path", self._path), *options)]
        try:
            self._engine.run_there("engines/view_files", view=view, format=Identifier(form), options=listed)
        except SqlanonError as error:
            cause = error.__cause__ or error
            if condition_of(cause).startswith("PATH_NOT_FOUND"):
                raise PolicyError(f"There is no file {self._path} where Spark is.") from None
            if is_denied(cause):
                raise AccessError(f"The file {self._path} can't be read where Spark is: permission denied.") from None
            raise

    def _columns(self, view: Relation) -> Columns:
        described = self._engine.describe(view)
        if described is None:
            raise ConflictError(f"The view of {self._path} was dropped meanwhile. Run again.")
        return [(column["name"], column["type"]) for column in described["columns"]]

    def _name_view(self, meaning: str) -> Relation:
        """Name a temporary view that goes with these files."""
        return Relation(f"{meaning}_{short_hash(self._path)}")


def write_directory(engine: SparkEngine, relation: Relation, path: Path) -> None:
    """Write the rows of a relation as Parquet files of a new directory of this machine, without marks of Spark's."""
    engine.run_there("engines/write_directory", relation=relation, path=Text(f"file:{path}"))
    for written in path.iterdir():
        if written.suffix != _PARQUET:
            engine.files.remove(written)


def copy_directory(files: Path, path: Path) -> None:
    """Copy Parquet files into a new directory of this machine; by links, where both are on one disk.

    The files of a sorted table are in its order by their names. A query that reads them may take them in another one.
    """
    path.mkdir(mode=0o700)
    for file in files.glob(f"*{_PARQUET}"):
        try:
            os.link(file, path / file.name)
        except OSError:
            shutil.copy2(file, path / file.name)


def _problems_of_header(names: Sequence[str]) -> list[str]:
    """List the columns that Spark may have named itself, by their numbers from 0, as problems of the header."""
    problems, numbered = [], defaultdict(list)
    for number, name in enumerate(names):
        if name == f"_c{number}":
            problems.append(f"column {number + 1} has no name in the header; give it one {_REMEDY}.")
        elif name.endswith(str(number)):
            own = name.removesuffix(str(number))
            numbered[own.casefold()].append(str(Identifier(own)))
    problems += [
        f"columns {' and '.join(own)} have one name in the header, but for case, by which Spark does not tell names"
        f" apart: call one of them otherwise {_REMEDY}."
        for own in numbered.values()
        if len(own) > 1
    ]
    return problems


def _is_csv(path: str) -> bool:
    return path.lower().endswith(_CSV)


def _form_of_line(fields: int, delimiter: str) -> str:
    """Write the pattern of a line with so many fields; it is gone through once, whatever a line holds."""
    mark = f"\\x{{{ord(delimiter):x}}}"
    field = f'(?:"[^"]*+(?:""[^"]*+)*+"|[^"{mark}]*+)'
    return rf"\A{field}(?:{mark}{field}){{{fields - 1}}}\z"


def _form_of_type(kind: str) -> str:
    decimal = _DECIMAL.fullmatch(type_named(kind))
    if decimal is None:
        return rf"\A(?:{_FORMS[kind.lower()]})\z"
    digits, scale = int(decimal[1]), int(decimal[2])
    return rf"\A[-+]?0*\d{{0,{digits - scale}}}(?:\.\d{{0,{scale}}})?\z"


def _cast(kind: str | None) -> Expression | None:
    """The type that texts are cast to; None where they stay text. Raises PolicyError for a type that Spark lacks."""
    if kind is None or kind.lower() == "text":
        return None
    named = type_named(kind)
    if named == "TIME":
        raise PolicyError("source.types: Spark reads no time of day; leave such a column text.")
    return Markup(
        {"TIMESTAMP": "TIMESTAMP_NTZ", "TIMESTAMPTZ": "TIMESTAMP", "HUGEINT": "DECIMAL(38,0)"}.get(named, named)
    )


def _column_as_read(name: str, kind: str | None) -> ReadColumn:
    if kind is None:
        return ReadColumn(name, "text", "text, as every column that source.types does not name")
    return ReadColumn(name, kind, f"{kind} (source.types)")
