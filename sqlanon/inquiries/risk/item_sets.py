"""The risk of whoever knows some of a person's items: the persons that have all of them, of any m items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import PolicyError
from sqlanon.inquiries.risk.coded_columns import code_columns
from sqlanon.plan.lookup import require_columns
from sqlanon.results.risk import ItemRisk, KnownItems
from sqlanon.sql import Identifier, Relation
from sqlanon.values.expressions import comparable
from sqlanon.work.workspace import TemporaryWorkspace, Workspace

KNOWN = (1, 2, 3)
MOST_KNOWN = 10
MOST_SETS = 200_000_000
"""The sets of a size, all persons' together, up to which they are counted."""
_ROW = Identifier("s")


@dataclass(frozen=True)
class ItemSource:
    """A table of items: one row for each item of a person, or an array of items in the row of each.

    nulls_each: whether a row in which the subject is NULL is of another person each.
    """

    engine: Engine
    table: Relation
    items: Column
    subject: Column | None = None
    nulls_each: bool = False

    @property
    def is_array(self) -> bool:
        """Tell whether a row has an array of items."""
        return self.items.type.endswith("[]")


def item_source(
    engine: Engine, table: Relation, items: str, *, subject: str | None = None, nulls_each: bool = False
) -> ItemSource:
    """Resolve the columns by their names.

    Raises PolicyError for an unknown column, arrays of arrays, or items whose persons nothing tells.
    """
    require_columns(engine, table, [items, *([] if subject is None else [subject])])
    there = {column.name: column for column in engine.columns(table)}
    source = ItemSource(engine, table, there[items], None if subject is None else there[subject], nulls_each)
    if items == subject:
        raise PolicyError(f"A column is of one use alone; '{items}' is named twice.")
    if source.items.type.endswith("[][]"):
        raise PolicyError(f"--items: '{items}' has arrays of arrays; name a column of items, or of arrays of them.")
    if subject is None and not source.is_array:
        raise PolicyError(
            f"--items: '{items}' has one item a row, and nothing tells whose; name that column with --subject."
        )
    return source


def require_known(known: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of known items, each once, from 1 to the most that are counted.

    Raises PolicyError for any other number, or none.
    """
    if not known or not all(1 <= number <= MOST_KNOWN for number in known):
        raise PolicyError(f"--known has numbers of items from 1 to {MOST_KNOWN}, such as --known 1,2,3.")
    return tuple(sorted(set(known)))


def measure_items(source: ItemSource, known: Sequence[int]) -> ItemRisk:
    """Measure the risk of persons by so many of their items, in temporary tables that end with the session.

    Raises PolicyError where the subject is NULL in some row, or values can't be told apart.
    """
    engine, numbers = source.engine, require_known(known)
    engine.traits.codes_columns.require()
    workspace = TemporaryWorkspace(engine)
    with engine.transaction(), engine.grouping_by_hash():
        baskets = _create_baskets(source, workspace)
        sizes = {int(n): int(persons) for n, persons in engine.query("inquiries/risk/count_baskets", baskets=baskets)}
        (different,) = engine.query_one("inquiries/risk/count_items", baskets=baskets)
        each = _measure_sizes(engine, workspace, baskets, sizes, numbers[-1]) if sizes else []
        workspace.drop(baskets)
    return ItemRisk(
        column=source.items.name,
        subject=None if source.subject is None else source.subject.name,
        persons=sum(sizes.values()),
        items=int(different),
        known=tuple(one for one in each if one.known in numbers),
    )


def _create_baskets(source: ItemSource, workspace: Workspace) -> Relation:
    """Write the items of every person, each once, as codes into a work table `(person, item)`."""
    engine, listed, baskets = source.engine, workspace.table("listed_items"), workspace.table("baskets")
    subject = source.subject
    engine.run(
        "inquiries/risk/list_items",
        listed=listed,
        table=source.table,
        person=None if subject is None else comparable(engine, Markup(Identifier(subject.name)), subject.kind),
        item=Identifier(source.items.name),
        is_array=source.is_array,
    )
    coded = code_columns(engine, workspace, listed, engine.columns(listed))
    person, item = coded.fields
    (unknown,) = engine.query_one("inquiries/risk/count_nobody", rows=coded.rows, person=person.code(_ROW))
    if unknown and not source.nulls_each:
        assert subject is not None
        raise PolicyError(f"The subject '{subject.name}' is NULL in some rows, so nobody knows whose items these are.")
    engine.run(
        "inquiries/risk/create_baskets",
        baskets=baskets,
        rows=coded.rows,
        person=person.code(_ROW),
        item=item.code(_ROW),
    )
    engine.analyze(baskets)
    workspace.drop(listed, coded.rows, coded.tuples)
    return baskets


def _measure_sizes(
    engine: Engine, workspace: Workspace, baskets: Relation, sizes: Mapping[int, int], most: int
) -> list[KnownItems]:
    """Count for every person, size by size, the fewest persons who have the same set of up to so many items.

    sizes: how many persons have so many items. Where a size has too many sets, it is not counted, nor are larger ones.
    """
    measured: list[KnownItems] = []
    fewest: Relation | None = None
    for size in range(1, most + 1):
        sets = sum(comb(items, size) * persons for items, persons in sizes.items())
        if sets > MOST_SETS or (measured and measured[-1].alone is None):
            measured.append(KnownItems(size))
            continue
        if sets:
            now = workspace.table("fewest", size)
            engine.run("inquiries/risk/create_fewest", now=now, baskets=baskets, size=size, before=fewest)
            workspace.drop(*([] if fewest is None else [fewest]))
            fewest = now
            engine.analyze(fewest)
        assert fewest is not None
        persons, alone, least, total = map(int, engine.query_one("inquiries/risk/sum_fewest", fewest=fewest))
        measured.append(KnownItems(size, alone, alone / persons, least, total / persons))
    if fewest is not None:
        workspace.drop(fewest)
    return measured
