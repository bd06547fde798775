"""The classes of each person of a table, taken together: sets of them that too few persons have, or one alone.

Classes are told by digests of 64 bits of what they show. A check counts these beside the classes, so that two classes
of one digest, which would pass for one, can't hide anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.models.base import PrivacyModel
from sqlanon.models.km_anonymity import persons_of_sets
from sqlanon.results.measures import ModelResult, SingledOut
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.values.expressions import comparable, shown
from sqlanon.verification.model_results import joined_result

SETS_PER_ROW = 5
"""The sets of two, or of three, classes that are counted for a figure, for each row of the table."""
FEW_SETS = 1_000_000
"""The sets that are counted for a figure however few rows there are."""
_EVERY = 4  # stands for all classes of a person


@dataclass(frozen=True)
class JoinedRows:
    """A table with the column that tells persons apart, and those whose values make its classes.

    suppressed: the condition of rows of `sized` that are not looked at, if there is one.
    """

    engine: Engine
    table: Relation | Expression
    person: Column
    quasi_identifiers: Sequence[Column]
    suppressed: Expression | bool = False

    def check(self, models: Sequence[PrivacyModel], of_classes: ModelResult, classes: int) -> ModelResult:
        """Add to a model's result of single classes that of the sets of several, up to the first size that fails.

        models: the model. classes: of the table, those of rows that are not looked at left out.

        Raises VerificationError where digests of classes collide, or figures contradict each other.
        """
        (model,) = models
        result = of_classes
        for size, persons in persons_of_sets(models).items():
            if not result.satisfied:
                break
            with self.engine.grouping_by_hash():
                digests, *measured = self.engine.query_one(
                    "verification/measure_sets", size=size, persons=persons, **self._values(self._person)
                )
            if digests != classes:
                raise VerificationError(
                    f"The check of {model.name} can't tell all classes apart by their digests, so nothing is taken for"
                    " verified. Please report this."
                )
            result = joined_result(model, result, *measured)
        return result

    def count_singled(self, persons: int, rows: int, sets: Sequence[float]) -> SingledOut:
        """Count those of so many persons, who have so many rows, that are alone with some of their classes.

        sets: how many sets of two and of three classes there are, all persons' together, which decide which of both are
            looked at.
        """
        most = max(FEW_SETS, SETS_PER_ROW * rows)
        sizes = [size for size, number in enumerate(sets, 2) if 0 < number <= most]
        known = macro("verification.digest_of_known", self._person, self._digest([self._person]))
        of_class = self._digest([macro("relations.column", Identifier("own"), Identifier("class"))])
        with self.engine.grouping_by_hash():
            counted = self.engine.query(
                "verification/count_singled", every=_EVERY, sizes=sizes, digest=of_class, **self._values(known)
            )
        alone = {int(size): int(persons) for size, persons in counted}
        up_to = {size: sum(n for least, n in alone.items() if least <= size) for size in (1, 2, 3, _EVERY)}
        two, three = (up_to[size] if number <= most else None for size, number in enumerate(sets, 2))
        return SingledOut(persons, up_to[1], two, three, up_to[_EVERY])

    @property
    def _person(self) -> Expression:
        return comparable(self.engine, Markup(Identifier(self.person.name)), self.person.kind)

    def _digest(self, values: Sequence[Expression]) -> Expression:
        render = self.engine.render
        return render.macro("hash_of_row", [render.macro("hashable_wide", value) for value in values])

    def _values(self, person: Expression) -> dict[str, Any]:
        """Build the values of statements over the classes of persons."""
        columns: list[Expression | int] = [
            part
            for column in self.quasi_identifiers
            for part in shown(self.engine, column, Markup(Identifier(column.name)))
        ] or [0]
        names = [macro("relations.column", Identifier("sized"), Identifier(f"q{n}")) for n in range(len(columns))]
        return {
            "table": self.table,
            "columns": columns,
            "class": self._digest(names),
            "person": person,
            "suppressed": self.suppressed,
        }


def require_person(models: Sequence[PrivacyModel]) -> None:
    """Raise PolicyError where a model judges the rows of a person together, and nothing tells whose they are."""
    if names := [model.name for model in models if model.known_rows is not None]:
        raise PolicyError(
            f"privacy: {', '.join(names)} judges what several rows of a person tell: name the column that tells persons"
            " apart with `subject`, at the top of the policy."
        )
