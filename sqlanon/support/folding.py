"""Lines of statements: moved in, and broken for people who read them."""

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


_TOKEN = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /[*].*?[*]/
    | (?P<open>[(\[] | \bCASE\b) | (?P<close>[)\]] | \bEND\b)""",
    re.VERBOSE | re.DOTALL,
)


_BLOCK, _EXPRESSION = 4, 2  # spaces that lines are further in than the line that opens a subquery, or an expression


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


"""Parts that stay whole: literals, quoted names, comments; openings and ends of what lines stand within."""


def align(lines: Sequence[str]) -> Sequence[str]:
    """Move lines in that are not further in than the line with the bracket or CASE that they stand within.

    When a line moves, those that follow within the same bracket move with it. A line that begins with the end of a
    bracket is at least as far in as the line that opened it. Only the spaces at the beginning of lines change. Lines
    whose brackets are not in pairs, as of a procedure whose blocks have an END, stay as they are.
    """
    aligned: list[str] = []
    opened: list[list[int]] = []  # of each open bracket: its line's indentation and move, and those of lines within it
    for line in lines:
        text = line.lstrip(" ")
        indentation, move = len(line) - len(text), 0
        ending, opening, begins_with_end = _brackets(text)
        if len(opened) < ending:
            return lines
        if opened:
            outer, outer_move, least, inner_move = opened[-1]
            if begins_with_end:
                move = max(outer_move, outer - indentation)
            else:
                move = opened[-1][3] = max(inner_move, least - indentation)
            indentation += move
        aligned.append(" " * indentation + text)
        del opened[len(opened) - ending :]
        step = _BLOCK if text.endswith("(") else _EXPRESSION
        opened += ([indentation, move, indentation + step, move] for _ in range(opening))
    return lines if opened else aligned


@functools.lru_cache(8192)
def _brackets(text: str) -> tuple[int, int, bool]:
    """Count the brackets and CASEs that a line ends and opens, but for pairs; tell whether it begins with an end."""
    ending = opening = 0
    for token in _TOKEN.finditer(text):
        if token["open"]:
            opening += 1
        elif token["close"] and opening:
            opening -= 1
        elif token["close"]:
            ending += 1
    first = _TOKEN.match(text)
    return ending, opening, first is not None and first["close"] is not None
