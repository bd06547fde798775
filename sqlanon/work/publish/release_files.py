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

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.engines.dialects import Capability
from sqlanon.engines.written_files import WrittenFiles, put_back
from sqlanon.errors import AccessError, ConflictError, EngineError, PolicyError
from sqlanon.sql import Identifier, Relation, Text, short_hash
from sqlanon.values.digest import FILE
from sqlanon.work.publish.parquet_values import parquet_type_problems

_TOKEN = secrets.token_hex(4)  # of this process: releases of one name are written one after the other
_GLOB = re.compile(r"[*?\[\]{}\\]")
_OF_SPARK = re.compile(r"_SUCCESS|\..*\.crc")  # a mark of a finished write, and checksums
_PART = re.compile(r"\.part-[0-9a-f]{8}$")
PARQUET = ".parquet"
_QUOTE = '"'  # ends each name of a table in SQL, and no name of a file


@dataclass(frozen=True)
class _Format:
    write: str  # templates
    open: str
    compression: str


_FORMATS = {
    PARQUET: _Format("work/publish/write_parquet", "work/publish/open_parquet", "snappy"),
    ".csv": _Format("work/publish/write_csv", "work/publish/open_csv", "none"),
    ".csv.gz": _Format("work/publish/write_csv", "work/publish/open_csv", "gzip"),
}


def release_problems(engine: Engine, path: str | Path, replace: bool) -> list[str]:
    """The problems that forbid a release of the engine's in this file, for planning."""
    if not engine.traits.writes_directories:
        return check_file(path, replace)
    return check_directory(engine.writes_here, path, replace)


def check_directory(writes_here: Capability, path: str | Path, replace: bool) -> list[str]:
    """List the problems that forbid a release in this directory of Parquet files."""
    if "://" in str(path):
        return [f"The release {path} must be a directory of this machine."]
    target = Path(path).resolve()
    if target.suffix.lower() not in ("", PARQUET) or target.name.endswith(_QUOTE):
        return [f"The release {path} is a directory of Parquet files: its name ends in .parquet, or has no ending."]
    if target.name.startswith(("_", ".")) or _GLOB.search(str(target)):
        return [f"Spark does not read the path {target}: it has one of * ? [ ] {{ }} or \\, or begins with _ or a dot."]
    if not writes_here:
        return [writes_here.lacking]
    try:
        if target.exists() and not _is_of_parquet(target):
            return [f"{target} is no directory of Parquet files alone; choose another name for the release."]
        return _problems_around(target, replace)
    except PermissionError:
        return [_unseen(target)]


def _is_of_parquet(target: Path) -> bool:
    """Tell whether a directory holds nothing that would be missed with the release in it."""
    return target.is_dir() and all(
        path.is_file() and (path.suffix == PARQUET or _OF_SPARK.fullmatch(path.name)) for path in target.iterdir()
    )


def check_file(path: str | Path, replace: bool) -> list[str]:
    """The problems that forbid a release in this file, for planning."""
    target = Path(path)
    if _format(target) is None or "://" in str(path):
        return [f"The release file {path} must be a local .parquet, .csv or .csv.gz file."]
    return _place_problems(target.resolve(), replace)


def overwriting_problems(path: str | Path, source: str | None) -> list[str]:
    """List the problem of a release that is the source's file, or the directory in which that is."""
    place = None if source is None else Path(source.removeprefix("file://").removeprefix("file:")).resolve()
    if place is None or Path(path).resolve() not in (place, *place.parents):
        return []
    return ["the release would overwrite its source; choose another name."]


def type_problems(path: str | Path, columns: Sequence[Column]) -> list[str]:
    """The columns of a release, as DuckDB has them, that this file can't hold without loss."""
    return [] if is_text_file(path) else parquet_type_problems(columns)


def _place_problems(target: Path, replace: bool) -> list[str]:
    try:
        if target.exists() and not target.is_file():
            return [f"{target} is not a file; choose another name for the release."]
        return _problems_around(target, replace)
    except PermissionError:
        return [_unseen(target)]


def _unseen(target: Path) -> str:
    return f"This user may not look at {target}: choose another place for the release, or have the rights given."


def _problems_around(target: Path, replace: bool) -> list[str]:
    if not target.parent.is_dir():
        return [f"there is no directory {target.parent}."]
    problems = []
    if target.exists() and not replace:
        problems.append(f"{target} exists; allow it to be replaced (--replace) or choose another name.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        problems.append(f"The directory of the release file {target} can't be written.")
    return problems


class FileRelease:
    """A release file on its way; a context manager that removes the part file unless it was committed.

    Where the engine writes directories, both are directories.

    `part` is written beside the target, readable by its owner only, until `commit` gives it the name.
    """

    def __init__(self, engine: Engine, path: str | Path, *, replace: bool = False) -> None:
        problems = release_problems(engine, path, replace)
        if problems:
            raise PolicyError(problems)
        self._engine = engine
        self._replace = replace
        self.target = Path(path).resolve()
        self.part = part_of(self.target)
        if engine.traits.writes_directories:
            put_back(self.target)

    def write(self, relation: Relation) -> None:
        """Write the rows of a relation of the engine to the part file; DuckDB in their order."""
        problems = release_problems(self._engine, self.target, True)
        problems += type_problems(self.target, self._engine.columns(relation))
        if problems:
            raise PolicyError(problems)
        try:
            if self._engine.traits.writes_directories:
                with _explained(self.target):
                    self._engine.write_directory(relation, self.part)
            else:
                with _explained(self.target):
                    self._engine.files.create(self.part)
                write_rows(self._engine, relation, self.part)
        except BaseException:
            self.discard()
            raise

    def commit(self) -> None:
        """Let the part take the target's place: readers find the old file or the new one; see `WrittenFiles`."""
        try:
            with _explained(self.target):
                if self.target.exists() and not self._replace:
                    raise ConflictError(f"{self.target} was created by someone else meanwhile; nothing was published.")
                if self._engine.traits.writes_directories:
                    self._engine.files.publish_directory(self.part, self.target)
                else:
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
    if engine.traits.writes_directories:
        return engine.read_file(view, f"file:{place.resolve()}").relation
    engine.run(
        _existing_format(place).open,
        view=view,
        path=Text(glob.escape(str(place))),
        columns=[{"name": Identifier(one.name), "type": Markup(one.type)} for one in columns],
        compression=Text(_existing_format(place).compression),
    )
    return view


def put_back_or_remove(path: str | Path) -> list[str]:
    """Clear up what killed runs left of a release that is a file, and say what was done, or could not be."""
    done = [word] if (word := put_back(Path(path).resolve())) else []
    for part in leftover_parts(path):
        kind = "directory" if part.is_dir() else "file"
        try:
            WrittenFiles().remove(part)
            done.append(f"removed {kind} {part}")
        except OSError as error:
            done.append(f"skipped {kind} {part}: it can't be removed ({error.strerror})")
    return done


def leftover_parts(path: str | Path) -> list[Path]:
    """Part files of this release that a killed run left behind; a running one's may be among them."""
    target = Path(path).resolve()
    named = target.parent.glob(glob.escape(target.name) + ".part-*")
    return sorted(part for part in named if _PART.search(part.name) and not part.is_symlink())


def is_text_file(path: str | Path) -> bool:
    """Tell whether a release file holds texts alone, as a CSV does."""
    form = _format(Path(path))
    return form is not None and form is not _FORMATS[PARQUET]


def is_file_name(name: str) -> bool:
    """Tell whether a release of this name, as a run records it, is a file: names of tables are quoted."""
    return not name.endswith(_QUOTE)


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
