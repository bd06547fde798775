"""The values of a column that a hierarchy lacks, at all sites together, so that they can add them to it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.hierarchies.digests import hierarchy_digest
from sqlanon.hierarchies.taxonomy import read_taxonomy
from sqlanon.methods.generalization.federation.agreement import describe_plan, digest_part, require_same_parts
from sqlanon.methods.generalization.federation.comparisons import Polynomial, Threshold
from sqlanon.methods.generalization.federation.federation_plan import FederationPlan
from sqlanon.methods.generalization.federation.party import Party
from sqlanon.methods.generalization.federation.shares import PRIME, Numbers, Sharing, draw
from sqlanon.plan.opening import open_source_table
from sqlanon.policy import Hierarchy, Policy
from sqlanon.policy.document import path_text
from sqlanon.sql import Identifier, Relation
from sqlanon.values.expressions import comparable, text_of

SLOTS = 2**16


MOST_VALUES = SLOTS // 8  # of a site, so that most of all sites' values have a slot of their own


MOST_BYTES = 240  # of a value


_BYTES = 3  # of a value in each number, which is below the prime


_NUMBERS = 1 + MOST_BYTES // _BYTES  # the length, and the value


_MOST_ROUNDS = 50


_MODULUS = np.uint64(PRIME)


_DOING = "while values were put together"


def unite_lacking(
    plan: FederationPlan, policy: Policy, site: str, key: Path, column: str, options: EngineOptions | None = None
) -> list[str]:
    """Open the values of a column, at any site of a plan, that its hierarchy lacks; NULL is none.

    Nobody learns at which sites a value is, at how many, or how often.

    Raises PolicyError where the column has no such hierarchy, values are too many or too long, or the sites differ in
    plan or hierarchy; AccessError where a site can't be reached or leaves.
    """
    hierarchy = _hierarchy_of(policy, column)
    with connect(policy.source.url or "", options) as engine, open_source_table(engine, policy) as source:
        own = list_lacking(engine, source, column, hierarchy)
    require_fit(own, column)
    with Party(plan, site, key) as party:
        return unite(party, own, column, hierarchy_digest(column, hierarchy))


def unite(party: Party, own: list[str], column: str, digest: str) -> list[str]:
    """Put this site's values together with those of the other sites; digest: of the hierarchy that lacks them."""
    parts = {**describe_plan(party), "the column": digest_part(column), f"the hierarchy of column '{column}'": digest}
    require_same_parts(party, parts)
    return Union(Sharing(party)).of(own)


def _hierarchy_of(policy: Policy, column: str) -> Hierarchy:
    attribute = policy.attributes.get(column)
    if attribute is None or attribute.hierarchy is None or attribute.hierarchy.kind not in ("csv", "mapping"):
        raise PolicyError(
            f"{path_text(('attributes', column))}: --column is one that has a hierarchy of kind csv or mapping, which"
            " lists values."
        )
    if policy.source.table is None:
        raise PolicyError("source.file: values are put together from tables; load the file into one.")
    return attribute.hierarchy


def list_lacking(engine: Engine, source: Relation, name: str, hierarchy: Hierarchy) -> list[str]:
    """List the values of a table's column that a hierarchy lacks."""
    columns: dict[str, Column] = {one.name: one for one in engine.columns(source)}
    if name not in columns:
        raise PolicyError(f"{path_text(('attributes', name))}: the table has no such column.")

    def error(what: str) -> PolicyError:
        return PolicyError(f"Hierarchy of column '{name}': {what}")

    lines = read_taxonomy(hierarchy, None, error)
    listed = engine.temporary("listed_values")
    engine.run("hierarchies/create_values", values=listed)
    engine.load(listed, ["value"], [[line.value] for line in lines])
    column = columns[name]
    text = text_of(engine.render, Markup(Identifier(name)), column.kind, column.type)
    text = comparable(engine, text, Kind.TEXT)
    return [
        value
        for (value,) in engine.query(
            "methods/generalization/federation/list_lacking", source=source, text=text, listed=listed
        )
    ]


def require_fit(values: Collection[str], column: str) -> None:
    """Raise PolicyError for values that are too many or too long."""
    if len(values) > MOST_VALUES:
        raise PolicyError(
            f"Column '{column}' has {len(values):,} values that its hierarchy lacks, and {MOST_VALUES:,} of a site can"
            " be put together; is it the hierarchy of this column?"
        )
    if any(len(value.encode()) > MOST_BYTES for value in values):
        raise PolicyError(
            f"Column '{column}' has values of more than {MOST_BYTES} bytes that its hierarchy lacks; shorten them in a"
            " view."
        )


class Union:
    """A site's part in putting values together."""

    def __init__(self, sharing: Sharing) -> None:
        self._sharing = sharing
        self._used = Threshold(sharing, 1)
        self._inverse = Polynomial([0, *(pow(count, -1, PRIME) for count in range(1, sharing.sites + 1))])

    def of(self, own: Collection[str]) -> list[str]:
        """Open the values that any site has, in the order of their characters; every site passes its own."""
        opened: set[str] = set()
        for number in range(_MOST_ROUNDS):
            values, is_last = self._round(number, sorted(set(own) - opened))
            opened |= values
            if is_last:
                return sorted(opened)
        raise ProtectionError(f"The values did not come apart in {_MOST_ROUNDS} rounds. Please report this.")

    def _round(self, number: int, own: Sequence[str]) -> tuple[set[str], bool]:
        """Open the values that have a slot of their own; and whether all have."""
        mine = _Slots(number, own)
        slots = self._used.find_large(mine.used, _DOING)
        if not slots:
            return set(), True
        agreed = self._find_agreed(mine, slots)
        values = {value for value in self._values(mine, agreed) if value is not None}
        return values, len(values) == len(slots)

    def _find_agreed(self, mine: _Slots, slots: Sequence[int]) -> list[int]:
        """Open in which slots all sites mean one value: the variance of their marks is 0, and not at random."""
        used, marks, squares = self._share([mine.used[slots], mine.marks[slots], mine.squares[slots]])
        left, right = np.concatenate([used, marks]), np.concatenate([squares, marks])
        products = self._sharing.multiply(left, right, _DOING)
        variance = (products[: len(slots)] + _MODULUS - products[len(slots) :]) % _MODULUS
        factor = self._sharing.share_sum(draw(len(slots)), _DOING)
        opened = self._sharing.open(self._sharing.multiply(variance, factor, _DOING), _DOING)
        return [slot for slot, value in zip(slots, opened, strict=True) if value == 0]

    def _values(self, mine: _Slots, slots: Sequence[int]) -> list[str | None]:
        """Open the values of slots; None for one that is none, as where two values have the same mark."""
        if not slots:
            return []
        used, sums = self._share([mine.used[slots], np.concatenate([mine.numbers(slot) for slot in slots])])
        inverse = np.repeat(self._inverse.at(self._sharing, used, _DOING), _NUMBERS)
        opened = self._sharing.open(self._sharing.multiply(sums, inverse, _DOING), _DOING)
        return [mine.read(slot, numbers) for slot, numbers in zip(slots, opened.reshape(-1, _NUMBERS), strict=True)]

    def _share(self, own: Sequence[Numbers]) -> list[Numbers]:
        shares = self._sharing.share_sum(np.concatenate(own), _DOING)
        return np.split(shares, np.cumsum([len(one) for one in own])[:-1])


class _Slots:
    """A site's values in the slots of a round.

    used: 1 where it has a value; marks: another digest of it; squares: of the marks.
    """

    def __init__(self, number: int, values: Sequence[str]) -> None:
        self._round = number
        self._values: dict[int, str] = {}
        self.used, self.marks, self.squares = (np.zeros(SLOTS, np.uint64) for _ in range(3))
        for value in values:
            slot, mark = self._place(value)
            is_second = slot in self._values
            self._values[slot] = value
            self.used[slot], self.marks[slot] = 1, mark
            self.squares[slot] = draw(1)[0] if is_second else mark * mark % PRIME  # so that nobody agrees on two

    def _place(self, value: str) -> tuple[int, int]:
        digest = hashlib.sha256(f"{self._round} {value}".encode()).digest()
        return int.from_bytes(digest[:4], "big") % SLOTS, int.from_bytes(digest[4:12], "big") % PRIME

    def numbers(self, slot: int) -> Numbers:
        """The value of a slot as numbers: its length, its bytes, and zeros; zeros alone where the site has none."""
        if slot not in self._values:
            return np.zeros(_NUMBERS, np.uint64)
        data = self._values[slot].encode()
        padded = data.ljust(MOST_BYTES, b"\0")
        parts = [int.from_bytes(padded[start : start + _BYTES], "big") for start in range(0, MOST_BYTES, _BYTES)]
        return np.array([len(data), *parts], np.uint64)

    def read(self, slot: int, numbers: Numbers) -> str | None:
        """Read a value from numbers; None where they are none of this slot."""
        length, *parts = (int(number) for number in numbers)
        if length > MOST_BYTES or any(part >= 2 ** (8 * _BYTES) for part in parts):
            return None
        data = b"".join(part.to_bytes(_BYTES, "big") for part in parts)
        try:
            value = data[:length].decode()
        except UnicodeDecodeError:
            return None
        return value if self._place(value)[0] == slot and not any(data[length:]) else None
