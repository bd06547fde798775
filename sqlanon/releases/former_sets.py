"""The sets of sensitive values that persons' classes showed in the releases before, as far as a search may know them.

The account knows the set of each person as a keyed digest, and the release that is there shows sets of values: a person
had the set whose digest is the person's. The transaction that publishes holds the digests of the new release against
those of the account again, and decides (`runs.accounts.sets`).
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.catalog import Catalog
from sqlanon.catalog.accounts import ReleaseAccount
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.engines.star import CLASS_NUMBER
from sqlanon.releases.earlier_groups import text_of_witness
from sqlanon.sql import Identifier, Relation
from sqlanon.values.digest import exact_text
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class FormerSets:
    """The coded rows of a run with the sets that their persons had, and the values of these sets.

    rows: a work table `(p0, p1, …, value, raw, person, held)`: of every coded row the text of its sensitive value, the
        value, the text of its person, and the digest of the person's set; NULL for whoever was in no release.
    sets: a work table `(held, value, raw)`, a row for each value of each set that the release before shows.
    """

    rows: Relation
    sets: Relation

    @classmethod
    def create(
        cls,
        engine: Engine,
        workspace: Workspace,
        coded: CodedTable,
        person: str,
        attribute: str,
        account: tuple[Catalog, ReleaseAccount],
        release: Relation | None,
        least: int,
    ) -> FormerSets:
        """Look up the person of every row in the account, and read the sets of the release before, if there is one.

        person: the column that tells persons apart. attribute: the sensitive one, which that release shows under its
        own name. least: the number of values below which a set is none.
        """
        catalog, entered = account
        rows, sets = workspace.table("former_rows"), workspace.table("former_sets")
        (field,) = [one for one in coded.kept if one.attribute.name == attribute]
        known = {"account": entered.id, "accounts": catalog.account_tables["accounts"]}
        raw, type_ = Identifier(f"v{coded.kept.index(field)}"), Markup(field.attribute.column.type)
        (witnessed,) = [one for one in engine.columns(coded.witness) if one.name == raw.name]
        engine.run(
            "releases/former/create_rows",
            rows=rows,
            witness=coded.witness,
            words=coded.word_columns,
            value=exact_text(engine.render, witnessed, raw),
            raw=raw,
            type=type_,
            person=text_of_witness(engine, coded, person),
            persons=catalog.account_tables["account_persons"],
            **known,
        )
        if release is None:
            engine.run("releases/former/create_no_sets", sets=sets, rows=rows)
        else:
            (shown,) = [one for one in engine.columns(release) if one.name == attribute]
            name = Identifier(attribute)
            engine.run(
                "releases/former/create_sets",
                sets=sets,
                release=release,
                number=Identifier(CLASS_NUMBER),
                value=exact_text(engine.render, shown, name),
                raw=name,
                type=type_,
                least=least,
                **known,
            )
        engine.analyze(rows, sets)
        return cls(rows, sets)
