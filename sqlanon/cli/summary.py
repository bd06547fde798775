"""What a plan, a run and a verification come to, in words for people."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlanon.cli.layout import number, percent, table
from sqlanon.cli.plans import listed, release_text, source_text, spec_text
from sqlanon.measures.disclosure import THRESHOLDS
from sqlanon.policy import Policy
from sqlanon.runs.outcome import TIMED, about
from sqlanon.verification.verify import ModelResult

if TYPE_CHECKING:
    from sqlanon.before_after import Comparison
    from sqlanon.measures.metrics import ClassStatistics
    from sqlanon.verification.verify import Verification

MOST_COLUMNS = 6  # of a sample


def outcome_text(outcome: Mapping[str, Any], policy: Policy) -> str:
    """The summary of a run, from the object that `run --json` prints."""
    release, suppressed = outcome["release"], outcome["release"]["suppressed"]
    left_out = f", {suppressed:,} suppressed" if suppressed else ""
    head = (
        f"Published {release_text(policy)}\n"
        f"  from {source_text(policy)}: {outcome['source']['rows']:,} rows -> {release['rows']:,} rows{left_out}\n"
        f"  run {outcome['run']} on {outcome['engine']}, {number(round(outcome['seconds']['total'], 2))} s"
        f" ({_phases(outcome['seconds'])}){_recorded(outcome)}"
    )
    models = _models([ModelResult(**result) for result in outcome["models"]])
    return "\n\n".join(
        part
        for part in (
            head,
            generalization_text(outcome),
            sampling_text(outcome),
            _classes(release),
            "Verified independently on the release:\n"
            + models
            + _checks(outcome["checks"])
            + _stars(outcome)
            + _subject(outcome),
            _metrics(outcome, policy.target),
            disclosure_text(outcome.get("disclosure", ())),
            listed("Warnings", outcome["warnings"]),
            listed("Notes", outcome["notes"]),
        )
        if part
    )


def applied_text(outcome: Mapping[str, Any]) -> str:
    """The summary of rules applied to new rows, from the object that `apply --json` prints."""
    release, source = outcome["release"], outcome["source"]
    left_out = f", {release['suppressed']:,} suppressed" if release["suppressed"] else ""
    head = (
        f"Published {release['table']}\n"
        f"  from {source['table']} by the rules of run {outcome['algorithm']['applied']}: "
        f"{source['rows']:,} rows -> {release['rows']:,} rows{left_out}\n"
        f"  run {outcome['run']} on {outcome['engine']}, {number(round(outcome['seconds']['total'], 2))} s"
        f" ({_phases(outcome['seconds'])}){_recorded(outcome)}"
    )
    models = _models([ModelResult(**result) for result in outcome["models"]])
    verified = (
        "Verified independently on the release:\n"
        + models
        + _checks(outcome["checks"])
        + _stars(outcome)
        + _subject(outcome)
    )
    parts = (
        head,
        _classes(release),
        verified,
        disclosure_text(outcome.get("disclosure", ())),
        listed("Warnings", outcome["warnings"]),
        listed("Notes", outcome["notes"]),
    )
    return "\n\n".join(part for part in parts if part)


def _recorded(outcome: Mapping[str, Any]) -> str:
    """Where the run is recorded; nothing of a job's procedure, which is in the database that it records in."""
    place = outcome.get("catalog")
    if not place:
        return ""
    return (
        f"\n  recorded in schema {place['schema']} of {place['url']}, which holds values of quasi-identifiers: it"
        "\n  is for those who may see the source"
    )


def generalization_text(outcome: Mapping[str, Any]) -> str:
    """What full-domain generalization chose, and how sure that is the best; nothing of other searches."""
    found = outcome["algorithm"]
    if "levels" not in found:
        return ""
    levels = "\n".join(f"  {name}: {level}" for name, level in found["levels"].items())
    share = outcome["release"]["suppressed"] / outcome["source"]["rows"]
    return (
        f"Levels ({found['name']}, {found['checked']:,} of {found['nodes']:,} generalizations checked):\n"
        f"{levels}\n  {found['quality']} {found['score']:.6g} (lower is better), {proof(found)};"
        f" {percent(share)} of the rows suppressed"
    )


def sampling_text(outcome: Mapping[str, Any]) -> str:
    """What samples came to; nothing of other searches."""
    found = outcome["algorithm"]
    if "samplings" not in found:
        return ""
    if not found["samplings"]:
        return "Sampling: none, as the table has no more rows than a sample."
    return (
        f"Sampling: {found['sampled']:,} rows in {found['samplings']:,} episodes, {found['scans']:.3g} scans of the"
        f" table; {found['nodes']:,} nodes, {found['pruned']:,} pruned; {found['rounds']:,} rounds on all rows."
    )


def proof(found: Mapping[str, Any]) -> str:
    """Whether it is sure that there is no better one."""
    if found["proven"]:
        return "proven: it may choose none better"
    bound = found["bound"]
    return "not proven to be the best" + ("" if bound is None else f": none is below {bound:.6g}")


def _phases(seconds: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {number(round(seconds[name], 2))}" for name in TIMED if name in seconds)


def _classes(release: Mapping[str, Any]) -> str:
    return (
        f"Equivalence classes: {release['classes']:,}; rows in a class: least {release['min_class_size']:,}, "
        f"mean {number(round(release['mean_class_size'], 2))}, most {release['max_class_size']:,}"
    )


def _models(results: Sequence[ModelResult]) -> str:
    rows = [[spec_text({"model": r.model, **r.parameters}), r.worst, _verdict(r)] for r in results]
    return table(["model", "worst class", "verdict"], rows, widest=100)


def _verdict(result: ModelResult) -> str:
    if result.satisfied:
        return "holds"
    return f"violated by {result.violations:,} classes"


def _stars(outcome: Mapping[str, Any]) -> str:
    """What to know of suppressed rows that are shown and not judged, under the verdict."""
    note = outcome.get("starred", {}).get("note")
    return f"\n{note}" if note else ""


def _subject(outcome: Mapping[str, Any]) -> str:
    """What to know of rows and persons, under the verdict."""
    note = outcome.get("subject", {}).get("note")
    return f"\n  {note}" if note else ""


def _checks(checks: Mapping[str, Any]) -> str:
    if not checks:
        return ""
    failed = [name for name, check in checks.items() if check["violations"]]
    return "\n  checks: " + ", ".join(f"{name} {'FAILED' if name in failed else 'ok'}" for name in checks)


def _metrics(outcome: Mapping[str, Any], target: str | None) -> str:
    metrics, risk = outcome["metrics"], outcome["risk"]
    before = outcome["source"].get("risk", {})
    c_avg, gcp = number(round(metrics["c_avg"], 2)), percent(metrics["gcp"])
    lines = [
        f"  C_AVG {c_avg}: a class holds so many times the k rows it needs (1 would be perfect)",
        f"  GCP {gcp}: a released value covers so much of its attribute's whole range, on average "
        "(0 % is exact, 100 % says nothing)",
        f"  discernibility {metrics['discernibility']:,}: the sum over the rows of the rows each looks like",
        *_predicted(outcome, target),
        f"  rows alone with their quasi-identifiers: {_unique(outcome)}",
        f"  risk to be picked by who knows the quasi-identifiers: greatest {_risk(before, risk, 'prosecutor_max')}, "
        f"mean {about(outcome['source'])}{_risk(before, risk, 'prosecutor_mean')}",
    ]
    return "Utility and risk (before -> after):\n" + "\n".join(lines)


def disclosure_text(disclosure: Sequence[Mapping[str, Any]]) -> str:
    """What classes tell of sensitive values, protected by a model or not; empty where there are none."""
    if not disclosure:
        return ""
    rows = [
        [
            one["attribute"],
            "yes" if one["protected"] else "no",
            _of(one["one_value"], one["rows"]),
            "-" if one["confidence"] is None else percent(one["confidence"]),
            *(_of(one[f"above_{threshold}"], one["rows"]) for threshold in THRESHOLDS),
        ]
        for one in disclosure
    ]
    above = [f"above {threshold} %" for threshold in THRESHOLDS]
    headings = ["sensitive column", "has a model", "rows in classes of one value", "surest", *above]
    return (
        "What classes tell of sensitive values, without any row being picked (rows by how sure their class makes):\n"
        + table(headings, rows)
    )


def _of(rows: int, all_rows: int) -> str:
    """A number of rows, and its share."""
    return f"{rows:,} ({percent(rows / all_rows)})" if rows else "0"


def _predicted(outcome: Mapping[str, Any], target: str | None) -> list[str]:
    """How well the target can be told from the quasi-identifiers, if the algorithm has one."""
    meanings = {
        "conditional_entropy": ("conditional entropy", "bits a row that the class leaves unknown"),
        "rmse": ("RMSE", "the error if each row is given its class's mean"),
    }
    before, after = outcome["source"].get("metrics", {}), outcome["metrics"]
    return [
        f"  {word} of '{target}' {number(before[name])} -> {number(after[name])}: {meaning}"
        for name, (word, meaning) in meanings.items()
        if name in after and name in before
    ]


def _unique(outcome: Mapping[str, Any]) -> str:
    """The rows that are alone in their class, in the source and in the release."""
    source, after = outcome["source"], outcome["release"]["class_sizes"]
    alone = sum(bucket["rows"] for bucket in after if bucket["upper"] == 1)
    if "unique_rows" not in source:
        return f"{alone:,}"
    return f"{about(source)}{source['unique_rows']:,} -> {alone:,}"


def _risk(before: Mapping[str, float], after: Mapping[str, float], name: str) -> str:
    return f"{percent(before[name])} -> {percent(after[name])}" if name in before else percent(after[name])


def comparison_text(comparison: Comparison) -> str:
    """The quasi-identifiers before and after, and what some classes show."""
    changes = [[c.name, c.type, "many" if c.before is None else c.before, c.after] for c in comparison.changes]
    parts = ["Quasi-identifiers:\n" + table(["column", "type before", "values before", "labels after"], changes)]
    if comparison.classes:
        columns = comparison.columns[:MOST_COLUMNS]
        rows = [[*["NULL" if v is None else v for v in shown[:MOST_COLUMNS]], n] for shown, n in comparison.classes]
        parts.append("What some classes show:\n" + table([*columns, "rows"], rows))
    return "\n\n".join(parts)


def next_text(run: str, path: str, policy: Policy) -> str:
    """Commands to go on with after a run of the policy that the file `path` holds."""
    file, sqlanon = shlex.quote(path), program()
    again = [f"{sqlanon} run {file} --replace", "anonymize anew, in the release's place"]
    if policy.republish == "same-recoding":
        source = shlex.quote(policy.source.table or policy.source.file or "")
        again = [
            f"{sqlanon} apply {run} --policy {file} --to {source} --replace",
            "recode the rows of then alike, in the release's place; freeze makes that a job",
        ]
    commands = [
        [f"{sqlanon} verify {file}", "check the release again, at any time"],
        [f"{sqlanon} report {run} --policy {file} -o report.html", "a page that people can read and sign"],
        [f"{sqlanon} show {run} --policy {file}", "what was done; --steps adds every statement"],
        again,
    ]
    return commands_text(commands)


def program() -> str:
    """How to call the program again: by its name, or by its path if the shell would not find it."""
    called = sys.argv[0]
    found = shutil.which("sqlanon") is not None or Path(called).name != "sqlanon"
    return "sqlanon" if found else shlex.quote(called)


def commands_text(commands: Sequence[Sequence[str]]) -> str:
    """Commands, each with what it does."""
    return "\n".join(["Next:", *table(["", ""], commands, widest=200).splitlines()[1:]])


def verification_text(verification: Verification, what: str) -> str:
    """The result of a check, for people."""
    statistics = verification.statistics
    head = f"{what}: {statistics.rows:,} rows" + (
        f", {statistics.suppressed:,} suppressed" if statistics.suppressed else ""
    )
    classes = _classes(statistics_object(statistics))
    risk = (
        f"Risk to be picked by who knows the quasi-identifiers: greatest {percent(statistics.prosecutor_max)}, "
        f"mean {percent(statistics.prosecutor_mean)}"
    )
    models = _models(verification.models) if verification.models else "  No model was asked for."
    note = verification.note or ""
    told = disclosure_text([one.as_json() for one in verification.disclosure])
    return "\n".join(part for part in (head, classes, models, risk, told, note) if part)


def statistics_object(statistics: ClassStatistics) -> dict[str, Any]:
    """The classes of a table as programs read them."""
    return {
        "rows": statistics.rows,
        "suppressed": statistics.suppressed,
        "classes": statistics.classes,
        "min_class_size": statistics.min_class_size,
        "mean_class_size": statistics.mean_class_size,
        "max_class_size": statistics.max_class_size,
    }
