"""Kept columns of which a release in a file or another database has the texts that the source's engine writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlanon.engines.columns import Column, Kind
from sqlanon.plan.subject import PlanSubject
from sqlanon.policy import Policy, Role
from sqlanon.policy.document import path_text
from sqlanon.work.publish import is_text_file, texts_of_csv
from sqlanon.work.session import carried_to


def texts_of_release(policy: Policy, columns: Sequence[Column]) -> frozenset[str]:
    """Name the columns that are released as text: those of `as: text`, and in a CSV those that it writes otherwise."""
    asked = frozenset(name for name, attribute in policy.attributes.items() if attribute.as_ == "text")
    file = policy.release.file
    return asked | texts_of_csv(columns) if file is not None and is_text_file(file) else asked


def as_text_problems(subject: PlanSubject) -> Iterator[str]:
    """List the columns of which `as: text` would change nothing, or can't be written."""
    reason = _why_unused(subject)
    for column, attribute in subject.attributes:
        if attribute.as_ is None:
            continue
        place = path_text(("attributes", column.name))
        if reason is not None:
            yield f"{place}: as: text {reason}; leave it out."
        elif column.kind is Kind.TEXT:
            yield f"{place}: as: text changes nothing, as the column is text; leave it out."
        elif attribute.role is Role.SENSITIVE and (column.kind.is_numeric or column.kind.has_day):
            yield (
                f"{place}: as: text would have models judge the order of texts, not that of {column.kind} values;"
                f" {subject.recast}, or write a .csv file."
            )


def _why_unused(subject: PlanSubject) -> str | None:
    file = subject.policy.release.file
    if file is not None and is_text_file(file):
        return "changes nothing, as a CSV file holds texts alone"
    if subject.dialect.writes_directories:
        return f"is not for {subject.dialect.label}, which writes the types of its own tables"
    if file is None and carried_to(subject.policy, subject.dialect) is None:
        return "changes nothing, as the release is in the same database, which has the type"
    return None
