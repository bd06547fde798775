"""Long lines of statements, broken for people who read them in a log, a record or the catalog of a database."""

from __future__ import annotations

import functools
import re
from collections import deque
from collections.abc import Iterable, Sequence

_PIECE = re.compile(
    r"""/[*].*?[*]/[ ]*(?:-?[0-9.]+ | CAST\('[^']*'[ ]AS[ ](?:FLOAT8|DOUBLE)\) | '(?:[^']|'')*')?
    | '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | [ ]+ | [^\s'"/-]+ | .""",
    re.VERBOSE | re.DOTALL,
)
"""Parts that stay whole: literals, quoted names, comments with the value that one is about; words."""

_LINE = re.compile(
    r"""(?:[^'"/\n-]+ | '(?:[^']|'')*' | "(?:[^"]|"")*" | /[*].*?[*]/ | --[^\n]* | [^\n])+ | \n""",
    re.VERBOSE | re.DOTALL,
)
"""Lines, with what goes on in the next one in a literal, a quoted name or a comment; and their ends."""

_OPENING, _CLOSING = re.compile(r"[(\[]|\bCASE\b"), re.compile(r"[)\]]|\bEND\b")
_LEAST_WORDS = 20  # so many characters of a sentence stay together
_LEANING = re.compile("AND|OR|NOT|AS|IN|IS|WHEN|THEN|ELSE|[-=<>+*/|]+")  # words that go with what comes next


def fold(text: str, width: int = 140, *, sentences: bool = False) -> str:
    """Break the lines of a statement before they get longer than `width`, where it can be done.

    Comments, quoted names, and literals of several lines stay as they are. With `sentences`, longer literals of one
    line are divided, as SQL lets them go on in the next line.
    """
    if max(map(len, text.split("\n"))) <= width:
        return text
    return "".join(
        line if len(line) <= width else _folded(_PIECE.findall(line), width, sentences) for line in lines_of(text)
    )


def lines_of(text: str) -> list[str]:
    """Divide a statement into its lines and their ends; one that a literal, name or comment goes on in is no line."""
    return _LINE.findall(text)


def _folded(pieces: Sequence[str], width: int, sentences: bool) -> str:
    """The pieces of a line as lines, of which all but the first stand four spaces further in."""
    line = "".join(pieces)
    if len(line) <= width or "\n" in line:
        return line
    margin = line[: len(line) - len(line.lstrip())] + "    "
    left, length, lines = deque(pieces), len(line), []
    while length > width:
        place, end = _end_of_line(left, width, sentences)
        if not place:
            break
        taken, piece = "".join(left.popleft() for _ in range(place)), left.popleft()
        if end:
            left.appendleft(f"'{piece[end:]}")
        lines.append(f"{taken}{piece[:end]}'" if end else taken)
        left.appendleft(margin)
        length += len(margin) - len(taken) - (end - 1 if end else len(piece))
    return "\n".join([*lines, "".join(left)])


def _end_of_line(pieces: Iterable[str], width: int, sentences: bool) -> tuple[int, int]:
    """Find where a line is best broken: after so many pieces, and so many characters of the next one if it is divided.

    Sentences are divided after a word; else a line ends at a space within as few brackets and CASEs as possible, of
    those behind its first third if there are any. 0 pieces where there is no space.
    """
    depth, length, before = 0, 0, ""
    breaks: dict[int, tuple[bool, int, bool, int]] = {}
    for place, piece in enumerate(pieces):
        if piece.isspace() and place:
            if length > width:
                return max(breaks, key=breaks.__getitem__, default=place), 0
            breaks[place] = (length > width // 3, -depth, not _LEANING.fullmatch(before), place)
        if sentences and length <= width < length + len(piece) and piece[0] == "'" and not before[-1:].isalnum():
            end = piece.rfind(" ", 1, max(width - length - 1, 0)) + 1
            if end >= _LEAST_WORDS:
                return place, end
        if length > width and breaks:
            break
        if piece[0] not in "'\"-/":
            depth += _opened(piece)
        length, before = length + len(piece), piece
    return max(breaks, key=breaks.__getitem__, default=0), 0


@functools.lru_cache(4096)
def _opened(piece: str) -> int:
    """The brackets and CASEs that a word opens, without those that it closes."""
    return len(_OPENING.findall(piece)) - len(_CLOSING.findall(piece))
