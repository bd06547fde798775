"""Records of a run in the catalog, as frozen values."""

from __future__ import annotations

import functools
import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from sqlanon.sql import Relation
from sqlanon.support.process import host
from sqlanon.support.template_files import headline

if TYPE_CHECKING:
    from sqlanon.results.method_result import MethodResult
    from sqlanon.results.records import AnyResult
    from sqlanon.results.run_result import RunResult


class Status(StrEnum):
    """The stage that a run has reached, or its end."""

    RUNNING = "running"
    PUBLISHED = "published"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REFUSED = "refused"  # the protection can't be met, or verification failed
    DRY = "dry"
    JOINED = "joined"  # rows joined the groups of a stream, and nothing was published


NO_RELEASE = "-"  # the release of a run that explores, and makes none
_FILES_OF = "files of "
RECODING = "rules-1:"  # what digests of recoding functions begin with; those of older releases are of less


def same_recoding(one: str | None, other: str | None) -> bool | None:
    """Tell whether the digests of two recodings say that they are the same; None where they don't say."""
    if one is None or other is None or not one.startswith(RECODING) or not other.startswith(RECODING):
        return None
    return one == other


class ReleaseKind(StrEnum):
    """The kind of units that a release consists of."""

    REGIONS = "regions"  # every row shows the region of its class; the kind of the rules is with the rules
    COUNTS = "counts"  # noisy counts of cells
    NOISE = "noise"  # rows whose values were changed at random
    ITEMS = "items"  # rows without the items by which rules could be mined
    ROWS = "rows"  # rows as they are, without identifiers


@dataclass(frozen=True)
class RunStart:
    """The facts of a run before its beginning; `policy` is its canonical text and holds no secret.

    `seed` is what its samples depend on; None where it draws none.
    """

    source: str
    release: str
    policy: str
    algorithm: str
    engine_version: str
    source_rows: int | None = None
    seed: int | None = None
    job: str | None = None


@dataclass(frozen=True)
class Run:
    """A run as recorded; times are in UTC. recorded: its result as the version that ran it wrote it."""

    id: str
    status: Status
    engine: str
    engine_version: str
    database: str
    process: str
    source: str
    release: str
    source_rows: int | None
    started: datetime
    finished: datetime | None
    policy: str
    policy_digest: str
    sqlanon_version: str
    algorithm: str
    seed: int | None
    recorded: str | None
    error_class: str | None
    error_message: str | None
    job: str | None = None

    @functools.cached_property
    def any_result(self) -> AnyResult | None:
        """The result, of classes or of a method; None where there is none.

        Raises SqlanonError where the record is damaged, or of a later version.
        """
        from sqlanon.results.records import read_record  # lists of runs do without

        return None if self.recorded is None else read_record(self.recorded)

    @property
    def result(self) -> RunResult | None:
        """The result; None where there is none, or one of a method (see `method_result`). Raises as `any_result`."""
        from sqlanon.results.run_result import RunResult  # as above

        return self.any_result if isinstance(self.any_result, RunResult) else None

    @property
    def method_result(self) -> MethodResult | None:
        """The result of a run whose release shows no classes, typed by its method; None of any other.

        Raises as `any_result`.
        """
        from sqlanon.results.method_result import MethodResult  # as above

        return self.any_result if isinstance(self.any_result, MethodResult) else None


@dataclass(frozen=True)
class Step:
    """One statement of a run: its template's name, its text without cell values, its seconds, its rows."""

    number: int
    phase: str
    name: str
    statement: str
    seconds: float
    row_count: int | None = None

    def comment(self, cost: str = "") -> str:
        """Write the comment above the statement: phase, template, cost, and the first sentence of its head."""
        does = headline(self.name)
        return f"-- {self.phase}: {self.name}{cost}" + ("" if does is None else f"\n-- {does}.")


@dataclass(frozen=True)
class ReleaseRecord:
    """A release that a run published; `relation` is a table as SQL writes it, or a file.

    `recoding` is the recoding function as JSON, or says where its rule table is; `digest` is the digest of the rules:
    see `same_recoding`.
    `content_digest` is that of the released rows or file; None where the run took none.
    """

    relation: str
    kind: ReleaseKind
    row_count: int
    suppressed: int
    classes: int
    recoding: str
    digest: str
    content_digest: str | None = None


@dataclass(frozen=True)
class Released:
    """The release of a source by a run.

    rules: the run that found the rules, itself or another; digest: of these rules, see `same_recoding`.
    republish: what the run's policy says of releases by other rules.
    is_private: whether it shows noisy counts, which have no classes to intersect.
    schema: of the catalog that recorded it, if that is another one.
    """

    run: str
    rules: str
    digest: str
    republish: str | None
    is_private: bool = False
    schema: str | None = None

    @property
    def shown(self) -> str:
        """The run's id, with the catalog that it is in where that is another one."""
        return self.run if self.schema is None else f"{self.run} (in the catalog of schema {self.schema})"

    def is_by(self, rules: str | None, digest: str | None) -> bool:
        """Tell whether these are the rules that the run `rules` found, or rules of this digest."""
        return self.rules == rules or bool(same_recoding(self.digest, digest))


class RulesKind(StrEnum):
    """The kind of the rules of a release."""

    TREE = "tree"  # boxes of the domain
    LEVELS = "levels"  # one hierarchy level per attribute, or several such passes
    CUTS = "cuts"  # for every attribute a cut through its hierarchy


@dataclass(frozen=True)
class RulesRecord:
    """The recoding function of a run: `content` is JSON, the tables are in the catalog's schema.

    `table_prefix` is what the tables' names begin with; None where there are none.
    """

    kind: RulesKind
    content: str
    leaves: int
    depth: int = 0
    table_prefix: str | None = None

    @property
    def has_boxes(self) -> bool:
        """Tell whether rows show the boxes of a tree, which may be wider than the values of their class."""
        return self.kind is RulesKind.TREE


@dataclass(frozen=True)
class HierarchyRecord:
    """A generalization hierarchy: the attribute it was built for, the digest and JSON of its specification."""

    name: str
    digest: str
    specification: str
    height: int
    leaves: int
    relation: str | None = None


JOB_NAME = re.compile("[a-z][a-z0-9_]{0,39}")
JOB_NAME_PROBLEM = "A job's name is of at most 40 lower-case letters, digits and _, and begins with a letter."


@dataclass(frozen=True)
class Job:
    """A recoding that is frozen under a name, to be run again and again; freezing it anew makes another version.

    run: whose rules are applied; source, release: as SQL writes them, or files.
    on_violation: what becomes of classes that violate a model: error, or suppress.
    budget: the largest share of rows that may be suppressed; None with error.
    most_rows: of the source, that the procedure is made for; routine: its name as SQL writes it; inspection, recoding:
        the SELECTs by which it looks at the source, and of what all rows show. None where `sqlanon job run` does the
        work itself.
    assigning, showing: the recoding in two parts, the rule or the address of every row, and what rules or classes show;
        None where it has none.
    schedule, scheduler: when it runs, in cron's five fields, and what starts it; None where nothing does.
    """

    name: str
    version: int
    run: str
    source: str
    release: str
    on_violation: str
    budget: float | None
    created: datetime
    most_rows: int | None = None
    routine: str | None = None
    inspection: str | None = None
    recoding: str | None = None
    assigning: str | None = None
    showing: str | None = None
    schedule: str | None = None
    scheduler: str | None = None


def files_of_host() -> str:
    """Name the files of this machine, as the ledger does."""
    return _FILES_OF + host()


@dataclass(frozen=True)
class LedgerEntry:
    """A table that a run makes, or (`is_prefix`) all tables of that schema whose names begin with this one.

    A directory of files is an entry too: its path stands for the table, the files of its machine for the database.
    """

    run: str
    relation: Relation
    database: str
    is_prefix: bool = False

    @classmethod
    def of_directory(cls, run: str, path: Path) -> LedgerEntry:
        """The entry of a directory of this machine."""
        return cls(run, Relation(str(path)), files_of_host())

    @property
    def is_directory(self) -> bool:
        """Tell whether it is a directory, of whatever machine."""
        return self.database.startswith(_FILES_OF)

    @property
    def machine(self) -> str:
        """The machine of a directory."""
        return self.database.removeprefix(_FILES_OF)

    @property
    def directory(self) -> Path | None:
        """The directory, where it is one of this machine."""
        return Path(self.relation.name) if self.is_directory and self.machine == host() else None


def new_run_id() -> str:
    """A short id that sorts by time: UTC date and time to the second, and eight random hexadecimal digits."""
    return f"{datetime.now(UTC):%y%m%d-%H%M%S}-{secrets.token_hex(4)}"
