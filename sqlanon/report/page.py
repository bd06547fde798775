"""The report as HTML: one file that loads nothing."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from sqlanon import __version__
from sqlanon.catalog import Run
from sqlanon.errors import PolicyError
from sqlanon.exploring.posing import NO_RELEASE
from sqlanon.measures.disclosure import THRESHOLDS
from sqlanon.measures.population import journalist_risk
from sqlanon.policy.facts import without_values
from sqlanon.report import numbers, pictures, wording
from sqlanon.report.material import Material
from sqlanon.rules.first_levels import DEPTH
from sqlanon.runs.choices import Choices
from sqlanon.runs.outcome import PHASES, about

_Row = dict[str, Any]
_ESTIMATED = ("c_avg", "discernibility", "prosecutor_mean", "marketer")  # of a large source


def render(material: Material, population: int | None = None) -> str:
    """The whole page; every text of the run is escaped.

    population: how many the source is a random sample of, for the journalist's risk. Raises PolicyError if they are
    fewer than the rows released.
    """
    released = material.result.get("release", {}).get("rows", 0)
    if population is not None and population < released:
        raise PolicyError(f"A population of {population:,} can't be: the release has {released:,} rows.")
    return _template().render(**_content(material, population))


@functools.cache
def _template() -> Template:
    here = resources.files("sqlanon.report")
    environment = Environment(
        loader=FunctionLoader(lambda name: here.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"whole": numbers.whole, "decimal": numbers.decimal, "percent": numbers.percent}
    environment.globals["style"] = Markup(here.joinpath("style.css").read_text(encoding="utf-8"))
    return environment.get_template("report.html.j2")


def _content(material: Material, population: int | None) -> dict[str, Any]:
    """What the template shows: parts are empty, or None, where the run did not record them."""
    run, result, policy = material.run, material.result, material.policy
    disclosure = list(_disclosure(result))
    return {
        "run": run,
        "status": wording.STATUSES[run.status.value],
        "made_by": __version__,
        "result": result,
        "source": _name(policy["source"]),
        "release": None if run.release == NO_RELEASE else _name(policy["release"]),
        "columns": [_column(policy, name) for name in policy["attributes"]],
        "models": list(_models(policy, result)),
        "choices": material.choices,
        "told": [] if material.choices is None else wording.told(material.choices, policy.get("suppressed", "omit")),
        "persons": wording.persons(result),
        "starred": result.get("starred", {}).get("note"),
        "repeats": bool(result.get("subject", {}).get("note")),
        "how_checked": wording.CHECKED[_checked_by(material.choices)],
        "unmeasured": wording.unmeasured(result, material.choices) if result and material.choices else "",
        "frozen": None if material.frozen is None else _frozen(material.frozen),
        "suppression": policy.get("suppression", 0.0),
        "suppressed": policy.get("suppressed", "omit"),
        "remainder": policy.get("remainder", "suppress"),
        "algorithm": run.algorithm,
        "searched": wording.ALGORITHMS.get(run.algorithm),
        "quasi_identifiers": list(_quasi_identifiers(result)),
        "distributions": list(_distributions(result)),
        "combinations": result.get("combinations"),
        "distributed": result.get("distributions"),
        "checks": [_check(name, check) for name, check in result.get("checks", {}).items()],
        "metrics_rows": list(_metrics(policy, result)),
        "risks": list(_risks(result, population)),
        "population": population,
        "disclosure": disclosure,
        "thresholds": THRESHOLDS,
        "told_most": max(
            (one for one in disclosure if one["one_value"]), key=lambda one: one["one_value"], default=None
        ),
        "points": material.points,
        "pictures": _pictures(material),
        "tree_depth": DEPTH,
        "phases": [(name, result["seconds"][name]) for name in PHASES if name in result.get("seconds", {})],
        "releases": material.releases,
        "policy": json.dumps(without_values(policy), ensure_ascii=False, indent=2),
    }


def _checked_by(choices: Choices | None) -> str:
    if choices is None:
        return "search"
    return "procedure" if choices.procedure else "rules"


def _frozen(run: Run) -> dict[str, Any]:
    """The figures of the run whose rules were applied."""
    policy, result = json.loads(run.policy), dict(run.result or {})
    return {
        "run": run,
        "said": wording.borrowed(run),
        "quasi_identifiers": list(_quasi_identifiers(result)),
        "metrics_rows": list(_metrics(policy, result)),
        "risks": list(_risks(result)),
        "losses": _losses(result, "frozen-loss-"),
    }


def _name(place: Mapping[str, Any]) -> str:
    """A table or a file without its directory, as the policy names it."""
    return Path(place["file"]).name if place.get("file") else str(place["table"])


def _column(policy: Mapping[str, Any], name: str) -> _Row:
    role, hierarchy = policy["attributes"][name]["role"], policy["attributes"][name].get("hierarchy") or {}
    fate = wording.ROLES[role]
    if role == "quasi-identifier":
        fate += ": " + wording.HIERARCHIES[next((kind for kind in wording.HIERARCHIES if kind in hierarchy), None)]
    if role == "sensitive":
        protected = any(model.get("attribute") == name for model in policy["privacy"])
        fate += ", and protected by a model" if protected else ", and protected by no model"
    return {"name": name, "role": role, "fate": fate}


def _models(policy: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[_Row]:
    """What was asked, and beside each model how the release stands to it."""
    found = result.get("models") or [None] * len(policy["privacy"])
    for asked, got in zip(policy["privacy"], found, strict=True):
        yield {"name": asked["model"], "sentence": wording.model_sentence(asked, policy["attributes"]), "result": got}


def _quasi_identifiers(result: Mapping[str, Any]) -> Iterator[_Row]:
    levels = result.get("algorithm", {}).get("levels", {})
    for one in result.get("quasi_identifiers", ()):
        level = levels.get(one["name"])
        yield {**one, "how": wording.HIERARCHIES[one["hierarchy"]], "level": level}


def _check(name: str, check: Mapping[str, Any]) -> _Row:
    return {**check, "sentence": wording.CHECKS.get(name, name)}


def _metrics(policy: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[_Row]:
    before, after = result.get("source", {}).get("metrics", {}), result.get("metrics", {})
    target = policy.get("algorithm", {}).get("target", "")
    for name, (title, meaning) in wording.METRICS.items():
        if name in after:
            write = numbers.percent if name == "gcp" else numbers.decimal
            shown = {"title": title.format(target=target), "meaning": meaning}
            near = about(result["source"]) if name in _ESTIMATED else ""
            yield {**shown, "before": near + write(before.get(name)), "after": write(after[name])}


def _risks(result: Mapping[str, Any], population: int | None = None) -> Iterator[_Row]:
    if not result:
        return
    before, after = result["source"].get("risk", {}), result["risk"]
    for name, (title, meaning) in wording.RISKS.items():
        if name == "journalist" and population is not None:
            yield {"title": title, "meaning": wording.in_population(population), **_journalist(result, population)}
            continue
        measured = "prosecutor_max" if name == "journalist" else name
        limit = "≤ " if name == "journalist" else ""
        near = about(result["source"]) if name in _ESTIMATED else ""
        was = near + limit + numbers.percent(before[measured]) if measured in before else numbers.UNKNOWN
        yield {"title": title, "meaning": meaning, "before": was, "after": limit + numbers.percent(after[measured])}


def _journalist(result: Mapping[str, Any], population: int) -> dict[str, str]:
    """The journalist's greatest risk before and after: that of a row of the least class."""
    written = {}
    for when, table in (("before", result["source"]), ("after", result["release"])):
        least = table.get("min_class_size")
        known = least is not None and table["rows"] > 0
        risk = journalist_risk(least, table["rows"] / population) if known else None
        written[when] = numbers.percent(risk)
    return written


def _distributions(result: Mapping[str, Any]) -> Iterator[_Row]:
    """The columns with the pictures of their bars, those that have some."""
    for number, column in enumerate(result.get("distributions", {}).get("columns", ())):
        if column["bars"]:
            said = wording.distribution(column)
            yield {"name": column["name"], "said": said, "picture": pictures.distribution(column, f"column-{number}-")}


def _disclosure(result: Mapping[str, Any]) -> Iterator[_Row]:
    """What classes tell of each sensitive column, in shares of its rows."""
    for one in result.get("disclosure", ()):
        rows = max(1, one["rows"])
        above = [one[f"above_{threshold}"] / rows for threshold in THRESHOLDS]
        yield {**one, "one_value_rows": one["one_value"], "one_value": one["one_value"] / rows, "above": above}


def _pictures(material: Material) -> dict[str, Markup | None]:
    result = material.result
    names = ("sizes", "risks", "losses", "lattice", "tree", "tradeoff")
    if not result:
        return dict.fromkeys(names)
    drawn = (
        pictures.class_sizes(result),
        pictures.risks(result),
        _losses(result, "loss-"),
        pictures.lattice(result),
        pictures.tree(material),
        pictures.tradeoff(material),
    )
    return dict(zip(names, drawn, strict=True))


def _losses(result: Mapping[str, Any], name: str) -> Markup | None:
    columns = [one for one in result.get("quasi_identifiers", ()) if one["loss"] is not None]
    return pictures.losses(columns, name) if columns else None
