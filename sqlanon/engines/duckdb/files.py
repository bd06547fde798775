"""A file as a relation of a DuckDB session: text is read once, into a private table; Parquet stays where it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import duckdb
from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.duckdb.column_types import decide_types, marks_of
from sqlanon.engines.duckdb.second_reading import (
    Counts,
    count_delimited,
    count_sheet,
    json_pointer,
    plain_names,
    refuse_equal_names,
    require_same,
)
from sqlanon.engines.duckdb.text_files import (
    delimiter_of,
    fields_of,
    first_lines,
    header_of,
    is_well_formed,
    prepare_file,
)
from sqlanon.engines.files import STANDARD_INPUT, SourceFile, column_names, literal_pattern
from sqlanon.engines.first_line import UndecidedHeader, reads_like_data
from sqlanon.engines.read_options import UTF_8, FileReading, ReadColumn, ReadOptions
from sqlanon.errors import AccessError, EngineError, PolicyError
from sqlanon.sql import Identifier, Relation, Text

_LINE = re.compile(r"Line: (\d+)")
_WIDTHS = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
_COUNTED_TOGETHER = 250  # columns of a statement: DuckDB plans it in quadratic time


class FileReader:
    """Reads one file for a session; `directory` is private, for copies of it."""

    def __init__(self, engine: Engine, path: str, file: SourceFile, options: ReadOptions, directory: Path) -> None:
        self._engine = engine
        self._path = "standard input" if path == STANDARD_INPUT else path
        self._file = file
        self._options = options
        self._directory = directory

    def read(self, relation: Relation) -> FileReading:
        """Make `relation` a view or a temporary table with the rows of the file.

        Raises PolicyError for options that do nothing for such a file, `UndecidedHeader` for a first line that reads
        like data.
        """
        self._options.require_effective(self._file.format, self._path)
        try:
            if self._file.format == "parquet":
                return self._view_parquet(relation)
            if self._file.format == "json":
                return self._read_json(relation)
            return self._read_text(relation)
        except EngineError as error:
            raise self._explained(error) from None

    def _view_parquet(self, relation: Relation) -> FileReading:
        paths = list(self._file.patterns)
        if len(paths) > 1 and self._engine.query_one("engines/count_parquet_schemas", paths=paths) != (1,):
            raise PolicyError(f"The files of {self._path} do not have the same columns in the same types and order.")
        self._engine.run("engines/create_parquet_view", view=relation, paths=paths)
        if self._options.is_checked:
            self._check_parquet(relation, paths)
        return FileReading(relation, "parquet")

    def _check_parquet(self, relation: Relation, paths: list[Text]) -> None:
        """Hold what the view reads against the schema and the statistics in the files."""
        names = plain_names(self._engine.query("engines/list_parquet_names", path=paths[0]))
        refuse_equal_names(self._path, [name for name, _ in names])
        (rows,) = self._engine.query_one("engines/count_parquet_rows", paths=paths)
        stated = dict(self._engine.query("engines/count_parquet_values", paths=paths))
        known = [name for name, is_plain in names if is_plain and stated.get(name) is not None]
        read = self._counted(relation, known)
        require_same(self._path, known, read, Counts(int(rows or 0), tuple(int(stated[name]) for name in known)))

    def _counted(self, relation: Relation, names: Sequence[str], empty: Sequence[str] = ()) -> Counts:
        listed, rows, values = [Identifier(name) for name in names], 0, []
        for start in range(0, max(1, len(listed)), _COUNTED_TOGETHER):
            part = listed[start : start + _COUNTED_TOGETHER]
            rows, *counts = self._engine.query_one(
                "engines/count_read_values", table=relation, columns=part, empty=[Text(text) for text in empty]
            )
            values += counts
        return Counts(rows, tuple(values))

    def _read_json(self, relation: Relation) -> FileReading:
        (path,) = self._file.patterns
        keys = self._engine.query("engines/list_json_keys", path=path)
        names = [name for name, _ in keys]
        refuse_equal_names(self._path, names)
        if doubled := [name for name, twice in keys if twice]:
            raise PolicyError(f"{self._path} has objects that name a key twice: {', '.join(doubled)}.")
        if not names:
            raise PolicyError(f"{self._path} holds no objects with keys, which would be its columns.")
        texts = relation.sibling(f"{relation.name}_texts")
        null = [Text(text) for text in self._options.null or ()]
        listed = [{"key": Text(name), "name": Identifier(name)} for name in names]
        self._engine.run("engines/read_json_text", table=texts, path=path, columns=listed, null=null)
        if self._options.is_checked:
            paths = [Text(json_pointer(name)) for name in names]
            rows, *values = self._engine.query_one("engines/count_json_values", path=path, paths=paths, null=null)
            require_same(self._path, names, self._counted(texts, names), Counts(rows, tuple(values)))
        return FileReading(relation, "json", self._typed(relation, texts, names), options=self._options)

    def _read_text(self, relation: Relation) -> FileReading:
        local = prepare_file(self._file, self._options, self._directory)
        path = Text(literal_pattern(str(local)))
        first = self._first_line(local, path)
        delimiter = self._delimiter(first)
        fields = fields_of(first, delimiter, self._path)
        texts = relation.sibling(f"{relation.name}_texts")
        places = [f"column{place}" for place in range(len(fields))]
        try:
            names = column_names(fields, self._options, self._path)
        except PolicyError:  # names may be there twice as they are no names
            self._read_texts(texts, path, places, delimiter)
            self._require_header(texts, places, fields)
            raise
        self._read_texts(texts, path, names, delimiter)
        self._require_header(texts, names, fields)
        if self._options.is_checked:
            self._check_text(local, texts, names, delimiter)
        columns = self._typed(relation, texts, names)
        encoding = self._options.encoding or UTF_8
        return FileReading(relation, self._file.format, columns, delimiter, encoding, self._null(), self._options)

    def _read_texts(self, texts: Relation, path: Text, names: list[str], delimiter: str) -> None:
        self._engine.run(
            "engines/read_delimited_text",
            table=texts,
            path=path,
            names=[Text(name) for name in names],
            has_header=self._options.header is not False,
            delimiter=Text(delimiter),
            null=[Text(text) for text in self._null()] or [Text("\x01")],
        )

    def _null(self) -> tuple[str, ...]:
        """The fields without quotes that stand for NULL; in the copy of a spreadsheet they are empty."""
        given = self._options.null
        return ("",) if given is None or self._file.format == "xlsx" else given

    def _require_header(self, texts: Relation, names: list[str], fields: list[str]) -> None:
        """Refuse a first line that reads like data, where nobody said what it holds."""
        if self._options.header is not None:
            return
        null = self._options.null or ()
        first = {name: "" if field in null else field for name, field in zip(names, fields, strict=True)}
        if reads_like_data(self._engine.query_one, texts, first):
            self._engine.run("engines/drop_table", table=texts)
            raise UndecidedHeader(self._path)

    def _check_text(self, local: Path, texts: Relation, names: list[str], delimiter: str) -> None:
        """Hold the texts that were read against the file, or the sheet, as it is read otherwise.

        Cells of a spreadsheet that stand for NULL are filled there: where there may be some, rows alone are compared.
        """
        has_header = self._options.header is not False
        if self._file.format == "xlsx":
            compared = [] if self._options.null else names
            read = self._counted(texts, compared, ("",))
            other: Counts | None = count_sheet(Path(self._file.paths[0]), len(compared), has_header)
        else:
            compared = names
            read = self._counted(texts, names, ("", *self._null()))
            other = count_delimited(local, names, delimiter, self._null(), has_header, read)
        if other is not None:
            require_same(self._path, compared, read, other)

    def _first_line(self, local: Path, path: Text) -> str:
        """The first record of the file. DuckDB is asked where it alone can decompress it."""
        lines = first_lines(local)
        if lines is None:
            lines = [line or "" for (line,) in self._engine.query("engines/read_first_lines", path=path)]
        first = header_of(lines)
        if not first and any(lines):
            raise PolicyError(f"{self._path} begins with a blank line; take it out.")
        if not first:
            raise PolicyError(f"{self._path} is empty; its first line must hold the names of the columns.")
        if not is_well_formed(first):
            raise PolicyError(f"Line 1 of {self._path} is not {UTF_8}: {self._remedy()}.")
        return first

    def _delimiter(self, first: str) -> str:
        if self._options.delimiter is not None and self._file.format != "xlsx":
            return self._options.delimiter
        names = [name.lower() for name in self._file.paths]
        return "\t" if ".tsv" in names[0][-8:] else "," if self._file.format == "xlsx" else delimiter_of(first)

    def _typed(self, relation: Relation, texts: Relation, names: list[str]) -> tuple[ReadColumn, ...]:
        """Cast the columns to the types that their values survive, or that the policy names."""
        unknown = sorted(set(self._options.types) - set(names))
        if unknown:
            raise PolicyError(f"source.types: {self._path} has no column {', '.join(unknown)}.")
        columns = decide_types(self._engine, texts, names, self._options)
        listed = [
            {
                "name": Identifier(column.name),
                "type": None if column.type == "VARCHAR" else Markup(column.type),
                "format": None if column.format is None else Text(column.format),
                "marks": marks_of(self._options.marks, column.type),
            }
            for column in columns
        ]
        self._engine.run("engines/type_texts", table=relation, texts=texts, columns=listed)
        self._engine.run("engines/drop_table", table=texts)
        return tuple(columns)

    def _explained(self, error: EngineError) -> AccessError | PolicyError | EngineError:
        """Explain what is wrong with the file, without a value of the file."""
        cause = error.__cause__ or error.__context__
        message, line = str(cause), _LINE.search(str(cause))
        where = f"line {line[1]} of {self._path}" if line else self._path
        if not isinstance(cause, duckdb.Error) or isinstance(cause, duckdb.InterruptException):
            return error
        if "Invalid unicode" in message or "not utf-8" in message or "byte sequence" in message:
            return PolicyError(f"{where[0].upper()}{where[1:]} is not {UTF_8}: {self._remedy()}.")
        if widths := _WIDTHS.search(message):
            first = "first line" if self._options.header is False else "header"
            return PolicyError(f"{where[0].upper()}{where[1:]} has {widths[2]} fields, and the {first} {widths[1]}.")
        if "unterminated quote" in message or "invalid state" in message:
            return PolicyError(
                f"{where[0].upper()}{where[1:]} has a quote within or after a field, or an odd line end."
            )
        return AccessError(f"The file {self._path} can't be read as {self._file.format}: {error}")

    def _remedy(self) -> str:
        """The way to have text of another encoding read."""
        if self._file.format != "csv":
            return "convert the file"
        return "name its encoding (source: {encoding: latin-1}, windows-1252, utf-16 or another; for init: --encoding)"
