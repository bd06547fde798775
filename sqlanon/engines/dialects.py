"""The registry of engines: the program's own by name, and those of installed packages.

A dialect is the part of an engine that is known before anybody connects, and loads no driver. Whoever has to decide by
the engine asks a dialect for the one property that matters; nobody else asks for its name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from sqlanon.engines.urls import scheme_of
from sqlanon.errors import PolicyError
from sqlanon.support.own_parts import load_part

if TYPE_CHECKING:
    from sqlanon.sql import DialectRenderer, Relation


@dataclass(frozen=True)
class Capability:
    """An act that an engine is capable of; where it is not, `lacking` is the reason, as a sentence for people."""

    lacking: str = ""

    def __bool__(self) -> bool:
        return not self.lacking

    def require(self, place: str = "") -> None:
        """Raise PolicyError, with the reason, where the engine lacks the capability."""
        if not self:
            raise PolicyError(place + self.lacking)


CAPABLE = Capability()
LIKE_A_TYPO = 0.65  # as alike as pgsql and postgresql are; mysql and mssql are names of other databases
_OTHER_DATABASES = (
    "To release a table of another database, export it to a Parquet file and draft a policy for that (sqlanon init"
    " table.parquet), or install a package that adds an engine (docs/extending.md)."
)


class Dialect:
    """An engine's SQL, and the properties of its databases; its classes are the values, there are no instances.

    name: of the engine, and of its templates: the macros `dialects/<name>.sql.j2`, the statements `….<name>.sql.j2`.
        A dialect derived from another one has the other's macros and statements where it has none of its own.
    label: the name as people write it.
    templates: the package whose folder `sql_templates` holds them; None for the program's own folder.
    schemes: of URLs that name its databases.
    adapter, publisher, catalog_driver: the modules and classes of its sessions, of what publishes there, and of the
        catalog's connection; each is loaded with the first session.
    is_embedded: the database lives in this process, which alone may hold it: its locks are the process's own, nobody
        else's role or code is in it, and its work tables are temporary.
    escapes_urls: a password in a URL is percent-encoded.
    folds_case: names that differ only in case are one name.
    longest_name: bytes of a name; None for any number.
    temporary: the schema of temporary tables, and its catalog if that has to be named.
    portable: the types of its columns by name, as `types` of all engines call them.
    types: its types for values of other engines' columns, and for what the program makes: `text`, `int64`, `float64`.
    names_files: a source may be a file that its sessions reach, beside the URL.
    writes_directories: a file that it writes is a directory of Parquet files.
    years: the first and the last year that its days and moments may lie in, by their kind; of both the calendars count
        1 BC as year 0, or as year -1.
    has_infinite_days: days and moments may be infinite.
    range_types: its types for ranges of values, by the kind of the values; of those that lack `has_ranges` empty.
    settings: by which values mean the same in sessions that are not the program's; zone_settings: times with a zone.
    spellings: words of templates that it spells otherwise. raw_literals: those with a backslash.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    templates: ClassVar[str | None] = None
    schemes: ClassVar[tuple[str, ...]]
    adapter: ClassVar[str]
    publisher: ClassVar[str]
    catalog_driver: ClassVar[str]
    is_embedded: ClassVar[bool] = False
    escapes_urls: ClassVar[bool] = False
    folds_case: ClassVar[bool] = False
    longest_name: ClassVar[int | None] = None
    temporary: ClassVar[tuple[str, str | None]]
    portable: ClassVar[Mapping[str, str]]
    types: ClassVar[Mapping[str, str]]
    names_files: ClassVar[bool] = False
    writes_directories: ClassVar[bool] = False
    years: ClassVar[Mapping[str, tuple[int, int]]] = {}
    has_infinite_days: ClassVar[bool] = True
    range_types: ClassVar[Mapping[str, str]] = {}
    settings: ClassVar[Mapping[str, str]] = {}
    zone_settings: ClassVar[Mapping[str, str]] = {}
    spellings: ClassVar[Mapping[str, str]] = {}
    raw_literals: ClassVar[bool] = False

    # --- capabilities, with the reason where an engine lacks one

    lacks_recodings: ClassVar[Mapping[str, Capability]] = {}
    """The kinds of recodings (`Recodes` of policies) that runs can't come to there, with the reason of each."""
    has_snapshots: ClassVar[Capability] = CAPABLE
    """The statements of a transaction see the tables as of one moment."""
    keeps_order: ClassVar[Capability] = CAPABLE
    """Its tables have an order in which rows are stored, which can be asked for."""
    has_locks: ClassVar[Capability] = CAPABLE
    """Locks of its sessions keep all others out, whatever process they are of."""
    tells_other_types_apart: ClassVar[Capability] = CAPABLE
    """Values of types of kind OTHER that differ have texts that differ."""
    makes_pseudonyms: ClassVar[Capability] = CAPABLE
    """Secret keys can be used in its statements, so that nobody else sees them."""
    counts_persons: ClassVar[Capability] = CAPABLE
    """Models count the persons of an identifier in its tables."""
    relaxes_partitions: ClassVar[Capability] = CAPABLE
    """Parts of a partition can be divided further among equal rows."""
    settles_models: ClassVar[Capability] = CAPABLE
    """The program can solve what measures of classes leave open, with the contents of these classes."""
    keeps_catalog: ClassVar[Capability] = CAPABLE
    """The catalog can be in its databases."""
    reads_files: ClassVar[Capability] = CAPABLE
    """Its sessions read and write files of this machine."""
    copies_rows: ClassVar[Capability] = CAPABLE
    """Rows are carried over between its databases and others."""
    has_transactions: ClassVar[Capability] = CAPABLE
    """Changes of several tables take effect together."""
    keeps_tables_private: ClassVar[Capability] = CAPABLE
    """A table can be made that its owner alone may read."""
    has_ranges: ClassVar[Capability] = CAPABLE
    """There are types for ranges of values."""
    counts_population: ClassVar[Capability] = CAPABLE
    """Classes can be held against the rows of a population."""
    has_procedures: ClassVar[Capability] = CAPABLE
    """Jobs may be procedures that the database runs by itself."""
    has_dbt_projects: ClassVar[Capability] = CAPABLE
    """A recoding can be written as a dbt project."""
    reads_labels: ClassVar[Capability] = CAPABLE
    """A view can have the ends of a release's labels as numbers and dates."""
    codes_columns: ClassVar[Capability] = CAPABLE
    """Subsets of a table's columns can be counted, over temporary tables of codes."""
    knows_words: ClassVar[Capability] = CAPABLE
    """Values can be held against lists of words, by which names of people are known."""
    answers_questions: ClassVar[Capability] = CAPABLE
    """Questions to its tables can be audited, so that answers together give away nobody's value."""
    has_roles: ClassVar[Capability] = CAPABLE
    """Roles and grants decide on the acts that a run is free to do."""
    has_ask_functions: ClassVar[Capability] = CAPABLE
    """Roles without a right on a table can ask of it, by a function that starts the program on the server."""

    # --- the quicker of two ways that come to the same

    prefers_case: ClassVar[bool] = False  # a CASE over many rules is quicker than joins with them
    numbers_cells: ClassVar[bool] = False  # rows repeated with numbers of cells are counted quicker than GROUPING SETS
    sorts_narrow_rows: ClassVar[bool] = False  # sorting rows of enumerations, then copying them, pays
    places_work_tables: ClassVar[bool] = False  # the session finds the place of each, whose name says nothing of it
    replaces_work_tables: ClassVar[bool] = False  # creating a work table replaces one of the same name
    asked_together: ClassVar[int] = 1  # questions of one statement; most where it takes its time whatever it asks
    weighs_scans: ClassVar[bool] = False  # asking node tables first whether a scan of rows is needed pays
    keeps_temporary_tables: ClassVar[bool] = False  # a session for reading only may make them
    stacked_tuples: ClassVar[int] = 20_000  # that one statement groups for several generalizations: more would spill
    runs_code_of_others: ClassVar[bool] = False  # who reads a relation may run code of its owner
    reads_own_texts: ClassVar[bool] = False  # each of its types takes the text that it writes, and gives the value back
    has_formats: ClassVar[bool] = (
        False  # texts of values depend on settings, which `work/publish/set_plain_formats` fixes
    )

    @classmethod
    def fold(cls, name: str) -> str:
        """Spell a name so that names of one thing are equal."""
        return name.casefold() if cls.folds_case else name

    @classmethod
    def unquoted(cls, word: str) -> str:
        """Spell a name that is written without quotes as the database stores it."""
        return str(word)

    @classmethod
    def stored(cls, relation: Relation) -> Relation:
        """Spell a relation that is to be made as the database stores it: its parts without quotes folded."""
        from sqlanon.sql import Relation, Unquoted  # here, as for an engine's name no templates need be loaded

        def spell(part: str | None) -> str | None:
            return cls.unquoted(part) if isinstance(part, Unquoted) else part

        return Relation(spell(relation.name) or "", spell(relation.schema), spell(relation.catalog))

    @classmethod
    def renderer(cls) -> DialectRenderer:
        """The renderer of its statements."""
        from sqlanon.sql import Spelling, renderer  # here, as for an engine's name no templates need be loaded

        line = [one for one in cls.__mro__ if issubclass(one, Dialect) and one is not Dialect]
        packages = dict.fromkeys(one.templates for one in line if one.templates is not None)
        names = dict.fromkeys(one.name for one in line)
        return renderer(
            *names, packages=tuple(packages), spelling=Spelling(tuple(cls.spellings.items()), cls.raw_literals)
        )

    @classmethod
    def text_for_others(cls, text: str) -> str:
        """Write a statement as a session that is not the program's takes it."""
        return text

    @classmethod
    def carries_out(cls, recodes: str) -> Capability:
        """Tell whether runs can come to a kind of recodings there (`Recodes` of policies)."""
        return cls.lacks_recodings.get(recodes, CAPABLE)

    @classmethod
    def writes_here(cls, url: str) -> Capability:
        """Tell whether the files that sessions at a URL write are of this machine."""
        del url
        return CAPABLE

    @classmethod
    def database_file(cls, url: str) -> Path | None:
        """The file that a URL names; None where databases are no files, or it names one in memory."""
        del url
        return None

    @classmethod
    def database_name(cls, url: str) -> str | None:
        """The database on a server that a URL names; None where it names none."""
        del url
        return None

    @classmethod
    def variables(cls) -> Mapping[str, str]:
        """The variables of the environment, but for passwords, that sessions take what a URL lacks from."""
        return {}

    password_variable: ClassVar[str | None] = None
    """The variable that sessions take a password from."""


OWN: Mapping[str, str] = {
    "duckdb": "sqlanon.engines.duckdb.dialect:DuckDB",
    "postgres": "sqlanon.engines.postgres.dialect:PostgreSQL",
    "spark": "sqlanon.engines.spark.dialect:SparkSQL",
}
"""The dialects of the program's own engines."""


def dialect_named(name: str) -> type[Dialect]:
    """Find a dialect by its name, the program's own or that of an installed package.

    Raises PolicyError where there is none of this name, or it can't be loaded.
    """
    if name in OWN:
        own: type[Dialect] = load_part(OWN[name])
        return own
    from sqlanon.support.plugins import ENGINES, load_plugin  # here, as the program's own engines need no packages

    added = load_plugin(ENGINES, name, Dialect)
    if added is None:
        raise PolicyError(f"There is no engine '{name}'; is the package that adds it installed?")
    return added


def dialects() -> Iterator[type[Dialect]]:
    """All dialects, the program's own first: a package is loaded when none of them will do."""
    yield from map(dialect_named, OWN)
    from sqlanon.support.plugins import ENGINES, find_plugins

    yield from (dialect_named(name) for name in find_plugins(ENGINES) if name not in OWN)


def find_dialect(url: str) -> type[Dialect] | None:
    """Find the dialect of the database that a URL names; None where there is no engine for it."""
    scheme = scheme_of(url)
    return None if scheme is None else next((dialect for dialect in dialects() if scheme in dialect.schemes), None)


def dialect_of_url(url: str) -> type[Dialect]:
    """Tell the dialect of the database that a URL names; raises PolicyError where there is no engine for it."""
    scheme = scheme_of(url)
    if scheme is None:
        raise PolicyError("The database must be given as a URL, such as duckdb:///file.duckdb or postgresql://host/db.")
    known = find_dialect(url)
    if known is not None:
        return known
    schemes = [scheme for dialect in dialects() for scheme in dialect.schemes]
    near = difflib.get_close_matches(scheme.partition("+")[0], schemes, n=1, cutoff=LIKE_A_TYPO)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(schemes)}. {_OTHER_DATABASES}"
    raise PolicyError(f"There is no engine for '{scheme}://' URLs; {hint}")


def is_embedded(url: str) -> bool:
    """Tell whether a URL names a database that would live in this process; False where there is no engine for it."""
    dialect = find_dialect(url)
    return dialect is not None and dialect.is_embedded


def require_catalog(url: str) -> None:
    """Raise PolicyError, with the reason, where a catalog can't be in the database that a URL names."""
    dialect = find_dialect(url)
    if dialect is not None:
        dialect.keeps_catalog.require("catalog: ")
