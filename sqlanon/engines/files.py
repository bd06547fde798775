"""Files that stand for tables: their format, and how DuckDB is told of them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from sqlanon.errors import AccessError, ConflictError, PolicyError
from sqlanon.sql import Text

_COMPRESSED = (".gz", ".zst")
_FORMATS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}


def is_data_file(name: str) -> bool:
    """Whether a name stands for a data file, by its ending."""
    return Path(name).suffix.lower() in (*_FORMATS, *_COMPRESSED)


@dataclass(frozen=True)
class SourceFile:
    """A file's format (csv, tsv or parquet), and the pattern that names this file to DuckDB."""

    format: str
    path: Text


def source_file(path: str) -> SourceFile:
    """What the file `path` is; refuses a missing, unreadable or unknown kind of file."""
    file = Path(path)
    suffixes = [suffix.lower() for suffix in file.suffixes[-2:]]
    ending = suffixes[-1] if suffixes else ""
    if ending in _COMPRESSED and len(suffixes) == 2 and suffixes[0] != ".parquet":
        ending = suffixes[0]
    if ending not in _FORMATS:
        raise PolicyError(f"{path} is not a kind of file this reads: .csv, .tsv (also with .gz or .zst) or .parquet.")
    if not file.is_file():
        raise AccessError(f"There is no file {path}.")
    if not os.access(file, os.R_OK):
        raise AccessError(f"The file {path} can't be read: permission denied.")
    return SourceFile(_FORMATS[ending], Text(_literal_pattern(path)))


def whole_path(path: str) -> str:
    """The path that stands for a file whichever way it is named; addresses such as s3://… stay."""
    return path if "://" in path else str(Path(path).resolve())


def version_of(path: str) -> tuple[int, int, int]:
    """What tells one version of a file from another without reading it: inode, size, time of change (ns)."""
    found = Path(path).stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def source_version(file: str | None) -> tuple[int, ...] | None:
    """The version of a source file; None if the source is none, or there is none.

    A source file has no transactions: it must be the same file before and after it is read.
    """
    return version_of(file) if file is not None and Path(file).is_file() else None


def require_unchanged(file: str | None, version: tuple[int, ...] | None) -> None:
    """Raise ConflictError if a source file is no longer the one of that version."""
    if source_version(file) != version:
        raise ConflictError(f"The file {file} changed while it was read; run again.")


def _literal_pattern(path: str) -> str:
    """The path as a pattern that matches this file alone: DuckDB reads *, ? and [ in a file name as wildcards."""
    return re.sub(r"[*?\[]", lambda match: f"[{match[0]}]", path)
