"""Templates of pages, with what every page has: numbers as people read them, and the style."""

from __future__ import annotations

import functools
from importlib import resources

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from sqlanon.report import numbers


@functools.cache
def template(name: str) -> Template:
    """Load a template of this folder; every text that it is given is escaped."""
    here = resources.files("sqlanon.report")
    environment = Environment(
        loader=FunctionLoader(lambda file: here.joinpath(file).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"whole": numbers.whole, "decimal": numbers.decimal, "percent": numbers.percent}
    environment.globals["style"] = Markup(here.joinpath("style.css").read_text(encoding="utf-8"))
    return environment.get_template(name)
