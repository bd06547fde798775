"""Templates of pages, with what every page has: numbers as people read them, and the style."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib import resources
from importlib.resources.abc import Traversable

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from sqlanon.report import number_text as numbers


@functools.cache
def template(name: str, room: str = "sqlanon.report") -> Template:
    """Load a template of a page; every text that it is given is escaped.

    room: the package of a method that has it, whose templates may name those of this folder.
    """
    here = resources.files("sqlanon.report")
    folders = (resources.files(room), here)
    environment = Environment(
        loader=FunctionLoader(lambda file: _read(folders, file)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"whole": numbers.whole, "decimal": numbers.decimal, "percent": numbers.percent}
    environment.globals["style"] = Markup(here.joinpath("style.css").read_text(encoding="utf-8"))
    return environment.get_template(name)


def _read(folders: Sequence[Traversable], file: str) -> str | None:
    """Read a file of the first folder that has it; None where none has."""
    there = next((path for folder in folders if (path := folder.joinpath(file)).is_file()), None)
    return None if there is None else there.read_text(encoding="utf-8")
