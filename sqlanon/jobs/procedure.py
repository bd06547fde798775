"""The procedure of a job on PostgreSQL: recoding, checks and publishing in the database, without the program.

It is generated once, when a release is frozen, from the rules as one SELECT and from the statements of verification.
The SELECT holds values of the data, and everybody may read the text of a procedure: so it is kept in the catalog, where
the procedure looks it up.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from markupsafe import Markup

from sqlanon.catalog import RECODING, Catalog, Job, ReleaseKind
from sqlanon.catalog.location import place_of, refusal
from sqlanon.engines.base import Engine
from sqlanon.engines.postgres.dialect import MEANINGS_OF_VALUES, USUAL_LOCK_TIMEOUT, USUAL_WORK_MEM
from sqlanon.engines.postgres.errors import OWN_ERRORS, QUOTABLE
from sqlanon.engines.postgres.publishing import ALTERNATIVE_PATIENCE, vacuum_note
from sqlanon.engines.publishing import STAGED_AS
from sqlanon.jobs.entering import EnteredRelease
from sqlanon.jobs.patterns import pattern
from sqlanon.jobs.recoded import Recoded, by_attribute, failing_queries, names_of
from sqlanon.jobs.staging import STAGING, Staging
from sqlanon.measures.disclosure import disclosure_statement
from sqlanon.models import PrivacyModel, largest_k
from sqlanon.plan.trust import refusal as refusal_of_source
from sqlanon.releases.rules.row_expressions import SUPPRESSED_FOR, UnmatchedValue, ending, row_filter_of
from sqlanon.releases.rules.two_step import ByRuleId
from sqlanon.results.measures import THRESHOLDS
from sqlanon.results.records import VERSION
from sqlanon.results.run_result import NULL_CHOICE
from sqlanon.results.search_facts import AppliedFacts
from sqlanon.runs.column_changes import CHANGED, GONE, MOVED, NEW, created_warning, release_problem, source_problem
from sqlanon.runs.linking import linked_warning, private_warning
from sqlanon.sql import Expression, Identifier, Relation, Text, macro
from sqlanon.support.folding import fold
from sqlanon.values.digest import ROWS, digest_head, table_statement
from sqlanon.verification.verify import verifying_statements
from sqlanon.work.workspace import release_lock_name

_MEASURED = Relation("sqlanon_measured", "pg_temp")
_JUDGED = Relation("sqlanon_judged", "pg_temp")
_KINDS = {"r": "table", "p": "partitioned table", "f": "foreign table", "v": "view", "m": "materialized view"}
_LEAST_ROWS = 1_000_000
_GROWTH = 16


def most_rows(rows: int) -> int:
    """Return the most rows that a procedure frozen at `rows` rows is made for: types of sums depend on it."""
    return max(_LEAST_ROWS, _GROWTH * rows)


def _quote(word: str, text: str) -> Expression:
    """The word, or one that begins with it, that may stand between the dollars of a quotation of this text."""
    words = itertools.chain([word], (f"{word}{number}" for number in itertools.count(1)))
    return Markup(next(one for one in words if f"${one}$" not in text))


def routine_of(catalog: Catalog, name: str) -> Relation:
    """The procedure of a job."""
    return catalog.location.relation(f"job_{name}")


@dataclass(frozen=True)
class ProcedureText:
    """Renders the procedure of a job."""

    engine: Engine
    catalog: Catalog
    job: Job
    models: Sequence[PrivacyModel]
    recoded: Recoded
    unmatched: Sequence[UnmatchedValue]
    repeats: Sequence[Mapping[str, Expression]]  # of identifiers
    rules: str  # the run that found the rules
    digest: str  # of the rules
    digests: bool  # whether what is released is digested
    entered: EnteredRelease | None = None  # where the policy has a history

    def create(self, *, alone: bool = False) -> str:
        """The statement that creates it; `alone` puts the recoding into it, so that it needs no record of the job."""
        assert self.job.routine is not None
        body = fold(
            self.engine.traits.renderer().unfolded("jobs/body", {**self._values(), "alone": alone}), sentences=True
        )
        return self.engine.render(
            "jobs/create_procedure",
            routine=Markup(self.job.routine),
            body=Markup(body),
            quote=_quote("sqlanon", body),
        ).text

    def inspection(self) -> str:
        """The statement by which it looks at the source: how many rows, what is wrong, what is suppressed."""
        source, most, suppresses = self.recoded.source, self.job.most_rows, self.job.on_violation == "suppress"
        parts = self.recoded.parts
        assert most is not None
        return self.engine.render(
            "jobs/inspect_source",
            source=source,
            no_rows=Text(f"{source} holds no rows."),
            most_rows=most,
            too_many=Text(
                f"{source} holds more than {most:,} rows, which job {self.job.name} was not made for: freeze its run "
                "again."
            ),
            unmatched=ending(self.unmatched, suppresses=suppresses),
            repeats=self.repeats,
            row_filter=row_filter_of(self.unmatched) if suppresses else None,
            is_starred=parts.is_starred if isinstance(parts, ByRuleId) else None,
        ).text

    def _statements(self) -> list[dict[str, Any]]:
        """List the statements with values of the data that staging goes by, with their digests in the catalog."""
        parts = self.recoded.parts
        texts = {"inspection": self.inspection()}
        if not isinstance(parts, ByRuleId):
            texts["recoding"] = self.recoded.select
        if parts is not None:
            texts |= {"assigning": parts.assigning, "showing": parts.showing}
        digests = digests_of(self.job)
        return [
            {
                "name": Markup(name),
                "text": Markup(text),
                "quote": _quote("sqlanon_rules", text),
                "digest": Text(digests[name]),
            }
            for name, text in texts.items()
        ]

    # --- what the templates interpolate

    @property
    def _staging(self) -> Staging:
        attributes = by_attribute(self.models) if self.job.on_violation == "suppress" else {}
        return Staging(self.engine, self.recoded, tuple(name for name in attributes if name is not None))

    def _values(self) -> dict[str, Any]:
        job, location = self.job, self.catalog.location
        release = Relation.parse(job.release)
        assert job.most_rows is not None
        return {
            "job": Markup(job.name),
            "job_text": Text(job.name),
            "version": job.version,
            "frozen": Markup(job.run),
            "frozen_text": Text(job.run),
            "rules_text": Text(self.rules),
            "on_violation": Text(job.on_violation),
            "share": job.budget,
            "routine_text": Text(job.routine or ""),
            "recoding_digest": Text(self.digest),
            "recoding_kind": Text(RECODING),
            "comment": Markup(" ".join(str(self.recoded.source).split())),
            "source": self.recoded.source,
            "source_text": Text(str(self.recoded.source)),
            "release": release,
            "release_text": Text(job.release),
            "lock_name": Markup(Text(release_lock_name(release, ""))),
            **self._settings(),
            "k": largest_k(self.models),
            "null_choice": Text(NULL_CHOICE),
            "result_version": VERSION,
            "facts_kind": Text(AppliedFacts.kind),
            "quotable": [Text(f"{state}%") for state in ("SA", "57014", *QUOTABLE)],
            "errors": [(Text(state), Text(error.__name__)) for state, error in OWN_ERRORS.items()],
            **{table: location.relation(table) for table in ("runs", "releases", "jobs", "work_tables")},
            **self._catalog_values(),
            **self._source_values(),
            **self._staging.values(),
            **self._model_values(job.most_rows),
            **self._publishing_values(release),
            **self._digest_values(),
            "history": None if self.entered is None else self.entered.values(),
        }

    def _catalog_values(self) -> dict[str, Any]:
        """Return the conditions on the catalog that the procedure acts on: nobody else may write it, or has done so."""
        location = self.catalog.location
        return {
            **place_of(location),
            "other_catalog": pattern(lambda problems: refusal(location, problems)),
            "statements": self._statements(),
            "other_statement": Text(
                f"What the catalog has of job {self.job.name} is not what was frozen: somebody changed table"
                f" {location.relation('jobs')}; nothing was published. Freeze the run again, and see who may write"
                " there."
            ),
        }

    def _settings(self) -> dict[str, Any]:
        """Return the settings of the session in which statements mean the same as in this one."""
        schemas = [name for (name,) in self.engine.query("engines/show_search_path")]
        return {
            "schemas": [Text(name) for name in schemas],
            "search_path": [Identifier(name) for name in schemas],
            "distrusted": Text(
                f"Names are looked up in {' and '.join(map(str, map(Identifier, schemas)))}, where roles other than "
                "this one and the database's owner have come to be able to create functions: revoke CREATE there, and "
                "drop what they created, or freeze the run again, which leaves the schema out."
            ),
            "settings": [(Markup(name), Text(value)) for name, value in MEANINGS_OF_VALUES.items()],
            "usual_work_mem": Text(USUAL_WORK_MEM),
            "usual_lock_timeout": Text(USUAL_LOCK_TIMEOUT),
        }

    def _source_values(self) -> dict[str, Any]:
        source = self.recoded.source
        return {
            "source_columns": [(Text(name), Text(kind)) for name, kind in self.recoded.signature],
            "gone": Text(GONE),
            "new": Text(NEW),
            "changed": Text(CHANGED),
            "moved": Text(MOVED),
            "no_source": Text(
                f"There is no {source} any more: it was renamed or dropped. Job {self.job.name} reads it by that name;"
                " nothing was published."
            ),
            "source_kind": Text(self.recoded.kind),
            "source_owner": Text(self.recoded.owner),
            "other_owner": Text(
                f"{source} is not the {_KINDS.get(self.recoded.kind, 'relation')} of role {self.recoded.owner} that it"
                f" was when job {self.job.name} was frozen; nothing was published. See who replaced it, and freeze the"
                " run again."
            ),
            "trusts_owner": self.recoded.trusts_owner,
            "code_of_others": pattern(lambda problems: refusal_of_source(source, problems)),
            "linked_warning": pattern(lambda run: linked_warning(run, str(source))),
            "private_warning": pattern(lambda run: private_warning(run, str(source))),
            "counts_kind": Text(ReleaseKind.COUNTS.value),
            "busy": Text(f"Another run is writing {self.job.release}: wait for it, or cancel it."),
            "other_columns": pattern(
                lambda changed: source_problem(str(source), f"when job {self.job.name} was frozen", changed)
            ),
        }

    def _model_values(self, most: int) -> dict[str, Any]:
        suppresses = self.job.on_violation == "suppress"
        budget = Fraction(str(self.job.budget or 0))
        groups = self._staging.groups, self.recoded.columns
        classed, rows = (self._staging.left, self.recoded.class_column), (most, macro("jobs.staged_rows"))
        verifying = verifying_statements(self.engine, groups, self.recoded.quasi_identifiers, self.models, rows)
        asked = self.models if suppresses else ()
        failing = failing_queries(self.engine, classed, self.recoded.columns, asked, rows)
        models = [
            {
                "statement": number,
                "part": part,
                "name": Text(self.models[place].name),
                "parameters": Text(json.dumps(self.models[place].shown_parameters)),
                "least": self.models[place].worst_of((0.0, 1.0)) == 0.0,
            }
            for number, one in enumerate(verifying)
            for part, place in enumerate(one.places, start=1)
        ]
        return {
            "suppresses": suppresses,
            "failing": failing,
            "models_compare": not all(model.monotone_under_suppression for model in self.models),
            "budget": (budget.numerator, budget.denominator),
            "beyond_budget": Text(
                f"%s of %s rows {SUPPRESSED_FOR}, which is more than the budget of the job allows; "
                "nothing was published."
            ),
            "measured": _MEASURED,
            "judged": _JUDGED,
            "verifying": [one.statement for one in verifying],
            "models": models,
            "disclosure": self._disclosure(),
            "thresholds": THRESHOLDS,
            "violated": Text("SA002" if suppresses else "SA001"),
        }

    def _disclosure(self) -> list[dict[str, Any]]:
        """Return the statements that measure the disclosure of each sensitive column, in the order of the policy."""
        columns = {column.name: column for column in self.recoded.columns}
        protected = {model.attribute for model in self.models}
        regions = self.recoded.regions
        return [
            {
                "name": Text(name),
                "protected": name in protected,
                "statement": disclosure_statement(self.engine, STAGING, regions, columns[name]),
            }
            for name in self.recoded.sensitive
        ]

    def _digest_values(self) -> dict[str, Any]:
        """The digest of what is released, as `table_digest` makes it, if runs are to take one."""
        columns = self.recoded.columns
        if not self.digests:
            return {"digest": None}
        return {
            "digest": table_statement(self.engine, STAGING, columns),
            "digest_kind": Text(ROWS),
            "digest_head": Text(digest_head(columns)),
        }

    def _publishing_values(self, release: Relation) -> dict[str, Any]:
        return {
            "release_columns": [(Text(column.name), Text(column.type)) for column in self.recoded.columns],
            "release_names": names_of(self.recoded.columns),
            "release_name": Text(release.name),
            "release_oid": macro("jobs.table_of", Text(str(release))),
            "beside": Text(str(release.sibling(STAGED_AS)).removesuffix('"')),
            "beside_oid": macro("jobs.table_of", macro("jobs.beside")),
            "patience": ALTERNATIVE_PATIENCE,
            "patience_milliseconds": round(ALTERNATIVE_PATIENCE * 1000),
            "no_table": Text(f"{release} is not an ordinary, logged table; nothing was published."),
            "referred": Text(f"{release} can't be replaced: foreign keys refer to it."),
            "inherited": Text(f"{release} can't be replaced: other tables inherit from it."),
            "other_release": pattern(lambda changed: release_problem(str(release), self.job.name, changed)),
            "created_warning": Text(created_warning(str(release))),
            "vacuum": Text(in_place_note(release)),
            "altered": Text(
                f"Triggers or rules of {release} altered the rows on their way; nothing was published. Disable them."
            ),
        }


def in_place_note(release: Relation) -> str:
    """Say what follows where a procedure replaced the rows of a release in place."""
    return vacuum_note(release)


def sealed(job: Job) -> Job:
    """Put a random part into each of a job's statements.

    The procedure executes what the catalog keeps, so it must notice a change, by digests. Everybody may read its text,
    and so the digests: the random part keeps people from guessing values of the data until a digest fits.
    """
    texts: dict[str, Any] = {
        name: f"/* {secrets.token_hex(16)} */\n{text}" for name, text in _statements_of(job).items()
    }
    return replace(job, **texts)


def digests_of(job: Job) -> dict[str, str]:
    """The digests of a job's statements, by their columns."""
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in _statements_of(job).items()}


def _statements_of(job: Job) -> dict[str, str]:
    names = ("inspection", "recoding", "assigning", "showing")
    return {name: text for name in names if (text := getattr(job, name)) is not None}
