"""Audits of runs on neighbouring tables, with the same draws: what a unit changes, and that all else is the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction

from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import SqlanonError
from sqlanon.mechanisms.charges import CHOICE, NOISE
from sqlanon.methods.differential_privacy.drawing.accounting import Schedule
from sqlanon.methods.differential_privacy.mechanism_audit.findings import Finding
from sqlanon.methods.differential_privacy.mechanism_audit.generating import GeneratedTable, Row
from sqlanon.methods.differential_privacy.mechanism_audit.own_database import OwnDatabase, Traces, own_database
from sqlanon.methods.differential_privacy.mechanism_audit.recording import ConstantDraws, Request, change
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.results.records import write_record

_PLACES = ("statements", "progress", "log", "json", "catalog", "release")


class _Recorded:
    """A run over a table, with constant draws: the draws that it asked for, the traces that it left, its refusal."""

    def __init__(self, plan: PrivatePlan, schedule: Schedule, database: AbstractContextManager[OwnDatabase]) -> None:
        shows = schedule.counts_marginals or plan.algorithm.least_released is None
        self.traces, draws = Traces(), ConstantDraws(shows=shows)
        self.refusal: str | None = None
        with database as opened:
            try:
                result = opened.run(draws, self.traces)
                self.traces.add("json", write_record(result).splitlines())
                opened.list_leftovers(self.traces)
            except SqlanonError as error:
                self.refusal = f"{type(error).__name__}: {error}"
        self.requests = draws.requests


def audit_neighbours(
    plan: PrivatePlan, schedule: Schedule, table: GeneratedTable, options: EngineOptions
) -> list[Finding]:
    """Compare runs over a generated table, over its neighbours, and over a table without rows.

    All must ask for the same draws, with numbers that change by the sensitivity at most, and leave the same lines.
    """

    def record(rows: Sequence[Row]) -> _Recorded:
        return _Recorded(plan, schedule, own_database(plan, table, rows, 2 * plan.epsilon, options))

    whole = record(table.rows)
    if whole.refusal is not None:
        return [Finding("structure", "a run over a generated table", whole.refusal, "published", passed=False)]
    neighbours = {f"without {what}": record(rows) for what, rows in table.neighbours()}
    empty = record([])
    refused = [one.refusal for one in (*neighbours.values(), empty) if one.refusal is not None]
    refusals = Finding("structure", "runs that are refused", "; ".join(refused) or "none", "none", not refused)
    return [
        audit_charges(schedule, whole.requests),
        *audit_changes(whole.requests, {what: one.requests for what, one in neighbours.items()}),
        refusals,
        *_audit_traces(whole, {**neighbours, "without any rows": empty}),
    ]


def audit_charges(schedule: Schedule, requests: Sequence[Request]) -> Finding:
    """Count the draws that a run asked for without being charged."""
    charged = Counter((one.mechanism, one.epsilon, one.sensitivity) for one in schedule.charges)
    asked = Counter((one.mechanism, one.epsilon, one.sensitivity) for one in requests)
    uncharged = (asked - charged).total()
    return Finding("ledger", f"of {asked.total():,} draws, those without a charge", str(uncharged), "0", not uncharged)


def audit_changes(whole: Sequence[Request], neighbours: Mapping[str, Sequence[Request]]) -> list[Finding]:
    """Measure by how much a unit changes scores and counts at most, from the draws that runs asked for."""
    greatest: dict[str, Fraction] = {}
    different: list[str] = []
    for what, neighbour in neighbours.items():
        if len(whole) != len(neighbour):
            different.append(what)
        for one, other in zip(whole, neighbour, strict=False):
            measured = change(one, other)
            if measured is None:
                different.append(what)
            else:
                greatest[one.mechanism] = max(measured, greatest.get(one.mechanism, Fraction(0)))
    names = {CHOICE: "the greatest change of a score", NOISE: "the sum of changes of counts"}
    changes = [
        Finding(
            "neighbours",
            f"{names.get(mechanism, mechanism)}, over its sensitivity",
            f"{float(measured):.3g}",
            "1",
            measured <= 1,
        )
        for mechanism, measured in greatest.items()
    ]
    asked = ", ".join(dict.fromkeys(different)) or "none"
    tried = f"of {len(neighbours)} neighbours, those for which other draws are asked for"
    return [Finding("neighbours", tried, asked, "none", not different), *changes]


def _audit_traces(whole: _Recorded, others: dict[str, _Recorded]) -> list[Finding]:
    """Compare the lines that runs left, place by place: statements, progress, log, JSON, catalog, release."""
    findings = []
    for place in _PLACES:
        lines = whole.traces.of(place)
        different = [what for what, one in others.items() if one.traces.of(place) != lines]
        audit = "neighbours" if place == "statements" else "structure"
        tried = f"{len(lines):,} lines of {place}: tables for which others are left"
        findings.append(Finding(audit, tried, ", ".join(different) or "none", "none", not different))
    return findings
