"""Association rules from quasi-identifiers to sensitive values, mined inside the database.

Support and confidence are those of R. Agrawal, R. Srikant, Fast Algorithms for Mining Association Rules, VLDB 1994;
what rules tell of people: C. C. Aggarwal, Data Mining, 2015, section 20.4. Rows are collapsed to distinct tuples of
codes once; each subset of columns is then one statement over these. As no rule has more support than its parts, codes
are left out first that, alone on the left side, have no rule of the least support. Where any support will do, and the
confidence is above a half, rows are grouped by left sides alone, as each has one rule at most: see `voting`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from markupsafe import Markup

from sqlanon.encoding.fields import WORD_BITS, Field
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import PolicyError
from sqlanon.inquiries.risk.coded_columns import CodedColumns, code_columns
from sqlanon.inquiries.risk.measured_table import RiskSource
from sqlanon.inquiries.risk.subsets import require_few
from sqlanon.results.associations import AssociationRule, Associations
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.support.quantities import quantity
from sqlanon.support.suggest import quoted
from sqlanon.values.expressions import text_of
from sqlanon.work.workspace import TemporaryWorkspace, Workspace

MOST = 2**31 - 1  # of any count that is asked for


_HALF = 0.5  # of the rows of a left side, above which one value has them


DIGITS = 6  # after the point, of a confidence: so products of counts stay whole numbers of 64 bits


@dataclass(frozen=True)
class AssociationOptions:
    """The rules that are wanted.

    k: the members below which a left side singles people out. support: the least members with both sides.
    confidence: the least of a rule; bound: that above which one gives people away, the same if None.
    most: the columns of the largest left sides. limit: how many rules are listed.
    """

    k: int
    support: int = 1
    confidence: float = 0.8
    bound: float | None = None
    most: int = 3
    limit: int = 100

    def __post_init__(self) -> None:
        """Raise PolicyError for numbers that say nothing."""
        for name in ("k", "support", "most", "limit"):
            if not 1 <= getattr(self, name) <= MOST:
                raise PolicyError(f"{name} must be from 1 to {MOST:,}.")
        for name, value in (("confidence", self.confidence), ("bound", self.greatest)):
            if not 0 < value <= 1 or round(value, DIGITS) != value:
                raise PolicyError(f"{name} must be above 0 and at most 1, with up to {DIGITS} digits after the point.")

    @property
    def greatest(self) -> float:
        """The confidence above which a rule gives people away."""
        return self.confidence if self.bound is None else self.bound


@dataclass(frozen=True)
class _MinedRule:
    """A rule before its texts are looked up: its columns, a row that has its values, and its counts."""

    left: tuple[Field, ...]
    right: Field
    number: int
    support: int
    left_support: int

    @property
    def order(self) -> tuple[float, int, int]:
        return (-self.support / self.left_support, -self.support, len(self.left))


def mine_associations(source: RiskSource, sensitive: Sequence[Column], options: AssociationOptions) -> Associations:
    """Mine the rules from the quasi-identifiers of a table to each of some sensitive columns; NULL is a value.

    Distinct persons are counted where the source has a subject, else rows. The session makes temporary tables.

    Raises PolicyError: too many subsets, a subject that is NULL, or an engine that does not code columns.
    """
    engine, quasi = source.engine, source.quasi_identifiers
    engine.traits.codes_columns.require()
    require_few(len(quasi), options.most)
    if twice := sorted({column.name for column in sensitive} & {column.name for column in quasi}):
        raise PolicyError(f"A column is on one side of rules alone; {', '.join(quoted(twice))} is named for both.")
    subject = () if source.subject is None else (source.subject,)
    columns = [*quasi, *sensitive]
    workspace = TemporaryWorkspace(engine)
    with engine.transaction():
        coded = code_columns(
            engine, workspace, source.table, [*columns, *subject], sensitive=sensitive, keeps_dictionaries=True
        )
        mining = _Mining(engine, workspace, coded, options, coded.fields[len(columns)] if subject else None)
        mining.require_persons()
        for right in coded.fields[len(quasi) : len(columns)]:
            mining.mine(coded.fields[: len(quasi)], right)
        rules = mining.rules(source.table)
        workspace.drop(coded.rows, coded.tuples, *coded.dictionaries)
    return Associations(
        unit="persons" if subject else "rows",
        k=options.k,
        support=options.support,
        confidence=options.confidence,
        bound=options.greatest,
        most=options.most,
        total=mining.total,
        singling_out=mining.singling_out,
        giving_away=mining.giving_away,
        rules=rules,
    )


class _Mining:
    """The subsets of columns as they are walked, and what was found in them."""

    def __init__(
        self,
        engine: Engine,
        workspace: Workspace,
        coded: CodedColumns,
        options: AssociationOptions,
        person: Field | None,
    ) -> None:
        self.engine, self.workspace, self.coded, self.options, self.person = engine, workspace, coded, options, person
        self.total = self.singling_out = self.giving_away = 0
        self._listed: list[_MinedRule] = []
        self._rare: set[frozenset[int]] = set()  # columns whose values never have the support together

    def require_persons(self) -> None:
        """Raise PolicyError where it is not known whose some rows are."""
        if self.person is None:
            return
        (key,) = self.coded.keys([self.person], "t")
        (rows,) = self.engine.query_one("inquiries/risk/count_unknown", tuples=self.coded.tuples, key=key)
        if rows:
            name = self.person.attribute.name
            raise PolicyError(
                f"'{name}' is NULL in {quantity(rows, 'row')}, whose persons are not known; leave them out of the"
                " source."
            )

    def mine(self, quasi: Sequence[Field], right: Field) -> None:
        """Find the rules to one column, from small left sides to large ones."""
        if self._has_one_rule_a_left_side:
            self._mine_majorities(quasi, right)
            return
        self._rare.clear()
        with self.engine.grouping_by_hash():
            tuples = self._frequent(quasi, right) if self.options.support > 1 else self.coded.tuples
            for left in self._left_sides(quasi):
                if not self._has_rare_part(left):
                    self._mine_subset(tuples, left, right)
        if tuples is not self.coded.tuples:
            self.workspace.drop(tuples)

    def _left_sides(self, quasi: Sequence[Field]) -> Iterator[tuple[Field, ...]]:
        for size in range(1, min(self.options.most, len(quasi)) + 1):
            yield from itertools.combinations(quasi, size)

    @property
    def _has_one_rule_a_left_side(self) -> bool:
        """Tell whether rules are of more than half of the rows of a left side, and of any number of rows."""
        return self.person is None and self.options.support == 1 and self.options.confidence > _HALF

    def _mine_majorities(self, quasi: Sequence[Field], right: Field) -> None:
        """Find the rules to one column by what most rows of each left side have; see `voting`."""
        voted = vote(self.engine, self.workspace, self.coded, right)
        (right_key,) = self.coded.keys([right], "t")
        with self.engine.grouping_by_hash():
            for left in self._left_sides(quasi):
                rows = self.engine.query(
                    "inquiries/risk/mine_majorities",
                    voted=voted.relation,
                    shifts=voted.shifts,
                    ones=voted.ones,
                    left_keys=self.coded.keys(left, "t"),
                    right_key=right_key,
                    **self._thresholds,
                )
                if rows:
                    self._keep(left, right, rows)
        self.workspace.drop(voted.relation)

    def _has_rare_part(self, left: tuple[Field, ...]) -> bool:
        """Tell whether no values of a smaller left side have the support, so that none of this one have."""
        numbers = [field.number for field in left]
        return any(
            frozenset(part) in self._rare
            for size in range(1, len(left))
            for part in itertools.combinations(numbers, size)
        )

    def _frequent(self, quasi: Sequence[Field], right: Field) -> Relation:
        """Make the tuples without the codes of left sides that lack the least support, in a work table."""
        columns: list[dict[str, Any]] = []
        for field in quasi:
            (key,) = self.coded.keys([field], "t")
            frequent = self.workspace.table("frequent", field.number)
            self.engine.run(
                "inquiries/risk/create_frequent",
                frequent=frequent,
                tuples=self.coded.tuples,
                key=key,
                right_keys=self.coded.keys([right], "t"),
                members=self._members,
                support=self.options.support,
            )
            alias = Identifier(f"f{field.number}")
            columns.append({"field": field, "frequent": frequent, "alias": alias, "key": key, "mask": field.mask})
        always = [right] if self.person is None else [right, self.person]
        words = [
            {
                "name": name,
                "always": sum(field.mask for field in always if field.word == word),
                "columns": [one for one in columns if one["field"].word == word],
            }
            for word, name in enumerate(self.coded.word_columns)
        ]
        kept = self.workspace.table("kept", right.number)
        bits = [one | {"bit": _known([one["field"]])} for one in columns]
        self.engine.run("inquiries/risk/keep_frequent", kept=kept, tuples=self.coded.tuples, words=words, columns=bits)
        self.workspace.drop(*(one["frequent"] for one in columns))
        self.engine.analyze(kept)
        return kept

    def _mine_subset(self, tuples: Relation, left: tuple[Field, ...], right: Field) -> None:
        rows = self.engine.query(
            "inquiries/risk/mine_rules",
            tuples=tuples,
            known=None if tuples is self.coded.tuples else _known(left),
            left_keys=self.coded.keys(left, "t"),
            right_keys=self.coded.keys([right], "t"),
            members=self._members,
            adds_up=self.person is None,
            support=self.options.support,
            **self._thresholds,
        )
        *_, rules, _singling_out, _giving_away, groups = rows[0]
        if not groups:
            self._rare.add(frozenset(field.number for field in left))
        if rules:
            self._keep(left, right, rows)

    @property
    def _thresholds(self) -> dict[str, Any]:
        asked = self.options
        confidence, bound = (Fraction(str(one)) for one in (asked.confidence, asked.greatest))
        return {"confidence": confidence, "bound": bound, "k": asked.k, "limit": asked.limit}

    def _keep(self, left: tuple[Field, ...], right: Field, rows: Sequence[tuple[Any, ...]]) -> None:
        """Count the rules from one left side's columns, and keep the surest."""
        rules, singling_out, giving_away = (int(count) for count in rows[0][3:6])
        self.total += rules
        self.singling_out += singling_out
        self.giving_away += giving_away
        self._listed += [_MinedRule(left, right, *(int(value) for value in row[:3])) for row in rows]
        self._listed = sorted(self._listed, key=lambda one: one.order)[: self.options.limit]

    def rules(self, table: Relation) -> tuple[AssociationRule, ...]:
        """The first of all rules that were found, with the texts of their values, looked up in the table."""
        numbers = sorted({one.number for one in self._listed})
        if not numbers:
            return ()
        words = self.coded.word_columns
        selected = self.engine.query(
            "inquiries/risk/select_words", tuples=self.coded.tuples, words=words, numbers=numbers
        )
        tuples = {int(number): [int(word) for word in row] for number, *row in selected}
        used = {one.number: one for rule in self._listed for one in (*rule.left, rule.right)}
        texts = {number: self._texts(table, field, tuples) for number, field in used.items()}
        return tuple(self._rule(one, tuples[one.number], texts) for one in self._listed)

    def _texts(self, table: Relation, field: Field, tuples: Mapping[int, list[int]]) -> Mapping[int, str | None]:
        """The texts of a column's codes in some tuples; that of NULL, which has the code 0, is None."""
        wanted = sorted({_code(field, words) for words in tuples.values()} - {0})
        texts: dict[int, str | None] = {0: None}
        if wanted:
            named = self.engine.query(
                "inquiries/risk/name_codes",
                table=table,
                codes=field.coding.dictionary,
                keys=self.coded.keys_of[field.number],
                text=_text(self.engine, field.attribute.column),
                wanted=wanted,
            )
            texts |= {int(code): str(text) for code, text in named}
        return texts

    def _rule(
        self, mined: _MinedRule, words: Sequence[int], texts: Mapping[int, Mapping[int, str | None]]
    ) -> AssociationRule:
        def side(*fields: Field) -> dict[str, str | None]:
            return {one.attribute.name: texts[one.number][_code(one, words)] for one in fields}

        confidence, bound = Fraction(mined.support, mined.left_support), Fraction(str(self.options.greatest))
        singles_out = mined.left_support < self.options.k
        return AssociationRule(
            left=side(*mined.left),
            right=side(mined.right),
            support=mined.support,
            left_support=mined.left_support,
            confidence=float(confidence),
            singles_out=singles_out,
            gives_away=not singles_out and confidence > bound,
        )

    @property
    def _members(self) -> Expression:
        """Count the members of a group of tuples: its rows, or its distinct persons."""
        if self.person is None:
            return macro("risk.rows_of_tuples")
        return macro("risk.distinct", *self.coded.keys([self.person], "t"))


def _known(fields: Sequence[Field]) -> int:
    """The bits of columns in a tuple that say which codes are there."""
    return sum(1 << field.number for field in fields)


def _code(field: Field, words: Sequence[int]) -> int:
    """The code of a column in a tuple."""
    return (words[field.word] & field.mask) >> field.shift


def _text(engine: Engine, column: Column) -> Expression:
    return text_of(engine.render, Markup(Identifier(column.name)), column.kind, column.type)


@dataclass(frozen=True)
class VotedTuples:
    """Distinct tuples with the votes on the code of a column: work table `(number, p0, …, w, votes)`.

    right: the column. bits: on how many of the code's bits there are votes. width: the bits of a count of votes.
    """

    relation: Relation
    right: Field
    bits: int
    width: int

    @property
    def shifts(self) -> list[int]:
        """The places at which the votes on each bit begin."""
        return [self.width * bit for bit in range(self.bits)]

    @property
    def ones(self) -> int:
        """The mask of the votes on one bit."""
        return (1 << self.width) - 1


def vote(engine: Engine, workspace: Workspace, coded: CodedColumns, right: Field) -> VotedTuples:
    """Make the tuples with their votes on as many bits of a column's code as one number has room for."""
    width = max(1, coded.row_count.bit_length())
    bits = min(WORD_BITS // width, right.coding.bits)
    voted = VotedTuples(workspace.table("voted", right.number), right, bits, width)
    engine.run(
        "inquiries/risk/create_votes",
        voted=voted.relation,
        tuples=coded.tuples,
        words=coded.word_columns,
        word=right.column,
        bits=[right.shift + bit for bit in range(bits)],
        width=width,
    )
    engine.analyze(voted.relation)
    return voted
