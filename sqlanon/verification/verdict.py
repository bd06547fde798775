"""The verdict of the independent check on a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sqlanon.measures.metrics import ClassStatistics
from sqlanon.results.codec import to_json
from sqlanon.results.measures import Disclosure, ModelResult
from sqlanon.support.quantities import quantity
from sqlanon.verification.persons import CountedPersons


@dataclass(frozen=True)
class SharedClasses:
    """A table whose classes have rows in tables of other owners too, and are judged with these.

    rows: of the table itself; omitted: the rows that all tables together leave out.
    """

    rows: int
    omitted: int


@dataclass(frozen=True)
class Verification:
    """The result of the check; a table without a class satisfies every model, and `note` says so.

    disclosure: of every sensitive attribute, protected by a model or not.
    violated_by_stars: the models that suppressed rows violate which the table shows, as the class that a reader sees.
    exempt: whether these rows are not judged.
    persons: the rows and persons of the table, where the members of its classes are persons; None where they are rows.
    shared: of the table, where `statistics` and `models` are of several owners' tables together.
    """

    statistics: ClassStatistics
    models: tuple[ModelResult, ...]
    disclosure: tuple[Disclosure, ...] = ()
    violated_by_stars: tuple[str, ...] = ()
    exempt: bool = False
    persons: CountedPersons | None = None
    shared: SharedClasses | None = None

    @property
    def satisfied(self) -> bool:
        """Tell whether every model is satisfied."""
        return all(result.satisfied for result in self.models)

    @property
    def note(self) -> str | None:
        """The note that a reader needs to read the result rightly."""
        if not self.statistics.rows:
            return "The table is empty: there is no equivalence class that could violate a model."
        if self.exempt and self.statistics.suppressed:
            verb = "violates" if self.statistics.suppressed == 1 and self.persons is None else "violate"
            of = f", which {verb} {', '.join(self.violated_by_stars)}" if self.violated_by_stars else ""
            return f"UNPROTECTED: {self._suppressed_members}, shown as one class{of}."
        return None

    @property
    def _suppressed_members(self) -> str:
        """The members of the class of suppressed rows, in words."""
        suppressed = self.statistics.suppressed
        return (
            quantity(suppressed, "suppressed row")
            if self.persons is None
            else f"suppressed rows of {quantity(suppressed, 'person')}"
        )

    @property
    def fails_by_stars_alone(self) -> bool:
        """Tell whether the suppressed rows are the only class that violates a model."""
        failed = [result for result in self.models if not result.satisfied]
        return bool(failed) and all(r.model in self.violated_by_stars and r.violations == 1 for r in failed)

    @property
    def stars_problem(self) -> str:
        """The message for suppressed rows that alone violate a model."""
        return (
            f"The {self._suppressed_members}, which `suppressed: star` shows as one class, violate"
            f" {', '.join(self.violated_by_stars)}; nothing was published. Leave them out with `suppressed: omit`,"
            " change what may be suppressed, or accept rows that"
            " no model protects with `suppressed: {star: unprotected}`."
        )

    def as_json(self) -> dict[str, Any]:
        """One object of plain values, as `sqlanon verify --json` prints it."""
        statistics, counted = self.statistics, self.persons
        names = ("rows", "suppressed", "classes", "min_class_size", "mean_class_size", "max_class_size")
        persons: dict[str, Any] = {"unit": "rows"}
        if counted is not None:
            persons = {
                "unit": "persons",
                "rows": counted.rows,
                "persons": counted.persons,
                "in_several_classes": counted.several,
                "singled_out": to_json(counted.singled),
            }
        return {
            **{name: getattr(statistics, name) for name in names},
            **persons,
            "class_sizes": [asdict(bucket) for bucket in statistics.buckets()],
            "models": [asdict(result) for result in self.models],
            "risk": None if statistics.fits else asdict(statistics.risk),
            "disclosure": to_json(self.disclosure),
            "satisfied": self.satisfied,
            "note": self.note,
        }
