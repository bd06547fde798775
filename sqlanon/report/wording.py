"""Plain words for what a policy asks, and for what a run measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlanon.catalog import Run
from sqlanon.models import from_spec
from sqlanon.policy.algorithms import parameters_of_algorithm
from sqlanon.policy.privacy import parameters_of_model
from sqlanon.report import number_text as numbers
from sqlanon.results.measures import Distribution
from sqlanon.results.run_result import RunResult
from sqlanon.runs.choices import Choices

ROLES = {
    "identifier": "left out of the release",
    "quasi-identifier": "generalized",
    "sensitive": "kept as it is",
    "insensitive": "kept as it is",
    "omit": "left out of the release",
}
_APPLIED = "Nothing was searched: the rows were recoded by the rules of an earlier release."
HIERARCHIES = {
    "mask": "characters masked",
    "date": "dates to periods",
    "intervals": "numbers to intervals",
    "csv": "groups from a file",
    "mapping": "groups from the policy",
    "suppress": "the value, or *",
    None: "ranges or sets of values",
}


FORMS = {
    "cells": "values; single cells as `*`, or as groups of their hierarchy",
    "clusters": "the centre of its cluster (mean, median or mode)",
    "gathered": "the row in the middle of its cluster",
    "condensed": "numbers drawn at random, and categories dealt out anew, within its group",
}
"""The form of values by the kind of facts, where hierarchies have no part in it."""


MATCHING = "A class is here the rows that fit a row, where * fits any value, and a group its own. "


def combinations_sentence(parameters: Mapping[str, Any]) -> str:
    """Say what holds of every combination of so many columns."""
    return (
        f"In every combination of {parameters['columns']} columns alone, at least {parameters['k']} rows fit every row,"
        " where * fits any value."
    )


def recoding_text(hierarchy: str | None, facts: str) -> str:
    """Say how a column with a hierarchy of a kind, or none, was recoded by a search with facts of a kind."""
    return FORMS.get(facts) or HIERARCHIES.get(hierarchy) or f"groups of {hierarchy}"


STATUSES = {
    "published": "Verified and published",
    "dry": "Tried, not published",
    "refused": "Refused: nothing was published",
    "failed": "Failed: nothing was published",
    "cancelled": "Cancelled: nothing was published",
    "running": "Not finished",
}
CHECKS = {
    "rows_add_up": "No row is lost or made up: rows released and rows left out add up to the source.",
    "columns_equal": "There is no column but those of the release, and those that are kept have the types they had.",
    "values_equal": "The columns that are kept hold the values they had, equally often.",
    "regions_contain": "Every row lies within the group that its class shows.",
    "classes_numbered": "Every row has one class, and classes are numbered by what they show.",
    "centres_true": "Every cluster shows the centre of the values of just the source rows that went to it.",
    "variances_equal": "Every column of numbers has the mean and the variance that it has in the source.",
    "radius_holds": "Every row lies within the radius of its cluster, measured from the published centre.",
    "clusters_true": "Every cluster has at least k rows, as many as it says, and one of them in its centre.",
    "values_counted": "The second table tells just how often each kept value occurs in each cluster.",
    "groups_spread": "The synthetic numbers of every group are spread about its means as the source's are.",
    "groups_equal": "Every group has as many synthetic rows as rows, with just their categories and kept values.",
    "rows_new": "No synthetic row has the numbers of a row of the source.",
    "pseudonyms_distinct": "As many pseudonyms as identifiers have as many rows, and none of them is an identifier.",
    "masks_true": "Masks are those of the identifiers, as often as these, and no faked value is the true one.",
    "classes_equal": "Every class holds just the kept values of the source rows that went to it.",
}
_CLASSES = ": classes are the groups of equal values in the rows as they were to be published."
CHECKED = {
    "search": "Before it was published, the release was read back as it was staged, and checked by statements of their"
    " own, which use none of the search's codes or counts" + _CLASSES,
    "rules": "Before it was published, the release was read back as it was staged, and checked by statements of their"
    " own, which use nothing of the rules" + _CLASSES,
    "procedure": "The procedure staged the rows in temporary tables and checked them there, by statements that use"
    " nothing of the rules, in the transaction that then published them" + _CLASSES + " The released table itself was"
    " not read back.",
}


def how_checked(choices: Choices | None, judged: str | None) -> str:
    """Say how the release was checked; judged: the classes that models judge, where readers do not see them."""
    if judged is not None:
        return (
            "Before it was published, the release was read back as it was staged, and checked by statements of their"
            f" own. Models are judged on {judged}, by the raw values of these rows: they say nothing of the released"
            " rows, which do not show their group, and of which nearly all differ."
        )
    if choices is None:
        return CHECKED["search"]
    return CHECKED["procedure" if choices.procedure else "rules"]


METRICS = {
    "gcp": (
        "Information lost (GCP)",
        "How much of its column's whole range a released value covers, on average over rows: 0 % is exact, 100 % says"
        " nothing.",
    ),
    "c_avg": (
        "Normalized average class size (C_AVG)",
        "How many times the k {member}s it needs a class holds, on average: 1 is the least that is possible.",
    ),
    "discernibility": (
        "Discernibility",
        "Every {member} of a class is charged the {member}s it looks like, a suppressed row the whole table. Less is"
        " better.",
    ),
    "conditional_entropy": (
        "Conditional entropy of “{target}”",
        "Bits a row that remain unknown of it to whoever knows the row's class. Less is better.",
    ),
    "rmse": (
        "Error of the class's mean of “{target}” (RMSE)",
        "The error, in its unit, of giving every row the mean of its class. Less is better.",
    ),
}
MASKING = {
    "numbers": {
        "il6": ("IL6", "Change of numbers, means, variances, covariances and correlations, on average, in percent."),
        "il1s": ("IL1s", "Change of a number, in units of √2 standard deviations of its column, on average."),
        "il3": ("IL3", "Change of a column's variance, in terms of the source's, on average."),
        "il5": ("IL5", "Change of a correlation of two columns, on average."),
        "sse": ("SSE/SST", "Squared change of the numbers, in percent of how they differ from their mean."),
    },
    "categories": {
        "distance": ("Distance", "From a category to the one released for it, from 0 to 1, on average."),
        "actbil": ("ACTBIL'", "Rows by which a cell of a contingency table is off, on average."),
        "ebil": ("EBIL", "Bits that the released categories leave unknown of the source's, over all rows."),
    },
    "risk": {
        "score": (
            "Score",
            "Half of IL6, a quarter of the rows linked by distance, a quarter of the numbers that lie near the released"
            " ones. Methods are compared by it; it is no verdict.",
        )
    },
}
RISKS = {
    "prosecutor_max": (
        "Prosecutor, greatest",
        "The chance to pick a {member} known to be in the table, if that one is in the smallest class.",
    ),
    "prosecutor_mean": ("Prosecutor, mean", "The same chance, on average over all {member}s{each}."),
    "journalist": (
        "Journalist, greatest",
        "The same chance where nobody knows whether the {member} is in the table. It is at most the prosecutor's, and"
        " as great where the table holds everybody.",
    ),
    "marketer": (
        "Marketer",
        "The share of all {member}s{each} that are expected to be picked rightly if somebody tries to match every one.",
    ),
}


def searched(algorithm: str) -> str | None:
    """Say how a release was searched for; None of a package's algorithm that is not installed any more."""
    if algorithm == "apply":
        return _APPLIED
    parameters = parameters_of_algorithm(algorithm)
    return None if parameters is None else parameters.sentence or None


def in_population(people: int, member: str) -> str:
    """Explain the journalist's risk, where the population is known; member: the noun for what classes count."""
    return (
        f"The same chance where nobody knows whether the {member} is in the table, if its {member}s are a random sample"
        f" of {people:,}: the mean of one in the people who share the class's labels."
    )


def counting(text: str, member: str) -> str:
    """Write a text about what classes count; a person counts once in each class of theirs."""
    return text.replace("{member}", member).replace("{each}", ", once for each of their classes," * (member != "row"))


def persons(result: RunResult | None) -> str:
    """Explain whether rows are counted or persons."""
    history = "" if result is None or result.history is None else f" {result.history.sentence}."
    if result is not None and result.subject is not None and result.subject.note:
        return f"{result.subject.note}{history}"
    return f"Rows are counted: these are persons where each person has one row.{history}"


def distribution(column: Distribution) -> str:
    """Describe the source of a column's bars."""
    role = "quasi-identifier" if column.role == "quasi-identifier" else f"{column.role}, kept as it is"
    before = "; of the source alone" if any(bar.after is None for bar in column.bars) else ""
    return f"{role}{before}"


def list_choices(choices: Choices | None, suppressed: str) -> list[tuple[str, str]]:
    """List the choices of a run that applied rules; `suppressed`: the policy's word for suppressed rows."""
    if choices is None:
        return []
    return [
        ("Rules", f"those of run {choices.applied}" if choices.applied else _UNRECORDED),
        *([("Job", _job(choices))] if choices.job else []),
        ("Rows that no rule knows, or whose class violates a model", _violation(choices, suppressed)),
        ("Suppression budget", _budget(choices)),
    ]


_UNRECORDED = "not recorded"


def _job(choices: Choices) -> str:
    version = f", version {choices.version}" if choices.version is not None else ""
    by = f"the procedure {choices.procedure} of the database" if choices.procedure else "the program"
    return f"{choices.job}{version}, carried out by {by}"


def _violation(choices: Choices, suppressed: str) -> str:
    match choices.on_violation:
        case "suppress":
            return "suppressed: " + ("shown with *" if suppressed.startswith("star") else "left out of the release")
        case "error":
            return "an error: nothing is published then"
    return _UNRECORDED


def _budget(choices: Choices) -> str:
    match choices.on_violation, choices.budget:
        case "suppress", None:
            return "any number of rows may be suppressed"
        case "suppress", float(share):
            return f"at most {numbers.percent(share)} of the rows may be suppressed"
        case "error", _:
            return "no row may be suppressed"
    return _UNRECORDED


_RAW = "the procedure does not group the source by its raw values, which can take as long as all else that it does"
_OMITTED_BEFORE = "rows that no rule knows are left out before anything is counted"


def unmeasured(result: RunResult, choices: Choices) -> str:
    """Say what a run that applied rules did not measure, and why; empty where it measured all."""
    lacking = []
    if result.source.figures is None or result.source.figures.metrics is None:
        why = _RAW if choices.procedure else _OMITTED_BEFORE
        lacking.append(f"Classes, risk and utility of the source are not measured: {why}.")
    if result.metrics.gcp is None:
        lacking.append(
            "The information lost is not measured: it is a share of the ranges and hierarchies of the rows at hand, and"
            " rules hold those of the rows that they were found by."
        )
    return " ".join(lacking)


def borrowed(run: Run) -> str:
    """Explain the figures of the run whose rules were applied."""
    return (
        f"For comparison, the figures of run {run.id}, by whose rules these rows were recoded. They are of the rows"
        f" that {run.source} held on {run.started:%Y-%m-%d}, and of the release that was made of them, not of this run."
    )


NULLS_COUNT = " NULL counts as a value."
NULLS_ADD_NOTHING = " NULL adds no diversity."


def model_sentence(model: Mapping[str, Any], attributes: Mapping[str, Any], person: str | None = None) -> str:
    """Say in plain words what a privacy model asks, of attributes as they are stored.

    person: the attribute whose values are persons, where these are counted.
    """
    parameters = parameters_of_model(model["model"])
    if parameters is None:
        return f"The model {model['model']}, which no installed package explains."
    made = from_spec(parameters.model_validate(model))
    nulls = attributes.get(str(made.attribute), {}).get("nulls", "value") if made.counts_null_by_policy else ""
    counted = made if person is None else made.by_rows(person) or made
    return counted.sentence + {"value": NULLS_COUNT, "nothing": NULLS_ADD_NOTHING}.get(nulls, "")
