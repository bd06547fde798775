"""km-anonymity: whoever knows any m rows of a person still has k persons (Terrovitis, Mamoulis, Kalnis, PVLDB 2008).

There a record is a set of items, and whoever knows any m items of a record has k records or more. Here the record is a
person, and the items are the classes in which that person has rows. Sets of one class are those of k-anonymity of
persons. For sets of more classes:

- Merging classes never breaks the model. Let a person have rows in some merged classes, m at most; then that person has
  rows in a class of each of these, which k persons have, and all of these have the merged classes.
- Leaving whole classes out never breaks it either: the sets of the others stay those of the same persons.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlanon.models.base import PrivacyModel
from sqlanon.models.k_anonymity import KAnonymity, KMembers, KPersons


class KnowsRows(KMembers):
    """A model of whoever knows up to `m` rows of a person: sets of so many classes are those of `k` persons or more."""

    m: int

    @property
    def known_rows(self) -> int:
        return self.m

    @property
    def parameters(self) -> dict[str, Any]:
        return {"k": self.k, "m": self.m}

    @property
    def sentence(self) -> str:
        known = "one row" if self.m == 1 else f"up to {self.m} rows"
        return (
            f"Whoever knows {known} of a person, and so the classes that these are in, still has {self.k:,} persons or"
            " more."
        )


@dataclass(frozen=True)
class KmAnonymity(KnowsRows, KAnonymity):
    """Every set of up to `m` classes in which some person has rows is that of at least `k` persons.

    Of single classes the measure is the number of persons. Sets of several are measured on all classes of a release
    (see `encoding.class_sets` and `verification.class_sets`).
    """

    name: ClassVar[str] = "km-anonymity"

    m: int

    def by_rows(self, person: str) -> KmPersons:
        return KmPersons(self.k, person, self.m)


@dataclass(frozen=True)
class KmPersons(KnowsRows, KPersons):
    """The same where rows are counted, of the persons whom `attribute` tells apart."""

    name: ClassVar[str] = KmAnonymity.name

    m: int


def persons_of_sets(models: Iterable[PrivacyModel]) -> dict[int, int]:
    """The least persons of each set of classes that one person has, by the number of these, from 2 on."""
    joining = [(model.known_rows, model.promised_rows or 1) for model in models if model.known_rows is not None]
    most = max((known for known, _ in joining), default=1)
    return {size: max(k for known, k in joining if known >= size) for size in range(2, most + 1)}
