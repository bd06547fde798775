"""Three sites with a part of a table each, and a database with all of it."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlanon.results.run_result import RunResult
from tests.methods.generalization.federation.support import NAMES, Federation, rows_of_sites
from tests.run_support import Database, Row, anonymize, open_database

COLUMNS = {"age": "integer", "sex": "varchar(1)", "city": "varchar(9)", "disease": "varchar(20)", "id": "integer"}
AGES = {str(age): [f"{age // 5 * 5}-{age // 5 * 5 + 4}", f"{age // 10 * 10}s"] for age in range(20, 50)}
CITIES = {"Ulm": ["south"], "Linz": ["south"], "Kiel": ["north"], "Bonn": ["north"], "Riga": ["north"]}
CANARY = "canary-7f3a91"


def attributes() -> dict[str, Any]:
    return {
        "age": {"role": "quasi-identifier", "hierarchy": {"mapping": AGES}},
        "sex": {"role": "quasi-identifier", "hierarchy": {"mapping": {"F": ["any"], "M": ["any"]}}},
        "city": {"role": "quasi-identifier", "hierarchy": {"mapping": CITIES}},
        "disease": {"role": "sensitive"},
        "id": {"role": "insensitive"},
    }


def random_rows(seed: int, number: int) -> list[Row]:
    """Rows of which ages and cities come in clumps; some sexes and cities are unknown."""
    draw = random.Random(seed)
    return [
        (
            draw.choice([21, 21, 22, 23, 37, 38, draw.randrange(20, 50)]),
            draw.choice(["F", "M", "M", None]),
            draw.choice(["Ulm", "Ulm", "Linz", "Kiel", "Bonn", "Riga", None]),
            f"{CANARY}-{draw.randrange(5)}",
            number,
        )
        for number in range(number)
    ]


class Sites:
    """Three sites: two of DuckDB, one of PostgreSQL; and a database of DuckDB with all rows."""

    def __init__(
        self,
        directory: Path,
        urls: Mapping[str, str],
        rows: list[Row],
        few: int | None = None,
        plan: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """few: how many rows the last site has, where the first has the others that it would have had.

        plan: what the plan has beside its sites.
        """
        self._directory, self.plan = directory, plan or {}
        self.urls = urls
        self.rows = rows_of_sites(rows)
        if few is not None:
            self.rows[NAMES[0]] = sorted(self.rows[NAMES[0]] + self.rows[NAMES[-1]][few:], key=lambda row: row[-1])
            del self.rows[NAMES[-1]][few:]
        for name, own in {**self.rows, "union": rows}.items():
            with self.opened(name) as database:
                database.create(COLUMNS, own, "persons")
        self.more = {"privacy": [{"model": "k-anonymity", "k": 3}], "algorithm": {"name": "optimal"}, **more}

    @cached_property
    def federation(self) -> Federation:
        """The sites as processes find each other."""
        return Federation(self._directory, more=self.plan)

    def opened(self, name: str) -> contextlib.AbstractContextManager[Database]:
        """A site's database; it must be closed while the site's process works in it."""
        return open_database(self.urls[name])

    def policies(self) -> dict[str, dict[str, Any]]:
        """The policies of the sites, which differ in their databases alone."""
        return {name: self.policy(name) for name in NAMES}

    def policy(self, name: str, **changes: Any) -> dict[str, Any]:
        place = {"source": {"url": self.urls[name], "table": "persons"}, "release": {"table": "released"}}
        return {**place, "attributes": attributes(), **self.more, **changes}

    def released(self, name: str) -> list[Row]:
        with self.opened(name) as database:
            assert database.leftovers() == []
            return sorted(database.sql("SELECT * FROM released"), key=lambda row: row[-1])

    def release_union(self, **changes: Any) -> RunResult:
        """Release the rows of all sites from one database."""
        more = {"release": {"table": "released"}, **self.more, **changes}
        with self.opened("union") as database:
            return anonymize(database.policy("persons", attributes(), **more))

    def publish_old(self) -> None:
        """Give every site a release that is to stay where nothing is published."""
        for name in NAMES:
            with self.opened(name) as database:
                database.sql("CREATE TABLE released AS SELECT 'old' AS release, 1 AS id")

    def require_old(self) -> None:
        for name in NAMES:
            with self.opened(name) as database:
                assert database.sql("SELECT * FROM released") == [("old", 1)], name
