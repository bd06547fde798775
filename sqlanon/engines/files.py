"""Files that stand for tables: their format, the names of their columns, how DuckDB is told of them."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from sqlanon.engines.read_options import ReadOptions
from sqlanon.errors import AccessError, PolicyError
from sqlanon.sql import Text
from sqlanon.support.documents import is_text

STANDARD_INPUT = "-"


_COMPRESSED = (".gz", ".zst")


_TEXT = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}


_FORMATS = {**_TEXT, ".parquet": "parquet", ".xlsx": "xlsx"}


_KINDS = ".csv, .tsv, .json, .jsonl or .ndjson (these also with .gz or .zst), .parquet or .xlsx"


_WILDCARD = re.compile(r"[*?\[]")


def is_data_file(name: str) -> bool:
    """Tell whether a name stands for a data file: by its ending, or `-` for standard input."""
    return name == STANDARD_INPUT or Path(name).suffix.lower() in (*_FORMATS, *_COMPRESSED)


def is_delimited(name: str) -> bool:
    """Tell whether a name stands for delimited text."""
    return format_of(name) == "csv"


def takes_types(name: str) -> bool:
    """Tell whether a policy can name types of a file's columns: of text and of spreadsheets, which have none."""
    return is_data_file(name) and Path(name).suffix.lower() != ".parquet"


@dataclass(frozen=True)
class SourceFile:
    """The format of a source (csv, json, parquet or xlsx), and the files that hold it: one, or those of a pattern."""

    format: str
    paths: tuple[str, ...]

    @property
    def patterns(self) -> tuple[Text, ...]:
        """The patterns that name these files alone to DuckDB."""
        return tuple(Text(literal_pattern(path)) for path in self.paths)


def source_file(path: str) -> SourceFile:
    """Describe the file `path`; refuse a missing, unreadable or unknown kind of file."""
    if path == STANDARD_INPUT:
        return SourceFile("csv", (path,))
    form = format_of(path)
    paths = _matches(path) if form == "parquet" else [path]
    for one in paths:
        if not is_text(one):
            raise PolicyError(f"The path of the file {one} is not text in UTF-8, which databases ask for; rename it.")
        if not Path(one).is_file():
            raise PolicyError(f"There is no file {one}.")
        if not os.access(one, os.R_OK):
            raise AccessError(f"The file {one} can't be read: permission denied.")
    return SourceFile(form, tuple(paths))


def format_of(path: str) -> str:
    """The format of a file (csv, json, parquet or xlsx) by its ending; raises PolicyError for an unknown one."""
    if path == STANDARD_INPUT:
        return "csv"
    if Path(path).is_dir():
        return "parquet"
    suffixes = [suffix.lower() for suffix in Path(path).suffixes[-2:]]
    ending = suffixes[-1] if suffixes else ""
    if ending in _COMPRESSED and len(suffixes) == 2 and suffixes[0] in _TEXT:
        ending = suffixes[0]
    if not ending and not os.path.lexists(path):
        raise PolicyError(f"There is no file or directory {path}.")
    if ending not in _FORMATS:
        raise PolicyError(f"{path} is not a kind of file this reads: {_KINDS}.")
    return _FORMATS[ending]


def _matches(path: str) -> list[str]:
    """The Parquet files of a pattern or directory in the order of their names; a file of the very name goes first."""
    if Path(path).is_dir():
        inside = sorted(str(file) for file in Path(path).glob("*.parquet"))
        return inside or [path]
    if Path(path).exists() or not _WILDCARD.search(path):
        return [path]
    matches = sorted(glob.glob(path, recursive=True))
    if not matches:
        raise PolicyError(f"No file matches {path}.")
    return matches


def whole_path(path: str) -> str:
    """The path that stands for a file whichever way it is named; addresses such as s3://… stay, and `-` does."""
    return path if "://" in path or path == STANDARD_INPUT else str(Path(path).resolve())


def directory_of(path: str) -> Path:
    """The directory of a source, or that which the files of a pattern have in common; of standard input the current."""
    parts = Path(path).absolute().parent.parts if path != STANDARD_INPUT else Path().absolute().parts
    plain = list(takewhile(lambda part: not _WILDCARD.search(part), parts)) if not Path(path).exists() else parts
    return Path(*plain).resolve()


def version_of(path: str) -> tuple[int, int, int]:
    """Identify the version of a file without reading it: inode, size, time of change (ns)."""
    status = Path(path).stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def source_version(file: str | None) -> tuple[int, ...] | None:
    """The version of a source file; None if the source is none, or there is none.

    A source file has no transactions: it must be the same file before and after it is read.
    """
    if file is None or file == STANDARD_INPUT:
        return None
    if Path(file).is_file():
        return version_of(file)
    is_many = Path(file).is_dir() or _WILDCARD.search(file)
    matches = [match for match in _matches(file) if Path(match).is_file()] if is_many else []
    return tuple(number for match in matches for number in version_of(match)) or None


def literal_pattern(path: str) -> str:
    """The path as a pattern that matches this file alone: DuckDB reads *, ? and [ in a file name as wildcards."""
    return _WILDCARD.sub(lambda match: f"[{match[0]}]", path)


def column_names(fields: Sequence[str], options: ReadOptions, path: str) -> list[str]:
    """The names of the columns of a file with these fields in its first line; without a name they go by their places.

    Raises PolicyError for a name given twice, and where `options` name more or fewer columns.
    """
    if options.names and len(options.names) != len(fields):
        raise PolicyError(
            f"source.names: there are {len(options.names)} names, and {len(fields)} fields in the first line of {path}."
        )
    given = options.names or ([""] * len(fields) if options.header is False else fields)
    names = [name or f"column{place}" for place, name in enumerate(given)]
    folded = [name.casefold() for name in names]
    twice = sorted({name for name, low in zip(names, folded, strict=True) if folded.count(low) > 1})
    if twice:
        raise PolicyError(
            f"Columns of {path} have the same name: {', '.join(twice)}. Rename them in its first line, or by the policy"
            " (source: header: true, names: [...])."
        )
    return names
