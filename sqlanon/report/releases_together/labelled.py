"""The persons of a release that is a table or a file, whatever program made it, by what its labels cover.

A person whom labels of several classes cover may be in each of them. Whoever holds the release and knows the person's
quasi-identifiers learns these classes, and no more: persons with equal sets of classes can't be told apart by it, and
all others are taken to be told apart. So a group is never reported larger than it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.engines.files import is_data_file
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.plan.checks import released_names
from sqlanon.policy import Policy, ReleaseSection, Show
from sqlanon.report.release_audit.holding import create_classes, shown_fields
from sqlanon.report.release_audit.placing import Placing, ShownField, create_reaches, open_ends, place_rows
from sqlanon.report.release_audit.published import bring_published, expected_columns, open_published
from sqlanon.report.releases_together.persons import ReleasePersons, SourcePersons, count_persons
from sqlanon.sql import Identifier, Relation
from sqlanon.support.suggest import quoted
from sqlanon.work.workspace import Workspace


class PlacingInAll(Placing):
    """The way of tuples to all boxes that hold them.

    boxed: whether boxes leave out their upper ends.
    """

    boxed: ClassVar[bool] = False

    def place(self, engine: Engine, workspace: Workspace) -> tuple[Relation, int]:
        """Pair tuples with all their classes; returns the table `(words, leaf, rivals)`."""
        boxes, cuts = self.divide(engine, workspace)
        pairs = workspace.table("pairs", self.number)
        engine.analyze(boxes, self.tuples)
        engine.run(
            "report/releases_together/place_in_all",
            pairs=pairs,
            tuples=self.tuples,
            boxes=boxes,
            cuts=cuts,
            axes=self.axes,
            words=self.words,
            boxed=self.boxed,
        )
        engine.analyze(pairs)
        return pairs, 0


class PlacingInCut(PlacingInAll):
    """The same among boxes from cut to cut."""

    boxed = True


@contextlib.contextmanager
def open_labelled(
    engine: Engine, workspace: Workspace, policy: Policy, source: SourcePersons, name: str, options: EngineOptions
) -> Iterator[ReleasePersons]:
    """Open a release, and find its persons among those of the source.

    Raises PolicyError where the release shows columns that the policy does not, no quasi-identifier, values that say
    nothing of their classes, or other persons than the source has.
    """
    is_file = is_data_file(name)
    place = ReleaseSection(file=name) if is_file else ReleaseSection(table=name)
    there = policy.model_copy(update={"release": place})
    with open_published(there, engine, name, options) as (reader, published):
        columns = {column.name: column for column in reader.columns(published)}
        expected = _expected(source, engine, name, columns)
        release = bring_published(there, engine, reader, published, name, expected)
        typed = _typed(engine, workspace, release, expected)
        persons = _place(engine, workspace, source, typed, ReleasePersons(name, _KIND[is_file], typed, 0))
        if reader is not engine:
            engine.run("engines/drop_table", table=release)
        yield persons


_KIND = {True: "file", False: "table"}


def _expected(source: SourcePersons, engine: Engine, name: str, columns: Mapping[str, Column]) -> list[Column]:
    """List the columns of a release with their types; raises PolicyError for those that a policy can't explain."""
    policy, plan = source.plan.policy, source.plan
    shown = {one: column for column, part in policy.attributes.items() for one in released_names(column, part)}
    unknown = [one for one in columns if one not in shown]
    if unknown:
        raise PolicyError(
            f"{name} shows {', '.join(quoted(unknown))}, which the policy does not release: give a role to a column of"
            " the source, and leave out what is of no source."
        )
    quasi = {one.name: released_names(one.name, policy.attributes[one.name]) for one in plan.quasi_identifiers}
    torn = [column for column, names in quasi.items() if 0 < len(columns.keys() & names) < len(names)]
    if torn or not any(columns.keys() & names for names in quasi.values()):
        lacking = [one for names in quasi.values() for one in names if one not in columns]
        raise PolicyError(
            f"{name} lacks {', '.join(quoted(lacking))}, which the policy releases: nothing says who is where."
        )
    wanted = {one.name: one for one in expected_columns(plan, engine.traits)}
    return [replace(wanted.get(one, column), name=one) for one, column in columns.items()]


def _typed(engine: Engine, workspace: Workspace, release: Relation, expected: list[Column]) -> Relation:
    """Give the release the types of the policy's, where another program gave it others."""
    there = {column.name: column.type for column in engine.columns(release)}
    if all(one.type in ("", there[one.name]) for one in expected):
        return release
    typed = workspace.table("typed")
    listed = [{"name": Identifier(one.name), "type": Markup(one.type or there[one.name])} for one in expected]
    engine.run("report/release_audit/cast_release", typed=typed, release=release, columns=listed)
    return engine.resolve(typed) or typed


def _place(
    engine: Engine, workspace: Workspace, source: SourcePersons, release: Relation, persons: ReleasePersons
) -> ReleasePersons:
    """Find the classes that may hold each person of the source."""
    plan, coded = source.plan, source.coded
    released = {column.name: column for column in engine.columns(release)}
    fields = shown_fields(plan.policy, coded, released)
    shown = [replace(one, number=place) for place, one in enumerate(fields)]
    _require_clear(persons.name, source, shown)
    classes = create_classes(engine, workspace, shown, release)
    boxed = plan.policy.from_cut_to_cut or any(open_ends(engine, classes, one) for one in shown)
    reaches = create_reaches(engine, workspace, coded, shown, classes, boxed, each=True)
    placing = PlacingInCut if boxed else PlacingInAll
    pairs = place_rows(engine, workspace, coded, shown, classes, reaches, placing).tuples
    members, words = workspace.table("members"), coded.word_columns
    engine.run(
        "report/releases_together/create_placed_members",
        members=members,
        pairs=pairs,
        person=source.person(engine),
        witness=coded.witness,
        words=words,
    )
    count = count_persons(engine, members, persons.name)
    (wrong,) = engine.query_one(
        "report/releases_together/count_mismatched", classes=classes, pairs=pairs, witness=coded.witness, words=words
    )
    (rows,) = engine.query_one("count_rows", table=release)
    if wrong or rows != count:
        raise PolicyError(
            f"{persons.name} is not of the persons that the source has now: its labels cover {count:,} of them, and it"
            f" has {rows:,} rows; {wrong:,} of its classes have other numbers of rows than persons who fit them. Hold"
            " it against the source as it was then (source.table)."
        )
    (ambiguous,) = engine.query_one("report/releases_together/count_ambiguous", members=members)
    names = {one.field.attribute.name for one in shown}
    omits = tuple(one.name for one in plan.quasi_identifiers if one.name not in names)
    return replace(persons, members=members, persons=count, ambiguous=int(ambiguous), omits=omits)


def _require_clear(name: str, source: SourcePersons, shown: list[ShownField]) -> None:
    """Refuse columns whose values do not say for which values they stand."""
    nulls = source.coded.with_nulls
    vague = [one.column.name for one in shown if one.is_vague or (one.show is Show.BOUNDS and one.column.name in nulls)]
    if vague:
        raise PolicyError(
            f"{name}: what it shows of {', '.join(quoted(vague))} does not say which values it stands for, so that"
            " nobody knows which persons its classes hold. Name the run that made it, if one did."
        )
