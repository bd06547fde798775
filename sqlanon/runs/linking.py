"""Releases of the same source by other rules: what is said of them."""

from __future__ import annotations


def linked_warning(run: str, source: str) -> str:
    """What to say where a source was released by other rules before."""
    return (
        f"Run {run} released {source} by other rules: who holds both releases can intersect the classes of a person,"
        " and may be left with fewer rows than k. docs/jobs.md says more."
    )


def same_recoding_problem(run: str, source: str, by: str = "by other rules") -> str:
    """What to say where that is forbidden."""
    return (
        f"republish: same-recoding forbids it, as run {run} released {source} {by}: `sqlanon apply {run}`, or"
        " a job with its rules, recodes as it did."
    )
