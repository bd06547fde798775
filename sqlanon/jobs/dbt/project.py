"""The files of a dbt project that recode a source by the rules of a run, test the result, and publish it."""

from __future__ import annotations

import io
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from markupsafe import Markup
from ruamel.yaml import YAML

from sqlanon.catalog import JOB_NAME, Catalog, Run
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.jobs.freezing import Freezing, decide, problems_of_statements, recoded_columns
from sqlanon.jobs.procedure import most_rows
from sqlanon.jobs.recoded import cast_columns, class_column_name, failing_queries, names_of, sensitive_values
from sqlanon.models import PrivacyModel, models_of
from sqlanon.models.table_model import refuse_table_models
from sqlanon.plan.checks import released_names
from sqlanon.plan.persons import refuse_joined_rows
from sqlanon.plan.plan import Plan, resolve_source
from sqlanon.policy import AttributeSection, Policy, Role, Show
from sqlanon.policy.loading import parse_stored
from sqlanon.releases.rules.export_sql import rules_select
from sqlanon.releases.rules.row_expressions import SUPPRESSED_FOR, ending, find_unmatched, row_filter_of
from sqlanon.releases.rules.store_rules import StoredRules, read_rules
from sqlanon.runs.stored import require_same
from sqlanon.sql import Expression, Identifier, Relation, Statement, Text, free_name, macro
from sqlanon.values.expressions import comparable
from sqlanon.verification.table_check import CountedRows, named_groups

STAGING = "staging"  # the schema of rows that are not tested yet; dbt puts that of the target before it
_KEPT = {
    Role.SENSITIVE: "Sensitive column `{name}`, as it is in the source.",
    Role.INSENSITIVE: "Column `{name}`, as it is in the source.",
}
_SHOWN = {
    Show.MEAN: "the mean of the values of the row's class",
    Show.MIDPOINT: "the middle between the least and the greatest value of the row's class",
    Show.RANGE: "the range of the values of the row's class",
}
_HIERARCHIES = {
    "mask": "a value, or its beginning or end with `*` for what is hidden",
    "date": "a day, or the period that it lies in",
    "intervals": "a number, or the interval that it lies in",
    "csv": "a value, or the group that it belongs to",
    "mapping": "a value, or the group that it belongs to",
    "suppress": "a value, or `*`",
}
_OPENING = re.compile(r"\{[{%#]")
_UNSAYABLE = re.compile(r'["`\\\x00-\x1f]|\{[{%#]')
_MODEL = re.compile(r"(?:[A-Za-z_]\w*\.)?[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class ProjectText:
    """Renders the files; see `project_files`."""

    engine: Engine
    run: Run
    plan: Plan
    stored: StoredRules
    select: str
    columns: tuple[Column, ...]
    regions: tuple[str, ...]
    models: tuple[PrivacyModel, ...]
    wanted: Freezing
    model: str | None  # of the project, that is read in place of a table
    here: tuple[Relation, Relation]  # what stands for the source, and for the staged rows, until dbt's words do

    @property
    def name(self) -> str:
        return self.wanted.name

    @property
    def staged(self) -> str:
        """The model that holds the rows before they are tested."""
        return f"{self.name}_staged"

    def files(self) -> dict[str, str]:
        """The text of each file, by its place in a project."""
        tests = dict(self._tests())
        return {
            f"models/{self.staged}.sql": self._staged(),
            f"models/{self.name}.sql": self._published(),
            f"models/{self.name}.yml": _yaml(self._properties(tests)),
            **{f"tests/{name}.sql": text for name, (_, text) in tests.items()},
        }

    # --- models

    def _staged(self) -> str:
        values: dict[str, Any] = {
            "columns": cast_columns(self.columns),
            "recoding": Markup(self.select),
        }
        if self.wanted.on_violation == "error":
            return self._model(self._written("jobs/dbt/recode_rows", **values), recodes=True)
        class_column = class_column_name(self.columns)
        staged = CountedRows(Relation("staged"))
        rows = macro("relations.number_of_rows", staged.table)
        failing = failing_queries(
            self.engine, (lambda _: staged, class_column), self.columns, self.models, (self._most, rows)
        )
        text = self._written(
            "jobs/dbt/recode_and_suppress",
            **values,
            class_column=class_column,
            keys=self._keys(self._regions) or [1],
            failing=failing,
            names=names_of(self.columns),
        )
        return self._model(text, recodes=True)

    def _published(self) -> str:
        rest = [column for column in self.columns if column.name not in self.regions]
        keys = self._keys([*self._regions, *rest])
        text = self._written(
            "jobs/dbt/publish_rows", names=names_of(self.columns), staged=self.here[1], keys=keys or [1]
        )
        return self._model(text, recodes=False)

    def _model(self, text: str, *, recodes: bool) -> str:
        """A model's file: the settings that its statement needs, and the statement."""
        hooks = self._settings() if recodes else []
        listed = "".join(f',\n    "{hook}"' for hook in hooks).removeprefix(",")
        apart = f", schema='{STAGING}'" if recodes else ""
        config = f"materialized='table'{apart}" + (f", pre_hook=[{listed}\n]" if hooks else "")
        return f"{{{{ config({config}) }}}}\n" + self._escaped(text) + "\n"

    def _settings(self) -> list[str]:
        """Statements that let the recoding mean what it meant to the run."""
        zoned = any(one.kind is Kind.TIMESTAMPTZ for one in self.stored.attributes)
        traits = self.engine.traits
        settings = {**traits.settings, **(traits.zone_settings if zoned else {})}
        return [self._written("jobs/dbt/apply_setting", name=Markup(n), value=Markup(v)) for n, v in settings.items()]

    # --- tests

    def _tests(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """Names of tests, each with what it is about and its file."""
        about = "Rows of the source that no rule is about, and how many of them were suppressed."
        yield f"{self.name}_rows", (about, self._escaped(self._rows_test()) + "\n")
        for number, model in enumerate(self.models, start=1):
            parameters = ", ".join(f"{name}: {value}" for name, value in model.shown_parameters.items())
            name = f"{self.name}_{number}_{model.name.replace('-', '_')}"
            yield (
                name,
                (f"Classes that violate {model.name} ({parameters}).", self._escaped(self._violating(model)) + "\n"),
            )

    def _violating(self, model: PrivacyModel) -> str:
        """The SELECT of the classes that violate a model, by the columns as they would be published."""
        sensitive = next((column for column in self.columns if column.name == model.attribute), None)
        groups = named_groups(
            sensitive is not None, self._most, counted=macro("relations.number_of_rows", self.here[1])
        )
        keys = [comparable(self.engine, Markup(Identifier(c.name)), c.kind) for c in self._regions]
        return self._written(
            "jobs/dbt/list_violating",
            table=self.here[1],
            columns=keys or [0],
            keys=[Identifier(f"q{place}") for place in range(len(keys) or 1)],
            names=[Identifier(name) for name in self.regions] or [Identifier("table")],
            count=free_name("rows", self.regions),
            times=None,
            suppressed=False,
            keyed=True,
            measure=model.measure(self.engine.render, groups),
            **sensitive_values(self.engine, sensitive, [model]),
        )

    def _rows_test(self) -> str:
        source, budget = self.plan.source, Fraction(str(self.wanted.budget or 0))
        unmatched = find_unmatched(self.engine, self.plan.policy, self.stored.attributes)
        suppresses = self.wanted.on_violation == "suppress"
        return self._written(
            "jobs/dbt/check_rows",
            source=self.here[0],
            staged=self.here[1],
            no_rows=Text(f"{source} holds no rows."),
            most_rows=self._most,
            too_many=Text(f"{source} holds more than {self._most:,} rows: run the policy again, and export that run."),
            unmatched=ending(unmatched, suppresses=suppresses),
            numerator=budget.numerator,
            denominator=budget.denominator,
            beyond_budget=Text(f"More rows {SUPPRESSED_FOR} than the budget allows."),
        )

    # --- what declares them

    def _properties(self, tests: dict[str, tuple[str, str]]) -> dict[str, Any]:
        described = describe_columns(self.plan.policy)
        columns = [
            {"name": escaped(column.name), "description": escaped(described[column.name])} for column in self.columns
        ]
        how = f"recoded by the rules of run {self.run.id}"
        return {
            "version": 2,
            **({} if self.model else {"sources": [self._source()]}),
            "models": [
                {
                    "name": self.staged,
                    "description": f"Rows {how}, before they are tested: for no reader, and so in a schema apart.",
                },
                {
                    "name": self.name,
                    "description": f"Rows {how}, after all tests of them passed.",
                    "columns": columns,
                },
            ],
            "data_tests": [{"name": name, "description": escaped(about)} for name, (about, _) in tests.items()],
        }

    def _source(self) -> dict[str, Any]:
        source = self.plan.source
        schema = {"schema": sayable(source.schema)} if source.schema else {}
        quoted = {"quoting": {"schema": True, "identifier": True}}
        return {"name": f"{self.name}_source", **schema, **quoted, "tables": [{"name": sayable(source.name)}]}

    # --- parts

    @cached_property
    def _most(self) -> int:
        return most_rows(self.plan.rows)

    @property
    def _regions(self) -> list[Column]:
        return [column for column in self.columns if column.name in self.regions]

    def _keys(self, columns: Sequence[Column]) -> list[Expression]:
        return [comparable(self.engine, macro("codes.in_row", Identifier(c.name)), c.kind) for c in columns]

    def _written(self, template: str, **values: Any) -> str:
        """Render a statement as dbt's sessions take it."""
        return self.engine.text_for_others(self.engine.render(template, **values))

    def _escaped(self, text: str) -> str:
        """A statement with dbt's words for the source and for the staged rows."""
        source = f"source('{self.name}_source', '{_quoted(self.plan.source.name)}')"
        if self.model is not None:
            source = "ref(" + ", ".join(f"'{part}'" for part in self.model.split(".")) + ")"
        marks = (self.engine.text_for_others(Statement("mark", str(one))) for one in self.here)
        words = (f"{{{{ {source} }}}}", f"{{{{ ref('{self.staged}') }}}}")
        text = escaped(text)
        for mark, word in zip(marks, words, strict=True):
            text = text.replace(mark, word)
        return text


def project_files(
    engine: Engine,
    catalog: Catalog,
    run: Run,
    wanted: Freezing,
    source: str | None = None,
    source_model: str | None = None,
) -> dict[str, str]:
    """The files that recode rows by the rules of a run, by their places in a dbt project; nothing is recorded.

    A staged model recodes, tests hold it against every privacy model, and only then the model `wanted.name` is built
    of it. engine: a session with the database of the source. source: the table to read, if not that of the run.
    source_model: a model that dbt is to read, as `model` or `package.model`; the table is then what it is like.

    Raises PolicyError where the rules can't be said as one SELECT, or dbt can't be told of something.
    """
    if not JOB_NAME.fullmatch(wanted.name):
        raise PolicyError("A dbt model's name is of at most 40 lower-case letters, digits and _, and begins with one.")
    if source_model is not None:
        _require_model(source_model, wanted.name)
    policy, stored = parse_stored(run.policy), read_rules(catalog, run.id)
    wanted = decide(wanted, policy)
    models = models_of(policy)
    refuse_table_models(models, "a dbt project")
    refuse_joined_rows(policy, "a dbt project")
    wrong = list(problems_of_statements(policy, wanted.on_violation, "dbt"))
    if wrong:
        raise PolicyError(wrong)
    table = source if source is not None else policy.source.table
    if table is None:
        raise PolicyError("The source of the run is a file; name a table with --source.")
    there = policy.source.model_copy(update={"file": None, "table": table})
    plan = resolve_source(policy.model_copy(update={"source": there}), engine)
    require_same(plan, stored, engine.name)
    marks = Relation(f"source_{secrets.token_hex(16)}"), Relation(f"staged_{secrets.token_hex(16)}")
    kept = (
        row_filter_of(find_unmatched(engine, policy, stored.attributes)) if wanted.on_violation == "suppress" else None
    )
    select = rules_select(catalog.store, stored, run, str(plan.source), kept)
    columns, regions = recoded_columns(engine, plan, select)
    selects = rules_select(catalog.store, stored, run, str(marks[0]), kept)
    parts = (engine, run, plan, stored, selects, columns, regions, models, wanted)
    return ProjectText(*parts, source_model, marks).files()


def _require_model(model: str, name: str) -> None:
    """Refuse what is no name of a model, or that of one which is written."""
    if not _MODEL.fullmatch(model):
        raise PolicyError(f"'{model}' is no name of a dbt model: write model, or package.model.")
    if model in (name, f"{name}_staged"):
        raise PolicyError(f"The model '{model}' would read itself: give another --name.")


def write_project(directory: Path, name: str, files: dict[str, str]) -> list[Path]:
    """Write the files, and a `dbt_project.yml` where there is none; raises PolicyError where one of them exists."""
    present = [str(directory / place) for place in files if (directory / place).exists()]
    if present:
        raise PolicyError([f"{place} exists: remove it, or give another --name." for place in present])
    written = []
    project = {"name": name, "version": "1.0.0", "config-version": 2, "profile": name}
    given = files if (directory / "dbt_project.yml").exists() else {"dbt_project.yml": _yaml(project), **files}
    for place, text in given.items():
        path = directory / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def _quoted(name: str) -> str:
    """A name in a Jinja text between single quotes."""
    return sayable(name).replace("'", "\\'")


def _yaml(data: dict[str, Any]) -> str:
    text = io.StringIO()
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 4096
    yaml.dump(data, text)
    return text.getvalue()


def describe_columns(policy: Policy) -> Mapping[str, str]:
    """A sentence for every column of the release, by its name; no value of the data."""
    return {column: text for name, a in policy.attributes.items() for column, text in _described(name, a)}


def _described(name: str, attribute: AttributeSection) -> Iterator[tuple[str, str]]:
    columns = released_names(name, attribute)
    if attribute.role is not Role.QUASI_IDENTIFIER:  # an identifier has no columns
        yield from ((column, _KEPT[attribute.role].format(name=name)) for column in columns)
        return
    for column, shown in zip(columns, _shown(attribute), strict=True):
        yield column, f"Quasi-identifier `{name}`, generalized: {shown}."


def _shown(attribute: AttributeSection) -> tuple[str, ...]:
    """Describe the content of each column of a quasi-identifier."""
    if attribute.show is Show.BOUNDS:
        return "the least value of the row's class", "the greatest value of the row's class"
    if attribute.show is not Show.LABEL:
        return (_SHOWN[attribute.show],)
    hierarchy = attribute.hierarchy
    kind = None if hierarchy is None else next((k for k in _HIERARCHIES if getattr(hierarchy, k) is not None), None)
    return (_HIERARCHIES[kind] if kind else "a value, a range or a set of values",)


def escaped(text: str) -> str:
    """The text as a Jinja template that gives it: what would begin a tag is written as an expression."""
    return _OPENING.sub(lambda match: "{{ '" + match[0] + "' }}", text)


def sayable(name: str) -> str:
    """A table's or schema's name as dbt can be told of it: it puts quotes around it, and doubles none inside.

    Raises PolicyError for a name with quotes, backticks, backslashes, control characters or what begins a Jinja tag.
    """
    if _UNSAYABLE.search(name):
        raise PolicyError(f"dbt can't read the name '{name}': make a view of it with a plainer name (--source).")
    return name
