"""The report as HTML: one file that loads nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sqlanon import __version__
from sqlanon.catalog import NO_RELEASE, Run
from sqlanon.errors import PolicyError
from sqlanon.measures.population import journalist_risk
from sqlanon.policy.shown_policy import without_values
from sqlanon.report import number_text as numbers
from sqlanon.report import pictures, wording
from sqlanon.report.drawing.tree import DEPTH
from sqlanon.report.html import template
from sqlanon.report.material import Material
from sqlanon.results.measures import THRESHOLDS
from sqlanon.results.run_result import PHASES, RunResult
from sqlanon.results.search_facts import ClusterFacts
from sqlanon.support.methods import method_of

_Row = dict[str, Any]
_ESTIMATED = ("c_avg", "discernibility", "prosecutor_mean", "marketer")  # of a large source
_OF_READERS = ("discernibility",)  # figures of what readers see: they see no groups


def render(material: Material, population: int | None = None, explored: str | None = None) -> str:
    """The whole page; every text of the run is escaped.

    population: how many the source is a random sample of, for the journalist's risk.
    explored: the address of a page of `sqlanon explore`, to link to.

    Raises PolicyError if the population is smaller than the release, or it or a page of choices is given of a release
    that shows no classes; or where a run that makes such a one made none.
    """
    own = _render_own(material, population)
    if own is not None:
        if explored is not None:
            raise PolicyError("--explore is of releases that show classes; this one has none: leave it out.")
        return own
    released = 0 if material.result is None else _released(material.result)
    if population is not None and material.result is not None and population < released:
        members = f"{material.result.member}s"
        raise PolicyError(f"A population of {population:,} can't be: the release has {released:,} {members}.")
    return template("report.html.j2").render(explored=explored, **_content(material, population))


def _render_own(material: Material, population: int | None) -> str | None:
    """Render the page of a release that shows no classes; None where the run made another one."""
    run = material.run
    method = method_of(run.algorithm)
    if method is None or method.page is None:
        return None
    result = run.method_result
    if result is None:
        raise PolicyError(f"Run {run.id} released nothing: `sqlanon show {run.id}` says why.")
    if population is not None:
        raise PolicyError(f"--population is of classes; {result.release_of} has none: leave it out.")
    page: str = method.load(method.page)(run, result)
    return page


def _content(material: Material, population: int | None) -> dict[str, Any]:
    """Collect the values of the template: parts are empty, or None, where the run did not record them."""
    run, result, policy = material.run, material.result, material.policy
    judged = None if result is None else result.release.judged
    disclosure = list(_disclosure(result))
    return {
        "run": run,
        "status": wording.STATUSES[run.status.value],
        "made_by": __version__,
        "result": result,
        "source": _name(policy["source"]),
        "release": None if run.release == NO_RELEASE else _name(policy["release"]),
        "forms": wording.FORMS.get(_kind_of_facts(result)),
        "rescaled": _keeps_variance(result),
        "columns": [_column(policy, name, result) for name in policy["attributes"]],
        "models": list(_models(policy, result)),
        "choices": material.choices,
        "choice_rows": wording.list_choices(material.choices, policy.get("suppressed", "omit")),
        "persons": wording.persons(result),
        "member": "row" if result is None else result.member,
        "starred": result and result.starred and result.starred.note,
        "repeats": result is not None and result.subject is not None and bool(result.subject.note),
        "how_checked": wording.how_checked(material.choices, judged),
        "judged": judged,
        "word": "class" if judged is None else "group",
        "words": "classes" if judged is None else "groups",
        "unmeasured": wording.unmeasured(result, material.choices) if result is not None and material.choices else "",
        "frozen": None if material.frozen is None else _frozen(material.frozen),
        "suppression": policy.get("suppression", 0.0),
        "suppressed": policy.get("suppressed", "omit"),
        "remainder": policy.get("remainder", "suppress"),
        "algorithm": run.algorithm,
        "searched": wording.searched(run.algorithm),
        "quasi_identifiers": list(_quasi_identifiers(result)),
        "distributions": list(_distributions(result)),
        "combinations": result and result.combinations,
        "distributed": result and result.distributions,
        "checks": list(_checks(result)),
        "metrics_rows": list(_metrics(policy, result)),
        "risks": list(_risks(result, population)),
        "population": population,
        "disclosure": disclosure,
        "masking": result and result.masking,
        "masked_rows": list(_masked(result)),
        "thresholds": THRESHOLDS,
        "told_most": max(
            (one for one in disclosure if one["one_value"]), key=lambda one: one["one_value"], default=None
        ),
        "points": material.points,
        "pictures": _pictures(material),
        "tree_depth": DEPTH,
        "phases": [] if result is None else [(n, took) for n, took in result.seconds.parts.items() if n in PHASES],
        "releases": material.releases,
        "policy": json.dumps(without_values(policy), ensure_ascii=False, indent=2),
    }


def _frozen(run: Run) -> dict[str, Any]:
    """The figures of the run whose rules were applied."""
    policy, result = json.loads(run.policy), run.result
    return {
        "run": run,
        "text": wording.borrowed(run),
        "quasi_identifiers": list(_quasi_identifiers(result)),
        "metrics_rows": list(_metrics(policy, result)),
        "risks": list(_risks(result)),
        "losses": _losses(result, "frozen-loss-"),
    }


def _name(place: Mapping[str, Any]) -> str:
    """A table or a file without its directory, as the policy names it."""
    return Path(place["file"]).name if place.get("file") else str(place["table"])


def _column(policy: Mapping[str, Any], name: str, result: RunResult | None) -> _Row:
    role, hierarchy = policy["attributes"][name]["role"], policy["attributes"][name].get("hierarchy") or {}
    fate = wording.ROLES[role]
    if role == "quasi-identifier":
        kinds = (*wording.HIERARCHIES, *hierarchy)
        kind = next((kind for kind in kinds if kind in hierarchy), None)
        fate += ": " + wording.recoding_text(kind, _kind_of_facts(result))
    if role == "sensitive":
        protected = any(model.get("attribute") == name for model in policy["privacy"])
        fate += ", and protected by a model" if protected else ", and protected by no model"
    return {"name": name, "role": role, "fate": fate}


def _keeps_variance(result: RunResult | None) -> bool:
    """Tell whether the centres of clusters were rescaled."""
    facts = None if result is None else result.algorithm.facts
    return isinstance(facts, ClusterFacts) and facts.keep == "variance"


def _kind_of_facts(result: RunResult | None) -> str:
    facts = None if result is None else result.algorithm.facts
    return "" if facts is None else facts.kind


def _models(policy: Mapping[str, Any], result: RunResult | None) -> Iterator[_Row]:
    """Yield the models that were asked for, each with the release's result."""
    verdicts = (None if result is None else result.models) or [None] * len(policy["privacy"])
    fits = result is not None and bool(result.release.fits)
    for asked, verdict in zip(policy["privacy"], verdicts, strict=False):
        sentence = wording.model_sentence(asked, policy["attributes"], _person(policy))
        yield {"name": asked["model"], "sentence": wording.MATCHING + sentence if fits else sentence, "result": verdict}
    for verdict in verdicts[len(policy["privacy"]) :]:  # of combinations of columns
        sentence = wording.combinations_sentence(verdict.parameters) if verdict is not None else ""
        yield {"name": "" if verdict is None else verdict.model, "sentence": sentence, "result": verdict}


def _person(policy: Mapping[str, Any]) -> str | None:
    """The attribute whose values are persons, as the policy is stored; None where rows are counted."""
    subject = policy.get("subject")
    return None if subject in (None, "none") else str(subject)


def _quasi_identifiers(result: RunResult | None) -> Iterator[_Row]:
    if result is None:
        return
    levels, applied = result.algorithm.levels, result.algorithm.applied
    many = "many" if applied is None or applied.procedure is None else numbers.UNKNOWN  # procedures count none
    for one in result.quasi_identifiers or ():
        values = many if one.values is None else numbers.whole(one.values)
        yield {
            **vars(one),
            "values_before": values,
            "how": wording.recoding_text(one.hierarchy, _kind_of_facts(result)),
            "level": levels.get(one.name),
        }


def _checks(result: RunResult | None) -> Iterator[_Row]:
    checks = {} if result is None else result.checks or {}
    for name, check in checks.items():
        yield {**vars(check), "sentence": wording.CHECKS.get(name, name)}


def _metrics(policy: Mapping[str, Any], result: RunResult | None) -> Iterator[_Row]:
    if result is None:
        return
    figures = result.source.figures
    before = {} if figures is None or figures.metrics is None else vars(figures.metrics)
    target = policy.get("algorithm", {}).get("target", "")
    for name, (title, meaning) in wording.METRICS.items():
        value = getattr(result.metrics, name)
        if result.release.judged is not None and name in _OF_READERS:
            continue
        if value is not None or name == "gcp":
            write = numbers.percent if name == "gcp" else numbers.decimal
            near = result.source.about if name in _ESTIMATED else ""
            meant = wording.counting(meaning, result.member)
            shown = {"title": title.format(target=target), "meaning": meant}
            yield {**shown, "before": near + write(before.get(name)), "after": write(value)}


def _risks(result: RunResult | None, population: int | None = None) -> Iterator[_Row]:
    if result is None or result.risk is None:
        return
    figures = result.source.figures
    before = {} if figures is None or figures.risk is None else vars(figures.risk)
    for name, (title, meaning) in wording.RISKS.items():
        if name == "journalist" and population is not None:
            meaning = wording.in_population(population, result.member)
            yield {"title": title, "meaning": meaning, **_journalist(result, population)}
            continue
        measured = "prosecutor_max" if name == "journalist" else name
        limit = "≤ " if name == "journalist" else ""
        near = result.source.about if name in _ESTIMATED else ""
        was = near + limit + numbers.percent(before[measured]) if measured in before else numbers.UNKNOWN
        after = limit + numbers.percent(getattr(result.risk, measured))
        yield {"title": title, "meaning": wording.counting(meaning, result.member), "before": was, "after": after}


def _journalist(result: RunResult, population: int) -> dict[str, str]:
    """The journalist's greatest risk before and after: that of a member of the least class.

    Persons who have rows in several classes count as several of the source, so that its risk is no less than it is.
    """
    source, release = result.source, result.release
    before = None if source.figures is None else source.figures.min_class_size
    there = source.rows
    if result.member != "row" and source.class_sizes is not None:
        there = sum(bucket.rows for bucket in source.class_sizes)
    written = {}
    for when, least, members in (("before", before, there), ("after", release.min_class_size, _released(result))):
        risk = journalist_risk(least, min(1.0, members / population)) if least is not None and members > 0 else None
        written[when] = numbers.percent(risk)
    return written


def _released(result: RunResult) -> int:
    """The rows of the release, or its persons, where these are counted."""
    persons = None if result.subject is None else result.subject.persons
    return result.release.rows if persons is None else persons


def _distributions(result: RunResult | None) -> Iterator[_Row]:
    """The columns with the pictures of their bars, those that have some."""
    if result is None or result.distributions is None:
        return
    for number, column in enumerate(result.distributions.columns):
        if column.bars:
            picture = pictures.distribution(column, f"column-{number}-")
            yield {"name": column.name, "caption": wording.distribution(column), "picture": picture}


def _disclosure(result: RunResult | None) -> Iterator[_Row]:
    """Yield the disclosure of each sensitive column, in shares of its rows."""
    for one in () if result is None else result.disclosure or ():
        rows = max(1, one.rows)
        above = [above / rows for above in one.above]
        yield {**vars(one), "one_value_rows": one.one_value, "one_value": one.one_value / rows, "above": above}


def _masked(result: RunResult | None) -> Iterator[_Row]:
    """Yield the figures of a release without labels beside its source."""
    if result is None or result.masking is None:
        return
    for part, titles in wording.MASKING.items():
        measured = getattr(result.masking, part)
        for name, (title, meaning) in titles.items():
            value = None if measured is None else getattr(measured, name)
            if value is not None:
                yield {"title": title, "meaning": meaning, "value": numbers.decimal(value)}


def _pictures(material: Material) -> dict[str, Markup | pictures.SearchPicture | None]:
    result = material.result
    if result is None:
        return dict.fromkeys(("sizes", "risks", "losses", "search", "tree", "tradeoff"))
    is_shown = result.release.judged is None and not result.release.fits
    return {
        "sizes": pictures.class_sizes(result) if is_shown else None,
        "risks": pictures.risks(result) if is_shown else None,
        "losses": _losses(result, "loss-"),
        "search": pictures.search(result),
        "tree": pictures.tree(material),
        "tradeoff": pictures.tradeoff(material),
    }


def _losses(result: RunResult | None, name: str) -> Markup | None:
    columns = () if result is None else result.quasi_identifiers or ()
    losses = {one.name: one.loss for one in columns if one.loss is not None}
    return pictures.losses(losses, name) if losses else None
