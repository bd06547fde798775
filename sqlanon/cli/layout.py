"""Texts in columns, for a terminal or a pipe."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from sqlanon.cli.deferred import sql
from sqlanon.errors import PolicyError

WIDEST = 36  # characters of a cell
WHOLE = sys.maxsize  # of one that is not to be cut
_PLAIN = re.compile(r"\w+")


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], indent: str = "  ", widest: int = WIDEST) -> str:
    """Rows under headings, numbers to the right; cells of more than `widest` characters are cut."""
    texts = [[_cell(value, widest) for value in row] for row in rows]
    right = [
        bool(rows) and all(isinstance(row[i], (int, float, type(None))) for row in rows) for i in range(len(headings))
    ]
    widths = [max(cell_len(line[i]) for line in [list(headings), *texts]) for i in range(len(headings))]
    lines = [_line(line, widths, right, indent) for line in [list(headings), *texts]]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool], indent: str) -> str:
    padded = [
        " " * (width - cell_len(cell)) + cell if is_right else cell + " " * (width - cell_len(cell))
        for cell, width, is_right in zip(cells, widths, right, strict=True)
    ]
    return (indent + "  ".join(padded)).rstrip()


def _cell(value: object, widest: int) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    text = number(value) if isinstance(value, float) else _printable(str(value))
    return text if cell_len(text) <= widest else set_cell_size(text, widest - 1) + "…"


def place_text(recorded: str) -> str:
    """A table as people write it, of a name that the catalog holds whole; files and short names as they are."""
    if not recorded.startswith('"'):
        return recorded
    try:
        parts = sql.Relation.parse(recorded).parts[-2:]
    except PolicyError:
        return recorded
    return ".".join(part if _PLAIN.fullmatch(part) else str(sql.Identifier(part)) for part in parts)


def number(value: float) -> str:
    """A number in at most four digits after the point."""
    return f"{value:,.4f}".rstrip("0").rstrip(".") if abs(value) < 1e15 else f"{value:.4g}"


def percent(share: float) -> str:
    """A share from 0 to 1 in percent; never `0 %` for what is more."""
    return "under 0.01 %" if 0 < share < 0.0001 else f"{number(round(100 * share, 2))} %"


def _printable(text: str) -> str:
    """Text that can't move the cursor or break the line."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
