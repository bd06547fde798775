"""The buckets of m-invariance as a policy asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import ClassVar, Literal

from pydantic import Field

from sqlanon.policy import AlgorithmParameters, AttributeSection, Policy, Recodes, Role
from sqlanon.policy.document import Path
from sqlanon.policy.part import Number

_MODEL = "m-invariance"


class Buckets(AlgorithmParameters):
    """Puts persons whose classes showed the same set of sensitive values before into a bucket, evens out how often the
    values of the set occur there, and cuts the bucket into classes that have each value once (Xiao, Tao, SIGMOD 2007).
    Persons who are new fill the gaps, and make buckets of their own. The release numbers its classes, in the column
    `class_number`, as several may have the same labels."""

    sentence: ClassVar[str] = (
        "Persons whose classes showed the same set of sensitive values before were put into a bucket, and each bucket"
        " was cut into classes that have every value of its set once."
    )
    recodes: ClassVar[Recodes] = Recodes.REGIONS
    holds_sets: ClassVar[bool] = True
    numbers_classes: ClassVar[bool] = True
    name: Literal["buckets"]
    counterfeits: Number = Field(default=0.0, ge=0, lt=1)
    """The most rows of nobody that fill the gaps of buckets which nobody new can fill, as a share of the table's rows.
    The release shows them as all others, and the run says how many there are. Without them, the rows that lack partners
    are left out, within `suppression`."""

    def most_counterfeits(self, rows: int) -> int:
        """Count the counterfeits that a table of so many rows may get."""
        return int(Decimal(str(self.counterfeits)) * rows)

    @property
    def leaves_rules(self) -> bool:
        """False: a new row's class depends on what its person's classes showed before."""
        return False

    @property
    def suppresses(self) -> bool:
        """True: rows that lack partners are left out."""
        return True


def problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    """Say which parts of a policy do not go with buckets."""
    if [model.model for model in policy.privacy] != [_MODEL]:
        yield f"{place(('privacy',))}: buckets are for {_MODEL} alone; write it as the only model, or choose mondrian."
    protected = [model.sensitive for model in policy.privacy]
    others = [name for name, one in policy.attributes.items() if name not in protected and _is_kept(one)]
    if others:
        yield (
            f"{place(('attributes',))}: buckets release quasi-identifiers and the protected attribute alone, as rows of"
            f" nobody have no other values; give {', '.join(map(repr, others))} the role omit."
        )
    for key, value in (("ranges", "observed"), ("suppressed", "omit"), ("remainder", "suppress")):
        if getattr(policy, key) != value:
            yield f"{place((key,))}: buckets have no tree, and no rows of stars; leave it out."
    if policy.release.layout != "flat":
        yield f"{place(('release', 'layout'))}: buckets number their classes in the table of rows; leave it out."


def _is_kept(attribute: AttributeSection) -> bool:
    return attribute.role is not Role.QUASI_IDENTIFIER and not attribute.is_omitted
