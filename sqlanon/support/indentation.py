"""Lines of statements moved in, where an expression of several lines stands within a line further in than they are."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

_TOKEN = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /[*].*?[*]/
    | (?P<open>[(\[] | \bCASE\b) | (?P<close>[)\]] | \bEND\b)""",
    re.VERBOSE | re.DOTALL,
)
"""Parts that stay whole: literals, quoted names, comments; openings and ends of what lines stand within."""

_BLOCK, _EXPRESSION = 4, 2  # spaces that lines are further in than the line that opens a subquery, or an expression


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
