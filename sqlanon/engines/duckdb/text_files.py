"""Files as delimited text in UTF-8: other encodings, spreadsheets and standard input are copied to private files."""

from __future__ import annotations

import codecs
import csv
import datetime
import gzip
import io
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from sqlanon.engines.duckdb.sheets import inspect_sheet
from sqlanon.engines.files import STANDARD_INPUT, SourceFile
from sqlanon.engines.private_files import spool_standard_input
from sqlanon.engines.read_options import UTF_8, ReadOptions
from sqlanon.errors import AccessError, PolicyError

_DELIMITERS = ",;\t|"
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_CHUNK = 1 << 20  # bytes
_MOST_LINES = 100  # of a header


def is_utf_8(encoding: str) -> bool:
    """Tell whether an encoding is the one that DuckDB reads by itself, whatever its name."""
    return codecs.lookup(encoding).name in (UTF_8, "utf-8-sig")


def prepare_file(file: SourceFile, options: ReadOptions, directory: Path) -> Path:
    """The file itself, or a copy of it as delimited text in UTF-8, in `directory` (which is private).

    There is one copy at a time: what was read before is in a table.
    """
    (name,) = file.paths
    path = spool_standard_input() if name == STANDARD_INPUT else Path(name)
    if file.format == "xlsx":
        return _copy_sheet(path, _place(directory / "sheet.csv"), options.null or ())
    if options.encoding is None or is_utf_8(options.encoding):
        return path
    ending = Path(path.name.lower()).with_suffix("").suffix
    return _copy_decoded(path, options.encoding, _place(directory / f"text{ending}"))


def _place(copy: Path) -> Path:
    """The place of a copy, with no earlier one there."""
    copy.unlink(missing_ok=True)
    return copy


def first_lines(path: Path) -> list[str] | None:
    """The first lines of text in UTF-8; other bytes are lone surrogates. None where it can't be opened here."""
    if path.suffix.lower() == ".zst":
        return None
    try:
        with io.TextIOWrapper(_opened(path), encoding=UTF_8, errors="surrogateescape") as file:
            return [line.rstrip("\n") for line in islice(file, _MOST_LINES)]
    except (OSError, EOFError) as error:
        raise AccessError(f"The file {path} can't be read: {error}.") from None


def header_of(lines: Iterable[str]) -> str:
    """The first record of delimited text: its lines up to that with which all quotes are closed."""
    record: list[str] = []
    for line in lines:
        record.append(line)
        if sum(one.count('"') for one in record) % 2 == 0:
            break
    return "\n".join(record).removeprefix("\ufeff")


def is_well_formed(text: str) -> bool:
    """Tell whether a text holds no bytes that are not UTF-8."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def delimiter_of(header: str) -> str:
    """The one of comma, semicolon, tab and bar that is in the first line most often, outside of quotes.

    Commas between digits are decimal marks where there is another of these: `1,05;2,50`.
    """
    plain = _QUOTED.sub("", header)
    if any(mark in plain for mark in _DELIMITERS[1:]):
        plain = _DECIMAL_COMMA.sub("", plain)
    return max(_DELIMITERS, key=plain.count)  # the first of those as frequent


def fields_of(line: str, delimiter: str, path: str) -> list[str]:
    """The fields of the first line of a file. Raises PolicyError where it has none."""
    try:
        (fields,) = csv.reader(io.StringIO(line, newline=""), delimiter=delimiter, strict=True)
    except (csv.Error, ValueError):
        raise PolicyError(f"The first line of {path} is no header: it must hold the names of the columns.") from None
    return fields


def _copy_decoded(path: Path, encoding: str, copy: Path) -> Path:
    """Copy text of another encoding as UTF-8; raises PolicyError with the first line that is not of that encoding."""
    decoder, line = codecs.getincrementaldecoder(encoding)(), 1
    with _opened(path) as source, copy.open("xb") as target:
        while True:
            chunk = source.read(_CHUNK)
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                line += chunk.count(b"\n", 0, error.start)
                raise PolicyError(
                    f"Line {line} of {path}, or the one after, is not {encoding}: name another."
                ) from None
            target.write(text.encode())
            line += text.count("\n")
            if not chunk:
                return copy


def _opened(path: Path) -> BinaryIO:
    """The bytes of a file, decompressed."""
    if path.suffix.lower() == ".zst":
        raise PolicyError(f"{path}: text of this encoding can't be decompressed here; give it as .gz or as it is.")
    return cast(BinaryIO, gzip.open(path)) if path.suffix.lower() == ".gz" else path.open("rb")


def _copy_sheet(path: Path, copy: Path, null: Sequence[str]) -> Path:
    """Copy the first sheet of a spreadsheet as delimited text, once its size is known to be bearable.

    Cells with a text of `null` are left empty.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise PolicyError(f"Reading {path} needs a package more: pip install 'sqlanon[excel]'.") from None
    inspect_sheet(path)
    try:
        rows = CalamineWorkbook.from_path(path).get_sheet_by_index(0).to_python(skip_empty_area=False)
    except (CalamineError, OSError, ValueError, IndexError):
        raise AccessError(f"{path} can't be read as a spreadsheet.") from None
    with copy.open("x", encoding=UTF_8, newline="") as target:
        target.writelines(_line_of(row, ("", *null)) for row in rows)
    return copy


def _line_of(row: Sequence[Any], null: Sequence[str]) -> str:
    texts = ["" if cell is None else _cell_text(cell) for cell in row]
    return ",".join("" if text in null else '"' + text.replace('"', '""') + '"' for text in texts) + "\n"


def _cell_text(cell: Any) -> str:
    """A cell as text: spreadsheets keep whole numbers as doubles, and days as moments."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return cell.date().isoformat()
    return str(cell)
