"""A second, independent reading of a text file, by which the first is checked: rows, and the values of each column.

Delimited text is read by Arrow where it is installed, else by Python; objects of JSON are taken apart key by key.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlanon.engines.duckdb.sheets import inspect_sheet
from sqlanon.errors import AccessError, EngineError, PolicyError

_BLOCK = 1 << 24  # bytes that Arrow reads at once, which a line must fit in
_ROWS = 20_000  # that Python counts at once
_LONGEST = 64_000_000  # characters of a field, as long as a line may be
_CODECS = {".gz": "gzip", ".zst": "zstd"}  # Arrow knows endings in lower case alone


@dataclass(frozen=True)
class Counts:
    """The rows of a file, and how many texts each column has that are neither empty nor stand for NULL."""

    rows: int
    texts: tuple[int, ...]


def require_same(path: str, names: Sequence[str], read: Counts, other: Counts) -> None:
    """Raise EngineError, which names the columns, where two readings of a file differ."""
    if read.rows != other.rows:
        raise EngineError(
            f"Two readings of {path} differ: {read.rows:,} rows, and {other.rows:,}. Nothing was released; please"
            " write the file anew, as Parquet or as plain CSV."
        )
    pairs = zip(names, read.texts, other.texts, strict=True)
    differing = [name for name, one, two in pairs if one != two]
    if differing:
        raise EngineError(
            f"Two readings of {path} differ in the number of values of {', '.join(differing)}. Nothing was released;"
            " please write the file anew, as Parquet or as plain CSV."
        )


def count_delimited(
    path: Path, names: Sequence[str], delimiter: str, null: Sequence[str], has_header: bool, expected: Counts
) -> Counts:
    """Count the fields of delimited text in UTF-8.

    Where Arrow can't read the file, or finds something other than `expected`, Python decides: it allows for blanks
    beside quotes. Raises AccessError for a file that is damaged, EngineError for records of another width,
    PolicyError for a .zst that Arrow is not here to read, or can't: nothing else decompresses it.
    """
    try:
        by_arrow = _count_by_arrow(path, names, delimiter, null, has_header)
        if by_arrow == expected:
            return by_arrow
        if path.suffix.lower() == ".zst":
            if by_arrow is None:
                raise PolicyError(
                    f"{path} can't be read a second time, which every file is: Arrow alone decompresses"
                    " .zst. Install it (pip install pyarrow), or give the file as .gz or as it is."
                )
            return by_arrow
        return _count_by_python(path, names, delimiter, null, has_header)
    except (OSError, EOFError, zlib.error):
        raise AccessError(f"The file {path} is damaged, or can't be read a second time.") from None
    except (csv.Error, ValueError):
        raise EngineError(
            f"Two readings of {path} differ in the fields of a line. Nothing was released; please write the file anew,"
            " as Parquet or as plain CSV."
        ) from None


def _count_by_python(path: Path, names: Sequence[str], delimiter: str, null: Sequence[str], has_header: bool) -> Counts:
    rows, width, empty = 0, len(names), {"", *null}
    texts = [0] * width
    for block in _blocks(path, delimiter, has_header, counts_empty=_counts_empty(names, null)):
        rows += len(block)
        columns = list(zip(*(_cut(record, width, empty) for record in block), strict=True))
        for place in range(width):
            texts[place] += len(block) - sum(map(columns[place].count, empty))
    return Counts(rows, tuple(texts))


def _cut(record: list[str], width: int, empty: set[str]) -> list[str]:
    """A record without the empty fields after its last column, to which a delimiter at the end of a line leads."""
    if len(record) < width or not empty.issuperset(record[width:]):
        raise ValueError("a record has another number of fields")
    return record[:width]


def _counts_empty(names: Sequence[str], null: Sequence[str]) -> bool:
    """Tell whether a line with nothing on it is a row: of a single column, where nothing stands for NULL."""
    return len(names) == 1 and "" in null


def _blocks(path: Path, delimiter: str, has_header: bool, *, counts_empty: bool) -> Iterator[list[list[str]]]:
    """The records of delimited text but for the header, so many at once; lines with nothing on them are none."""
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    limit = csv.field_size_limit(_LONGEST)
    try:
        with opened(path, "rb") as plain, io.TextIOWrapper(plain, encoding="utf-8-sig", newline="") as file:
            records = csv.reader(_without_blanks(file, delimiter), delimiter=delimiter)
            kept = (record or [""] for record in records if record or counts_empty)
            if has_header:
                next(kept, None)
            while block := list(itertools.islice(kept, _ROWS)):
                yield block
    finally:
        csv.field_size_limit(limit)


def _without_blanks(lines: Iterable[str], delimiter: str) -> Iterator[str]:
    """The lines without blanks that stand before a quote at the begin of a field: the field is what is quoted."""
    blanks = re.compile(f'(^|{re.escape(delimiter)}) +(?=")')
    return (blanks.sub(r"\1", line) if ' "' in line else line for line in lines)


def _count_by_arrow(
    path: Path, names: Sequence[str], delimiter: str, null: Sequence[str], has_header: bool
) -> Counts | None:
    """Count with Arrow; None where it is not installed, or can't read the file."""
    try:
        import pyarrow
        from pyarrow import csv as arrow
    except ImportError:
        return None
    places = [str(place) for place in range(len(names))]
    converting = arrow.ConvertOptions(
        column_types=dict.fromkeys(places, pyarrow.string()),
        null_values=["", *null],
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    try:
        with pyarrow.input_stream(str(path), compression=_CODECS.get(path.suffix.lower())) as file:
            reader = arrow.open_csv(
                file,
                arrow.ReadOptions(block_size=_BLOCK, column_names=places, skip_rows_after_names=int(has_header)),
                arrow.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=not _counts_empty(names, null)
                ),
                converting,
            )
            rows, texts = 0, [0] * len(names)
            for batch in reader:
                rows += batch.num_rows
                texts = [n + batch.num_rows - one.null_count for n, one in zip(texts, batch.columns, strict=True)]
    except (pyarrow.ArrowInvalid, ValueError, TypeError):
        return None
    return Counts(rows, tuple(texts))


def count_sheet(path: Path, width: int, has_header: bool = True) -> Counts:
    """Count the filled cells of the first columns of a spreadsheet's first sheet, below a header, by its XML."""
    sheet = inspect_sheet(path)
    header = sheet.header if has_header else frozenset()
    places = range(1, width + 1)
    return Counts(sheet.rows - has_header, tuple(sheet.filled.get(place, 0) - (place in header) for place in places))


def json_pointer(key: str) -> str:
    """The path of a key in an object (RFC 6901)."""
    return "/" + key.replace("~", "~0").replace("/", "~1")


def plain_names(elements: Sequence[tuple[str, int]]) -> list[tuple[str, bool]]:
    """Name the columns of a Parquet schema, and tell which hold single values; see `list_parquet_names`."""
    names: list[tuple[str, bool]] = []
    place = 1
    while place < len(elements):
        name, inside = elements[place]
        names.append((name, inside == 0))
        left = inside
        while left:
            place += 1
            left += elements[place][1] - 1
        place += 1
    return names


def refuse_equal_names(path: str, names: Sequence[str]) -> None:
    """Raise PolicyError for columns without a name, and for names that differ in nothing but case."""
    if "" in names:
        raise PolicyError(f"A column of {path} has no name: give it one.")
    times = Counter(name.casefold() for name in names)
    twice = sorted(name for name in names if times[name.casefold()] > 1)
    if twice:
        raise PolicyError(
            f"Columns of {path} have the same name: {', '.join(twice)}. Rename them; tables do not tell upper and"
            " lower case apart."
        )
