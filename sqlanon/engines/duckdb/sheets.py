"""The first sheet of a spreadsheet, looked at before it is read: how far its filled cells reach, how many there are.

A file of a kilobyte can claim cells for hundreds of gigabytes: the XML is streamed, and nothing of it is kept.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO
from xml.parsers import expat

from sqlanon.errors import AccessError, PolicyError

MOST_CELLS = 50_000_000  # of the area from the first cell to the last filled one
_SPARSE_CELLS, _MOST_A_CELL = 5_000_000, 100  # an area beyond it, with so many cells to a filled one, is refused
_MOST_BYTES = 8 * 2**30  # of XML in a file
_CHUNK = 1 << 16
_CELL = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, expat.ExpatError, OSError, EOFError),
    *(KeyError, IndexError, ValueError, StopIteration, NotImplementedError, RuntimeError),
)


@dataclass
class Sheet:
    """A sheet's last row and column with a filled cell, counted from 1, and the filled cells of each column."""

    rows: int = 0
    columns: int = 0
    filled: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    header: frozenset[int] = frozenset()  # the columns that are filled in the first row


def inspect_sheet(path: Path) -> Sheet:
    """Measure the first sheet; raises PolicyError where it is sparse or too large, AccessError where it is broken."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(one.file_size for one in archive.infolist()) > _MOST_BYTES:
                raise PolicyError(f"{path} is too large for a spreadsheet; save it as CSV.")
            strings = _empty_strings(archive)
            sheet = _measure(archive, _first_sheet(archive), strings)
    except _BROKEN:
        raise AccessError(f"{path} can't be read as a spreadsheet.") from None
    area, cells = sheet.rows * sheet.columns, sum(sheet.filled.values())
    if area > MOST_CELLS or area > max(_SPARSE_CELLS, _MOST_A_CELL * cells):
        raise PolicyError(
            f"The first sheet of {path} reaches over {sheet.rows:,} rows and {sheet.columns:,} columns, with"
            f" {cells:,} filled cells; clear those far from the table, or save the table as CSV."
        )
    return sheet


def _first_sheet(archive: zipfile.ZipFile) -> str:
    """The name in the archive of the first sheet of the workbook."""
    sheets: list[str] = []
    targets: dict[str, str] = {}

    def start(name: str, attributes: dict[str, str]) -> None:
        if _plain(name) == "sheet":
            sheets.append(next(value for key, value in attributes.items() if _plain(key) == "id" and ":" in key))
        elif _plain(name) == "Relationship":
            targets[attributes["Id"]] = attributes["Target"]

    _parse(archive, "xl/workbook.xml", start)
    _parse(archive, "xl/_rels/workbook.xml.rels", start)
    target = targets[sheets[0]]
    return target.lstrip("/") if target.startswith("/") else str(PurePosixPath("xl") / target)


def _empty_strings(archive: zipfile.ZipFile) -> frozenset[int]:
    """The places of shared texts that are empty: cells that refer to them are not filled."""
    if "xl/sharedStrings.xml" not in archive.namelist():
        return frozenset()
    texts = _Texts()
    _parse(archive, "xl/sharedStrings.xml", texts.start, texts.end, texts.text)
    return frozenset(texts.empty)


class _Texts:
    """A reader of shared texts; what a text is pronounced like is none of it."""

    def __init__(self) -> None:
        self.empty: set[int] = set()
        self._place, self._is_empty, self._inside = -1, True, ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        del attributes
        name = _plain(name)
        if name == "si":
            self._place, self._is_empty = self._place + 1, True
        elif name in ("t", "rPh") and self._inside != "rPh":
            self._inside = name

    def end(self, name: str) -> None:
        name = _plain(name)
        if name == "si" and self._is_empty:
            self.empty.add(self._place)
        elif name == self._inside:
            self._inside = ""

    def text(self, data: str) -> None:
        if self._inside == "t" and data:
            self._is_empty = False


def _measure(archive: zipfile.ZipFile, name: str, empty: frozenset[int]) -> Sheet:
    reader = _Cells(empty)
    _parse(archive, name, reader.start, reader.end, reader.text)
    reader.sheet.header = frozenset(reader.header)
    return reader.sheet


class _Cells:
    """A reader of a sheet's cells; a cell that does not say where it is follows the one before."""

    def __init__(self, empty: frozenset[int]) -> None:
        self.sheet, self.header = Sheet(), set[int]()
        self._empty = empty
        self._row = self._column = 0
        self._type, self._value, self._is_value = "", "", False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        name = _plain(name)
        if name == "c":
            self._column, self._type, self._value = self._column + 1, attributes.get("t", ""), ""
            if place := _CELL.fullmatch(attributes.get("r", "")):
                self._column, self._row = _number(place[1]), int(place[2])
        elif name == "row":
            self._row, self._column = int(attributes.get("r", self._row + 1)), 0
        elif name in ("v", "t"):
            self._is_value = True

    def text(self, data: str) -> None:
        if self._is_value:
            self._value = (self._value + data)[:20]  # enough to tell a place among the shared texts

    def end(self, name: str) -> None:
        name = _plain(name)
        if name in ("v", "t"):
            self._is_value = False
        elif name == "c" and self._is_filled():
            sheet = self.sheet
            sheet.filled[self._column] += 1
            sheet.rows, sheet.columns = max(sheet.rows, self._row), max(sheet.columns, self._column)
            if self._row == 1:
                self.header.add(self._column)

    def _is_filled(self) -> bool:
        if self._type == "e":
            return False  # an error, such as #N/A, is no value
        if self._type == "s":
            return self._value != "" and int(self._value) not in self._empty
        return self._value != ""


def _number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - 64
    return number


def _plain(name: str) -> str:
    """A name of XML without its prefix."""
    return name.rpartition(":")[2]


def _refuse_type(*_: object) -> None:
    raise ValueError("a spreadsheet declares no document type")


def _parse(
    archive: zipfile.ZipFile,
    member: str,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None] | None = None,
    text: Callable[[str], None] | None = None,
) -> None:
    """Stream one XML file of the archive through the handlers; it ends where the archive declares its end."""
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse_type
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    with archive.open(member) as file:
        for chunk in _chunks(file):
            parser.Parse(chunk)
        parser.Parse(b"", True)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        yield chunk
