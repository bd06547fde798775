"""Releases whose values were changed at random, with a second table that tells of what was added to each column."""

from __future__ import annotations

import base64
import itertools
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.methods.randomization.columns.categories import RandomizedCategory, SwappedColumn
from sqlanon.methods.randomization.columns.numbers import RandomizedNumber, UncertainColumn, in_units
from sqlanon.methods.randomization.plan import RandomizedPlan
from sqlanon.models.randomization.draws import HEAD_BITS, TAIL_BITS, WORD_BITS
from sqlanon.models.randomization.spreads import SLOT_BITS, WHOLE
from sqlanon.sql import Identifier, Relation, macro
from sqlanon.staging.pair import StagedPair
from sqlanon.staging.released_order import released_order
from sqlanon.values.digest import exact_text
from sqlanon.values.expressions import exact, text_of
from sqlanon.work.publish import guard_staging
from sqlanon.work.publish.companion import NOISE, companion_of
from sqlanon.work.workspace import Workspace

KEY_BYTES = 16  # as many as a digest has


_DRAWS = ("attribute", "place", "slot", "head", "tail", "low", "mask", "other_low", "other_mask")


_DIGEST_BITS = 128


_SWAP_WORDS = 3  # of a row, that decide its place in a random order: equal ones are as good as none


def secret_key() -> str:
    """Draw a key from the randomness of the operating system; nothing keeps it."""
    return secrets.token_hex(KEY_BYTES)


def key_text(key: str) -> str:
    """Write a key as the text that is hashed: 22 characters, which leave room for a row in the first block of MD5."""
    return base64.b64encode(bytes.fromhex(key)).decode().rstrip("=")


@dataclass(frozen=True)
class RandomizedRows:
    """Rows of a source, each with its randomized columns changed.

    key: gives the secret key of the draws, as hexadecimal digits. spreads: of uncertain columns, see `create_spreads`.
    """

    plan: RandomizedPlan
    key: Callable[[], str] = secret_key
    spreads: Mapping[str, Relation] = field(default_factory=dict)

    def stage(self, engine: Engine, workspace: Workspace, *, replace: bool) -> StagedPair:
        """Write rows and table of changes beside their places; call it in the transaction that reads the source.

        The key goes into a temporary table of the session as a bound value, and is dropped with it.
        """
        release = self.plan.release
        final, noise = workspace.staging(release, engine), workspace.staging(companion_of(release, NOISE), engine)
        draws, categories = workspace.table("draws"), workspace.table("categories")
        keys = engine.temporary(workspace.table("keys").name)
        self._load(engine, draws, categories)
        engine.run("methods/randomization/create_keys", keys=keys)
        engine.load(keys, ["secret"], [(key_text(self.key()),)])
        stage_rows(
            engine, self.plan, self.spreads, self.plan.source, final, keys=keys, draws=draws, categories=categories
        )
        grants = guard_staging(engine, final)
        workspace.drop(keys, draws, categories)
        engine.run("methods/randomization/create_noise", noise=noise)
        stated = [row for change in self.plan.changes for row in change.facts()]
        engine.load(noise, list(NOISE.columns), stated)
        guard_staging(engine, noise)
        return StagedPair(engine, final, noise, NOISE, release, grants, replace)

    def _load(self, engine: Engine, draws: Relation, categories: Relation) -> None:
        """Write down the slots of all draws, and the declared values of categories."""
        places = {column.name: place for place, column in enumerate(self.plan.columns)}
        of_numbers = [
            (places[name], None, slot) for name, one in self.plan.numbers.items() for slot in one.draws.slots()
        ]
        of_categories = [
            (places[name], place if len(one.draws) > 1 else None, slot)
            for name, one in self.plan.categories.items()
            for place, draws_of_value in enumerate(one.draws)
            for slot in draws_of_value.slots()
        ]
        of_spreads = [
            (places[name], spread, slot)
            for name, one in self.plan.uncertain.items()
            for spread in spreads_of(engine, self.spreads[name])
            for slot in one.change.rule.draws(spread).slots()
        ]
        engine.run("methods/randomization/create_draws", draws=draws)
        listed = [*of_numbers, *of_categories, *of_spreads]
        engine.load(draws, _DRAWS, [(number, place, *slot) for number, place, slot in listed])
        engine.run("methods/randomization/create_categories", categories=categories)
        values = [
            (places[name], place, value)
            for name, one in self.plan.categories.items()
            for place, value in enumerate(one.change.values)
        ]
        engine.load(categories, ["attribute", "place", "value"], values)
        engine.analyze(draws, categories)


def stage_rows(
    engine: Engine,
    plan: RandomizedPlan,
    spreads: Mapping[str, Relation],
    source: Relation,
    staging: Relation,
    **tables: Relation,
) -> None:
    """Create the table of changed rows, by draws that the key and every row's own values decide."""
    words = itertools.count()
    columns = [_described(engine, plan, spreads, number, column, words) for number, column in enumerate(plan.columns)]
    values = [
        exact_text(engine.render, _with_scale(column), Identifier(f"v{number}"))
        for number, column in enumerate(plan.columns)
    ]
    engine.run(
        "methods/randomization/stage_rows",
        staging=staging,
        source=source,
        columns=columns,
        names=[Identifier(column.name) for column in plan.released],
        line=engine.render.macro("line", values),
        order=released_order(engine, plan.released),
        digests=-(-next(words) * WORD_BITS // _DIGEST_BITS),
        widths={"word": WORD_BITS, "head": HEAD_BITS, "tail": TAIL_BITS},
        **tables,
    )


def _with_scale(column: Column) -> Column:
    """A column whose values are digested with all that tells them apart: numbers that keep a scale of their own too."""
    loose = column.kind is Kind.DECIMAL and column.decimals is None
    return Column(column.name, column.type, Kind.OTHER) if loose else column


def _described(
    engine: Engine,
    plan: RandomizedPlan,
    spreads: Mapping[str, Relation],
    number: int,
    column: Column,
    words: Iterator[int],
) -> dict[str, Any]:
    """A column of the release for the statement: its value and what equal rows are counted by, and its change.

    words: gives the next word of the row's digests that no column has yet.
    """
    value = Markup(Identifier(column.name))
    is_loose = column.kind is Kind.FLOAT or (column.kind is Kind.DECIMAL and column.decimals is None)
    described: dict[str, Any] = {
        "number": number,
        "name": Identifier(column.name),
        "type": Markup(column.type),
        "value": macro("randomize.one_of_equals", value) if is_loose else value,
        "grouped_by": exact(engine, column, value) if is_loose else (value,),
        "form": "kept",
        "by_value": False,
        "spreads": None,
    }
    name = column.name
    if name in plan.numbers:
        return described | _number(plan.numbers[name], words)
    if name in plan.uncertain:
        return described | _uncertain(plan.uncertain[name], spreads[name], words)
    if name in plan.categories:
        return described | _category(engine, number, plan.categories[name], words)
    return described | (_exchange(plan.swapped[name], words) if name in plan.swapped else {})


def _number(one: RandomizedNumber, words: Iterator[int]) -> dict[str, Any]:
    return {
        **in_units(one.column, one.change.unit),
        "slot_bits": one.draws.slot_bits,
        "word": next(words),
        "wide": next(words) if one.draws.is_wide else None,
        "limits": one.limits,
    }


def _uncertain(one: UncertainColumn, spreads: Relation, words: Iterator[int]) -> dict[str, Any]:
    return {
        **in_units(one.column, one.change.unit),
        "slot_bits": SLOT_BITS,
        "word": next(words),
        "wide": next(words),
        "limits": None,
        "spreads": spreads,
        "spread": Identifier(one.spread.name),
    }


def _category(engine: Engine, number: int, one: RandomizedCategory, words: Iterator[int]) -> dict[str, Any]:
    value = macro("relations.column", Identifier("hashed"), Identifier(f"v{number}"))
    return {
        "form": "category",
        "slot_bits": one.draws[0].slot_bits,
        "word": next(words),
        "wide": None,
        "text": text_of(engine.render, value, one.column.kind, one.column.type),
        "places": len(one.change.values),
        "by_value": len(one.draws) > 1,
    }


def _exchange(one: SwappedColumn, words: Iterator[int]) -> dict[str, Any]:
    """The places of rows in a random order, of which neighbours exchange their values, up to a share of the rows."""
    order = list(itertools.islice(words, _SWAP_WORDS))
    return {"form": "swapped", "order": order, "parts": one.share.numerator, "of": one.share.denominator}


def create_spreads(engine: Engine, workspace: Workspace, plan: RandomizedPlan) -> dict[str, Relation]:
    """Choose the spread of each value of each uncertain column, as (value, neighbourhood, spread), in whole units.

    Call it in the transaction that reads the source.
    """
    return {name: _create(engine, workspace, plan, number) for number, name in enumerate(plan.uncertain)}


def _create(engine: Engine, workspace: Workspace, plan: RandomizedPlan, number: int) -> Relation:
    one = list(plan.uncertain.values())[number]
    neighbourhoods, spreads = workspace.table("neighbourhoods", number), workspace.table("spreads", number)
    rule, k = one.change.rule, one.change.k
    engine.run(
        "methods/randomization/create_neighbourhoods",
        neighbourhoods=neighbourhoods,
        source=plan.source,
        column=in_units(one.column, one.change.unit),
        value=Markup(Identifier(one.column.name)),
        least=rule.least_rows(k),
    )
    engine.run(
        "methods/randomization/create_spreads",
        spreads=spreads,
        neighbourhoods=neighbourhoods,
        k=k,
        intercept=rule.intercept,
        slope=rule.slope,
        whole=WHOLE,
    )
    workspace.drop(neighbourhoods)
    engine.analyze(spreads)
    return spreads


def spreads_of(engine: Engine, spreads: Relation) -> list[int]:
    """List the different spreads of a column, in units."""
    return sorted(int(spread) for (spread,) in engine.query("methods/randomization/list_spreads", spreads=spreads))
