"""Plans, runs and verifications in words for people."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sqlanon.cli.layout import number, percent, table
from sqlanon.cli.plans import listed, release_text, source_text, spec_text
from sqlanon.cli.risk_text import singled_text
from sqlanon.policy import Policy
from sqlanon.results.measures import THRESHOLDS, Check, Disclosure, ModelResult
from sqlanon.results.run_result import ReleaseResult, RunResult
from sqlanon.results.search_facts import CellFacts, GatheredFacts, ItemsetFacts, LatticeFacts, SampledTreeFacts
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.measures.metrics import ClassStatistics
    from sqlanon.report.sample import SampleComparison
    from sqlanon.verification.verdict import Verification

MOST_COLUMNS = 6  # of a sample


def result_text(result: RunResult, policy: Policy) -> str:
    """The summary of a run."""
    release = result.release
    parts = (
        f"Published {release_text(policy)}\n  from {source_text(policy)}: {_rows(result)}\n{_run(result)}",
        generalization_text(result),
        sampling_text(result),
        gathering_text(result),
        cells_text(result),
        itemsets_text(result),
        _classes(release, f"{result.member}s"),
        _verified(result),
        _metrics(result, policy.target),
        _masked(result),
        disclosure_text(result.disclosure or (), result.release.judged, f"{result.member}s"),
        listed("Warnings", result.warnings),
        listed("Notes", result.notes),
    )
    return "\n\n".join(part for part in parts if part)


def applied_text(result: RunResult) -> str:
    """The summary of rules applied to new rows."""
    release, source, applied = result.release, result.source, result.algorithm.applied
    assert applied is not None
    parts = (
        f"Published {release.table}\n  from {source.table} by the rules of run {applied.applied}: {_rows(result)}\n"
        + _run(result),
        _classes(release, f"{result.member}s"),
        _verified(result),
        disclosure_text(result.disclosure or (), result.release.judged, f"{result.member}s"),
        listed("Warnings", result.warnings),
        listed("Notes", result.notes),
    )
    return "\n\n".join(part for part in parts if part)


def _rows(result: RunResult) -> str:
    suppressed = f", {result.release.suppressed:,} suppressed" if result.release.suppressed else ""
    return f"{quantity(result.source.rows, 'row')} -> {quantity(result.release.rows, 'row')}{suppressed}"


def _run(result: RunResult) -> str:
    """The run, its seconds, and where it is recorded."""
    parts = ", ".join(f"{name} {number(round(took, 2))}" for name, took in result.seconds.parts.items())
    total = number(round(result.seconds.total or 0.0, 2))
    return f"  run {result.run} on {result.engine}, {total} s ({parts}){_recorded(result)}"


def _recorded(result: RunResult) -> str:
    """Say where the run is recorded; empty for a job's procedure, which is in the database that it records in."""
    if result.catalog is None:
        return ""
    return (
        f"\n  recorded in schema {result.catalog.schema} of {result.catalog.url}, which holds values of"
        " quasi-identifiers: it\n  is for those who may see the source"
    )


def generalization_text(result: RunResult) -> str:
    """Describe the choice of full-domain generalization, and how sure that is the best; empty for other searches."""
    facts = result.algorithm.facts
    if not isinstance(facts, LatticeFacts):
        return ""
    levels = "\n".join(f"  {name}: {level}" for name, level in facts.levels.items())
    share = result.release.suppressed / result.source.rows
    return (
        f"Levels ({result.algorithm.name}, {facts.checked:,} of {quantity(facts.nodes, 'generalization')} checked):\n"
        f"{levels}\n  {facts.quality} {facts.score:.6g} (lower is better), {proof(facts.proven, facts.bound)};"
        f" {percent(share)} of the rows suppressed"
    )


def sampling_text(result: RunResult) -> str:
    """Describe the samples of a search by samples; empty for other searches."""
    facts = result.algorithm.facts
    if not isinstance(facts, SampledTreeFacts):
        return ""
    if not facts.samplings:
        return "Sampling: none, as the table has no more rows than a sample."
    return (
        f"Sampling: {facts.sampled:,} rows in {facts.samplings:,} episodes, {facts.scans:.3g} scans of the"
        f" table; {facts.nodes:,} nodes, {facts.pruned:,} pruned; {result.algorithm.rounds:,} rounds on all rows."
    )


def gathering_text(result: RunResult) -> str:
    """Describe clusters that are released as a row each; empty for other releases."""
    facts = result.algorithm.facts
    return f"Released are {facts.sentence}" if isinstance(facts, GatheredFacts) else ""


def proof(proven: bool, bound: float | None) -> str:
    """Say whether the generalization is proven to be the best."""
    if proven:
        return "proven: it may choose none better"
    return "not proven to be the best" + ("" if bound is None else f": none is below {bound:.6g}")


def cells_text(result: RunResult) -> str:
    """The cells that are shown as `*`; empty for other releases."""
    facts = result.algorithm.facts
    return facts.sentence if isinstance(facts, CellFacts) else ""


def itemsets_text(result: RunResult) -> str:
    """The items and their groups; empty for other releases."""
    facts = result.algorithm.facts
    return facts.sentence if isinstance(facts, ItemsetFacts) else ""


def _classes(table: ReleaseResult | ClassStatistics, members: str) -> str:
    hidden = isinstance(table, ReleaseResult) and table.judged
    kind, one = (hidden[0].upper() + hidden[1:], "group") if hidden else ("Equivalence classes", "class")
    if table.fits:
        return (
            f"{members.capitalize()} that fit a row, where * fits any value, and a group its own:"
            f" least {table.min_class_size:,}, mean {number(round(table.mean_class_size, 2))},"
            f" most {table.max_class_size:,}"
        )
    return (
        f"{kind}: {table.classes:,}; {members} in a {one}: least {table.min_class_size:,}, "
        f"mean {number(round(table.mean_class_size, 2))}, most {table.max_class_size:,}"
    )


def _verified(result: RunResult) -> str:
    """The verdicts, with what to know of stars, and of rows and persons."""
    stars = f"\n{result.starred.note}" if result.starred is not None and result.starred.note else ""
    subject = f"\n  {result.subject.note}" if result.subject is not None and result.subject.note else ""
    checks, judged = _checks(result.checks or {}), result.release.judged
    head = "Verified independently on the release:"
    if judged is not None:
        head = (
            f"Verified independently, before publishing. Models are judged on {judged}, which readers do not see: they"
            "\nsay nothing of the released rows, of which nearly all differ."
        )
    models = _models(result.models, result.release.class_words[0])
    history = "" if result.history is None else f"\n  {result.history.sentence}"
    return f"{head}\n{models}{checks}{stars}{subject}{history}"


def _models(results: Sequence[ModelResult], word: str = "class") -> str:
    rows = [[spec_text({"model": r.model, **r.parameters}), r.worst, _verdict(r)] for r in results]
    return table(["model", f"worst {word}", "verdict"], rows, widest=100)


def _verdict(result: ModelResult) -> str:
    if result.satisfied:
        return "holds"
    counted = ("set of classes", "sets of classes") if result.model == "km-anonymity" else ("class", "classes")
    return f"violated by {quantity(result.violations, *counted)}"


def _checks(checks: Mapping[str, Check]) -> str:
    if not checks:
        return ""
    return "\n  checks: " + ", ".join(f"{name} {'FAILED' if one.violations else 'ok'}" for name, one in checks.items())


def _metrics(result: RunResult, target: str | None) -> str:
    metrics, risk, source = result.metrics, result.risk, result.source
    if risk is None:
        return ""
    before = None if source.figures is None else source.figures.risk
    c_avg, members = number(round(metrics.c_avg, 2)), f"{result.member}s"
    gcp = (
        "not measured: what is shown in place of values has no range"
        if metrics.gcp is None
        else f"{percent(metrics.gcp)}: a released value covers so much of its attribute's whole range, on average "
        "(0 % is exact, 100 % says nothing)"
    )
    greatest = "" if before is None else f"{percent(before.prosecutor_max)} -> "
    mean = "" if before is None else f"{percent(before.prosecutor_mean)} -> "
    lines = [
        f"  C_AVG {c_avg}: a class holds so many times the k {members} it needs (1 would be perfect)",
        f"  GCP {gcp}",
        f"  discernibility {metrics.discernibility:,}: the sum over the {members} of the {members} each looks like",
        *_predicted(result, target),
        f"  {members} alone with their quasi-identifiers: {_unique(result)}",
        f"  risk to be picked by who knows the quasi-identifiers: greatest {greatest}{percent(risk.prosecutor_max)}, "
        f"mean {source.about}{mean}{percent(risk.prosecutor_mean)}",
    ]
    singled = None if result.subject is None else result.subject.singled_out
    lines += [] if singled is None else [f"  known by {singled_text(singled)}"]
    return "Utility and risk (before -> after):\n" + "\n".join(lines)


def _masked(result: RunResult) -> str:
    """Say what masking lost, and how many rows find the numbers released for them; empty where not measured."""
    if result.masking is not None and result.masking.groups is not None:
        return f"Masking: {result.masking.groups.sentence}"
    risk = None if result.masking is None else result.masking.risk
    if result.masking is None or risk is None or risk.linkage is None:
        return ""
    linked, numbers = risk.linkage, result.masking.numbers
    lines = [
        f"Masking: {linked.beginning} ({percent(linked.nearest)} of {linked.rows:,} rows). Whoever knows a row's"
        f" numbers picks it rightly with a chance of {percent(linked.picked)}, whoever knows its class with"
        f" {percent(linked.blind)}."
    ]
    if numbers is not None and numbers.sse is not None:
        more = "" if numbers.il6 is None else f", IL6 {number(round(numbers.il6, 3))}"
        score = "" if risk.score is None else f"; score of both {number(round(risk.score, 2))} (less is better)"
        lines.append(f"  Of the numbers' variance {number(round(numbers.sse, 3))} % is lost (SSE/SST){more}{score}")
    return "\n".join(lines)


def disclosure_text(disclosure: Sequence[Disclosure], judged: str | None = None, members: str = "rows") -> str:
    """Describe what classes tell of sensitive values, protected by a model or not; empty where there are none.

    judged: the classes, where readers do not see them. members: what classes count.
    """
    if not disclosure:
        return ""
    many, knower = "classes", f"without any row being picked ({members} by how sure their class makes)"
    if judged is not None:
        many, knower = "groups", f"if the group of a row were known ({members} by how sure their group makes)"
    rows = [
        [
            one.attribute,
            "yes" if one.protected else "no",
            _of(one.one_value, one.rows),
            "-" if one.confidence is None else percent(one.confidence),
            *(_of(above, one.rows) for above in one.above),
        ]
        for one in disclosure
    ]
    above = [f"above {threshold} %" for threshold in THRESHOLDS]
    headings = ["sensitive column", "has a model", f"{members} in {many} of one value", "surest", *above]
    return f"What {many} tell of sensitive values, {knower}:\n" + table(headings, rows)


def _of(rows: int, all_rows: int) -> str:
    """A number of rows, and its share."""
    return f"{rows:,} ({percent(rows / all_rows)})" if rows else "0"


def _predicted(result: RunResult, target: str | None) -> list[str]:
    """Say how well the target is predicted from the quasi-identifiers, if the algorithm has a target."""
    before, after = None if result.source.figures is None else result.source.figures.metrics, result.metrics
    if before is None:
        return []
    measures = (
        ("conditional entropy", before.conditional_entropy, after.conditional_entropy, _UNKNOWN_BITS),
        ("RMSE", before.rmse, after.rmse, _MEAN_ERROR),
    )
    return [
        f"  {word} of '{target}' {number(was)} -> {number(now)}: {meaning}"
        for word, was, now, meaning in measures
        if was is not None and now is not None
    ]


_UNKNOWN_BITS = "bits a row that the class leaves unknown"
_MEAN_ERROR = "the error if each row is given its class's mean"


def _unique(result: RunResult) -> str:
    """The rows that are alone in their class, in the source and in the release."""
    source = result.source
    alone = sum(bucket.rows for bucket in result.release.class_sizes if bucket.upper == 1)
    if source.figures is None or source.figures.unique_rows is None:
        return f"{alone:,}"
    return f"{source.about}{source.figures.unique_rows:,} -> {alone:,}"


def comparison_text(comparison: SampleComparison) -> str:
    """The quasi-identifiers before and after, and what some classes show."""
    changes = [[c.name, c.type, "many" if c.before is None else c.before, c.after] for c in comparison.changes]
    parts = ["Quasi-identifiers:\n" + table(["column", "type before", "values before", "shown after"], changes)]
    if comparison.classes:
        columns = comparison.columns[:MOST_COLUMNS]
        rows = [[*["NULL" if v is None else v for v in shown[:MOST_COLUMNS]], n] for shown, n in comparison.classes]
        parts.append("What some classes show:\n" + table([*columns, "rows"], rows))
    return "\n\n".join(parts)


def next_text(run: str, path: str, policy: Policy) -> str:
    """Commands to go on with after a run of the policy that the file `path` holds: those that work for its release."""
    file, sqlanon, algorithm = shlex.quote(path), program(), policy.algorithm
    commands = [
        [f"{sqlanon} verify {file}", "check the release again, at any time"],
        [f"{sqlanon} report {run} --policy {file} -o report.html", "a page that people can read and sign"],
        [f"{sqlanon} show {run} --policy {file}", "what was done; --steps adds every statement"],
    ]
    if algorithm.hides_classes:
        commands[0][1] = "check columns, rows and kept values again, at any time"
    if policy.history.adds:
        commands.append([f"{sqlanon} run {file}", "add those who have come since, as a batch"])
    elif policy.republish != "same-recoding":
        commands.append([f"{sqlanon} run {file} --replace", "anonymize anew, in the release's place"])
    elif algorithm.leaves_rules:
        source = shlex.quote(policy.source.table or policy.source.file or "")
        commands.append(
            [
                f"{sqlanon} apply {run} --policy {file} --to {source} --replace",
                "recode the rows of then alike, in the release's place; freeze makes that a job",
            ]
        )
    return commands_text(commands)


def program() -> str:
    """Return the command that calls the program again: its name, or its path if the shell would not find the name."""
    called = sys.argv[0]
    on_path = shutil.which("sqlanon") is not None or Path(called).name != "sqlanon"
    return "sqlanon" if on_path else shlex.quote(called)


def commands_text(commands: Sequence[Sequence[str]]) -> str:
    """Commands, each with what it does."""
    return "\n".join(["Next:", *table(["", ""], commands, widest=200).splitlines()[1:]])


def verification_text(verification: Verification, what: str) -> str:
    """The result of a check, for people."""
    statistics = verification.statistics
    counted = verification.persons
    members = "rows" if counted is None else "persons"
    size = quantity(statistics.rows, "row")
    if counted is not None:
        size = f"{quantity(counted.rows, 'row')} of {quantity(counted.persons, 'person')}"
    head = f"{what}: {size}" + (f", {statistics.suppressed:,} suppressed" if statistics.suppressed else "")
    classes = _classes(statistics, members)
    risk = (
        f"Risk to be picked by who knows the quasi-identifiers: greatest {percent(statistics.prosecutor_max)}, "
        f"mean {percent(statistics.prosecutor_mean)}"
    )
    if statistics.fits:
        risk = ""  # who knows a person may exclude rows that fit this one's
    models = (
        _models(verification.models, "group" if statistics.fits else "class")
        if verification.models
        else "  No model was asked for."
    )
    note = verification.note or ""
    several = "" if counted is None else counted.sentence_of_several
    alone = "" if counted is None else f"Known by {singled_text(counted.singled)}."
    disclosure = disclosure_text(verification.disclosure, members=members)
    return "\n".join(part for part in (head, classes, models, risk, alone, disclosure, several, note) if part)
