"""Repairs: classes of a release are merged until they divide no earlier group of its people into too small parts.

A repair is a search, before the release is staged. The transaction that publishes checks what came of it as it checks
every release (see `entry`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlanon.plan.history import k_of_history
from sqlanon.releases.base import Release
from sqlanon.releases.earlier_groups import EarlierGroups, Remainder
from sqlanon.releases.equivalence_classes import EquivalenceClasses
from sqlanon.results.history import RepairFigures
from sqlanon.runs.execution import ClassRun, Encoded
from sqlanon.support.quantities import quantity
from sqlanon.work.workspace import Workspace

Coarsen = Callable[[EarlierGroups, Workspace], Release | None]
"""Makes a coarser release with work tables of its own; None where none holds."""


def repaired(run: ClassRun, encoded: Encoded, release: Release, coarsen: Coarsen) -> Release:
    """Return a coarser release where the account would refuse this one, and this one where it holds or none does.

    Says in the run what was done, or why nothing could be.
    """
    assert run.way_out is not None
    assert run.way_out.people is not None
    assert isinstance(release, EquivalenceClasses)
    engine, k = run.engine, k_of_history(run.policy)
    account = run.catalog, run.catalog.open_account(run.way_out.people)
    held, person = run.workspace.part("earlier"), str(run.policy.person)
    earlier = EarlierGroups.create(engine, held, encoded.coded, person, account, run.models, k)
    if earlier.hold(release.recoding):
        return release
    coarser = coarsen(earlier, run.workspace.part("repaired"))
    if not isinstance(coarser, EquivalenceClasses) or not earlier.hold(coarser.recoding):
        run.unrepaired = _problem(earlier.find_remainder(release.partition.assigned), k)
        return release
    run.repaired = _compared(run, encoded, release, coarser)
    return coarser


def _compared(run: ClassRun, encoded: Encoded, before: Release, after: Release) -> RepairFigures:
    """Compare the releases before and after a repair."""
    counted = [sum(classes for _, classes in one.class_sizes(run.engine)) for one in (before, after)]
    losses = [one.measure_loss(run.engine, encoded.unmatched_rows) for one in (before, after)]
    was, now = (None if loss is None else loss.gcp for loss in losses)
    return RepairFigures(counted[0], counted[1], was, now)


def _problem(remainder: Remainder, k: int) -> str:
    """Say why no coarsening of the release helps."""
    reasons = list(_reasons(remainder, k)) or ["not even the most general levels that the policy allows hold"]
    return f"--repair merges classes, and can't mend this: {'; '.join(reasons)}."


def _reasons(remainder: Remainder, k: int) -> Iterator[str]:
    if remainder.came:
        yield f"no more than {quantity(remainder.came, 'person')} came, and any class shows who came"
    if remainder.left:
        yield f"{quantity(remainder.left, 'person')} left in groups of fewer than {k}, and are in none of its classes"
    if remainder.stayed:
        stayed = quantity(remainder.stayed, "person")
        yield f"{stayed} of earlier releases would be in groups of fewer than {k} if all rows were one class"
    if remainder.uniform:
        uniform = quantity(remainder.uniform, "person")
        yield f"{uniform} would be in groups that violate a model of sensitive values if all rows were one class"
