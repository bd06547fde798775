"""Releases that are files: written beside their place, verified there, then moved over it in one step.

A CSV release is UTF-8 with a header; NULL is written as nothing at all and an empty text as `""`, so that the two
stay apart; fields with commas, quotes or line ends are quoted, and quotes in them doubled.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from sqlanon.engines.base import Column, Engine
from sqlanon.engines.embedded import EMBEDDED
from sqlanon.errors import AccessError, ConflictError, EngineError, PolicyError
from sqlanon.sql import Identifier, Relation, Text, short_hash
from sqlanon.values.digest import FILE

_TOKEN = secrets.token_hex(4)  # of this process: releases of one name are written one after the other
_PART = re.compile(r"\.part-[0-9a-f]{8}$")
_WIDE_INTEGERS = ("int128", "uint128")  # Parquet has no integer as wide: a rounded double would be written


@dataclass(frozen=True)
class _Format:
    write: str  # templates
    open: str
    compression: str


_FORMATS = {
    ".parquet": _Format("publish/write_parquet", "publish/open_parquet", "snappy"),
    ".csv": _Format("publish/write_csv", "publish/open_csv", "none"),
    ".csv.gz": _Format("publish/write_csv", "publish/open_csv", "gzip"),
}


def check_file(path: str | Path, replace: bool) -> list[str]:
    """The problems that forbid a release in this file, for planning."""
    target = Path(path)
    if _format(target) is None or "://" in str(path):
        return [f"The release file {path} must be a local .parquet, .csv or .csv.gz file."]
    return _place_problems(target.resolve(), replace)


def type_problems(path: str | Path, columns: Sequence[Column]) -> list[str]:
    """The columns of a release that this file can't hold without loss."""
    if _format(Path(path)) is not _FORMATS[".parquet"]:
        return []
    wide = [Identifier(column.name) for column in columns if EMBEDDED.portable.get(column.type) in _WIDE_INTEGERS]
    return [f"Parquet has no integer as wide as column {name}; write a .csv file." for name in wide]


def _place_problems(target: Path, replace: bool) -> list[str]:
    if not target.parent.is_dir():
        return [f"there is no directory {target.parent}."]
    if target.exists() and not target.is_file():
        return [f"{target} is not a file; choose another name for the release."]
    problems = []
    if target.exists() and not replace:
        problems.append(f"{target} exists; allow it to be replaced (--replace) or choose another name.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        problems.append(f"The directory of the release file {target} can't be written.")
    return problems


class FileRelease:
    """A release file on its way; a context manager that removes the part file unless it was committed.

    `part` is written beside the target, readable by its owner only, until `commit` gives it the name.
    """

    def __init__(self, engine: Engine, path: str | Path, *, replace: bool = False) -> None:
        problems = check_file(path, replace)
        if problems:
            raise PolicyError(problems)
        self._engine = engine
        self._replace = replace
        self.target = Path(path).resolve()
        self.part = part_of(self.target)

    def write(self, relation: Relation) -> None:
        """Write the rows of a relation of the engine (DuckDB), in their order, to the part file."""
        problems = check_file(self.target, True) + type_problems(self.target, self._engine.columns(relation))
        if problems:
            raise PolicyError(problems)
        try:
            with _explained(self.target):
                self._engine.files.create(self.part)
            write_rows(self._engine, relation, self.part)
        except BaseException:
            self.discard()
            raise

    def commit(self) -> None:
        """Let the part file take the target's place: readers find the old file or the new one."""
        try:
            with _explained(self.target):
                if self.target.exists() and not self._replace:
                    raise ConflictError(f"{self.target} was created by someone else meanwhile; nothing was published.")
                self._engine.files.publish(self.part, self.target)
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Remove the part file, if there is one."""
        self._engine.files.remove(self.part)

    def digest(self) -> str:
        """Digest the part file."""
        return FILE + self._engine.files.digest(self.part)

    def __enter__(self) -> FileRelease:
        return self

    def __exit__(self, *exception: object) -> None:
        self.discard()


def part_of(path: str | Path) -> Path:
    """The part file of a release file in this process: it is known before, as a confined session must be told."""
    target = Path(path).resolve()
    return target.with_name(f"{target.name}.part-{_TOKEN}")


def open_file(engine: Engine, path: str | Path, columns: Sequence[Column]) -> Relation:
    """A temporary view of a release file (or its part) that has the names and types of `columns`, for verification."""
    place = Path(path)
    view = Relation("file_" + short_hash(str(place.resolve())))
    engine.run(
        _existing_format(place).open,
        view=view,
        path=Text(glob.escape(str(place))),
        columns=[{"name": Identifier(one.name), "type": Markup(one.type)} for one in columns],
        compression=Text(_existing_format(place).compression),
    )
    return view


def leftover_parts(path: str | Path) -> list[Path]:
    """Part files of this release that a killed run left behind; a running one's may be among them."""
    target = Path(path).resolve()
    return sorted(target.parent.glob(glob.escape(target.name) + ".part-*"))


def is_file_name(name: str) -> bool:
    """Tell whether a release of this name is a file, by its ending; tables end with a quote."""
    return _format(Path(name)) is not None


def write_rows(engine: Engine, relation: Relation, path: Path) -> None:
    """Write the rows of a relation to a file, in the format that its name asks for."""
    form = _existing_format(path)
    engine.run(form.write, relation=relation, path=Text(str(path)), compression=Text(form.compression))


def _format(path: Path) -> _Format | None:
    name = _PART.sub("", path.name).lower()
    return next((form for suffix, form in _FORMATS.items() if name.endswith(suffix)), None)


def _existing_format(path: Path) -> _Format:
    form = _format(path)
    if form is None:
        raise PolicyError(f"The release file {path} must be a local .parquet, .csv or .csv.gz file.")
    return form


@contextlib.contextmanager
def _explained(target: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise AccessError(f"The release file {target} can't be written: {error.strerror}.") from error
    except OSError as error:
        raise EngineError(f"The release file {target} can't be written: {error.strerror}.") from error
