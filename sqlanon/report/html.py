"""Templates of pages, with what every page has: numbers as people read them, and the style."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from sqlanon import __version__
from sqlanon.catalog import Run
from sqlanon.policy.algorithms import parameters_of_algorithm
from sqlanon.policy.shown_policy import without_values
from sqlanon.report import number_text as numbers
from sqlanon.results.method_result import MethodResult


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


def render_own(room: str, run: Run, result: MethodResult, sentences: Mapping[str, str], **parts: Any) -> str:
    """Render the whole page of a run by the template `page.html.j2` of a method, which extends `own.html.j2`.

    room: the package of the method. sentences: of the checks, by their names.
    parts: what the template needs beside the parts of every page.
    """
    policy, parameters = json.loads(run.policy), parameters_of_algorithm(result.algorithm)
    return template("page.html.j2", room).render(
        run=run,
        result=result,
        source=_name_of(policy["source"]),
        release=_name_of(policy["release"]),
        made_by=__version__,
        how="" if parameters is None else parameters.sentence,
        checks=[{"sentence": sentences.get(check, check), **asdict(of)} for check, of in result.checks.items()],
        policy=json.dumps(without_values(policy), ensure_ascii=False, indent=2),
        **parts,
    )


def _name_of(place: Mapping[str, str]) -> str:
    """Name the table or the file of a policy's source or release."""
    return place.get("table") or place["file"]
