"""`--levels age=2,zipcode=3`: a generalization on the command line."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from sqlanon.errors import PolicyError

_PART = re.compile(
    r"""
    \s* (?: "(?P<quoted>(?:[^"]|"")+)" | (?P<plain>[^",=]+?) ) \s*  # a name
    = \s* (?P<level>[0-9]+) \s*
    (?: , | $ )
    """,
    re.VERBOSE,
)

TimeLimit = Annotated[
    float | None,
    typer.Option("--time-limit", min=0.001, help="Seconds after which the search stops with the best it has found."),
]
AnySize = Annotated[bool, typer.Option("--any-size", help="Search however many generalizations the lattice has.")]


def parse_levels(text: str) -> dict[str, int]:
    """The level of each attribute. Names that hold commas, `=` or quotes stand in double quotes, `"` doubled inside.

    Raises PolicyError for anything else, and for an attribute that is named twice.
    """
    levels: dict[str, int] = {}
    place = 0
    while place < len(text) or not levels:
        part = _PART.match(text, place)
        if part is None:
            raise PolicyError(
                '--levels: write NAME=LEVEL, with commas between, such as age=2,zipcode=3; names with commas, "=" or '
                f"quotes in double quotes. It can't be read from character {place + 1} on."
            )
        name = part["plain"] or part["quoted"].replace('""', '"')
        if name in levels:
            raise PolicyError(f"--levels: '{name}' is there twice.")
        levels[name] = int(part["level"])
        place = part.end()
    return levels
