"""The figures of the account of releases about the same people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlanon.results.codec import optional
from sqlanon.support.quantities import quantity


@dataclass(frozen=True)
class RepairFigures:
    """A release whose classes were merged so that it and all earlier ones hold together.

    classes_before, classes: how many there were, and are. loss_before, loss: the information loss (GCP) of both, from 0
        to 1; None where it can't be measured.
    """

    classes_before: int
    classes: int
    loss_before: float | None = optional()
    loss: float | None = optional()

    @property
    def sentence(self) -> str:
        """Say what was done, and what it cost."""
        cost = ""
        if self.loss_before is not None and self.loss is not None:
            cost = f", loss {self.loss_before * 100:.3g} % → {self.loss * 100:.3g} % (GCP)"
        merged = f"{quantity(self.classes_before, 'class', 'classes')} → {self.classes:,}"
        return f"repaired, so that all of them hold together: {merged}{cost}"


@dataclass(frozen=True)
class DepartureFigures:
    """Persons of a release who are in the source no more, and rows that left it for that.

    departures: as the policy says. left: persons who are gone and whose rows left. rows: that left, those of others of
        their classes among them.
    waiting: persons who are gone and whose rows stay; unknown: those of them whose rows nobody can find.
    other_releases: about the same people, which are as they were.
    """

    departures: str
    left: int
    rows: int
    waiting: int
    unknown: int
    other_releases: tuple[str, ...] = ()

    @property
    def sentences(self) -> str:
        """Say who left, and whose rows stay."""
        return " ".join(f"{sentence}." for sentence in self._parts())

    def _parts(self) -> Iterator[str]:
        others, waiting = self.rows - self.left, self.waiting - self.unknown
        if self.rows:
            how = "erased" if self.departures == "erase" else "retracted"
            whose = f", {others:,} of others, who are not released again" if others else ""
            yield f"{quantity(self.left, 'person')} left, and {quantity(self.rows, 'row')} were {how}{whose}"
        if waiting:
            yield f"{quantity(waiting, 'person')} left, and stay until others of their class leave"
        if self.unknown:
            yield (
                f"{quantity(self.unknown, 'person')} left, and stay: their batch was added before"
                " history.departures was said, and nobody knows their rows; to begin anew, `sqlanon account"
                " forget`, and then `run --replace`"
            )
        if self.other_releases:
            yield f"Other releases are as they were, and may show who left: {', '.join(self.other_releases)}"


@dataclass(frozen=True)
class SetFigures:
    """The sets of sensitive values that the classes of persons show, held against those of earlier releases.

    known: persons of the release who were released before. other: those of them whose class shows another set now.
    counterfeits: rows of nobody in the release.
    """

    known: int
    other: int
    counterfeits: int

    @property
    def sentence(self) -> str:
        """Say whether the sets are the same, and how many rows are of nobody."""
        same = f"{quantity(self.known - self.other, 'person')} of earlier releases in classes with the same values"
        other = f", {self.other:,} with others" if self.other else ""
        return f"{same}{other}; {quantity(self.counterfeits, 'counterfeit')}"


@dataclass(frozen=True)
class HistoryFigures:
    """A release together with all that were entered before it.

    people: the name of their account. releases: how many were entered, this one among them; answers: how many answers
        about these people, None where there are none.
    persons: who were ever in one. groups: of persons with the same classes in all of them; smallest: the persons of the
        smallest. below_k: the persons in groups of fewer than k.
    came: persons that the release before lacked; left: those that it had, and this one lacks.
    added_to: the rows of earlier batches, where this one was added to them.
    repaired: the repair of the release; None where it was released as it was found.
    departures: the rows that left before, if anybody is gone.
    sets: of m-invariance, which judges releases in place of the groups; None elsewhere.
    """

    people: str
    releases: int
    persons: int
    groups: int
    smallest: int
    below_k: int
    came: int
    left: int
    answers: int | None = optional()
    added_to: int | None = optional()
    repaired: RepairFigures | None = optional()
    departures: DepartureFigures | None = optional()
    sets: SetFigures | None = optional()

    @property
    def sentence(self) -> str:
        """Say what all releases together tell, and how this one was repaired."""
        return self._together if self.repaired is None else f"{self._together}; {self.repaired.sentence}"

    @property
    def _together(self) -> str:
        if self.added_to is not None:
            return (
                f"A batch of {quantity(self.came, 'person')}, added to {quantity(self.added_to, 'row')}; with it"
                f" {quantity(self.groups, 'group')} of {quantity(self.persons, 'person')} in all releases about"
                f" {self.people}, the smallest of {self.smallest:,}"
            )
        lines = counted_lines("release", self.releases, self.answers)
        if self.sets is not None:
            persons = quantity(self.persons, "person")
            return (
                f"{lines} about {self.people}: {persons}; {self.came:,} came, {self.left:,} left; {self.sets.sentence}"
            )
        return (
            f"{lines} about {self.people}: {quantity(self.groups, 'group')} of"
            f" {quantity(self.persons, 'person')}, the smallest of {self.smallest:,}; {self.came:,} came,"
            f" {self.left:,} left"
        )


def counted_lines(noun: str, releases: int, answers: int | None) -> str:
    """Count releases, and answers where there are any; noun: of one release."""
    counted = [quantity(releases, noun)] if releases or not answers else []
    return " and ".join([*counted, *([quantity(answers, "answer")] if answers else [])])
