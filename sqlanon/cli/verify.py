"""verify: the independent check of a release, or of any table, and its verdict in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from sqlanon.cli import several_tables
from sqlanon.cli.call import (
    HERE,
    About,
    Call,
    Header,
    OtherTable,
    Panel,
    TrustOwner,
    command,
    expanded,
    listed,
    policy_here,
    reading_by,
)
from sqlanon.cli.deferred import (
    auditing,
    files,
    loading,
    models,
    plans,
    summary,
)
from sqlanon.cli.deferred import calls as api
from sqlanon.cli.record import tell_record
from sqlanon.cli.release_texts import texts_of_policy
from sqlanon.errors import PolicyError, ProtectionError

if TYPE_CHECKING:
    from sqlanon.models import PrivacyModel
    from sqlanon.plan.subject import Repetition
    from sqlanon.report.release_audit.auditing import Audit
    from sqlanon.report.release_audit.recorded import RecordedAudit
    from sqlanon.results.measures import Check
    from sqlanon.verification.verdict import Verification

_Table = Annotated[
    str | None, typer.Option(help="Check this table against the policy, instead of the policy's release.")
]


_NoSource = Annotated[
    bool, typer.Option("--no-source", help="Leave out, of a policy's release, the checks that read the source.")
]


_All = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Hold every row of a policy's release against its source, not a sample of more than 1,000,000 rows.",
    ),
]


_Record = Annotated[
    Path | None,
    typer.Option(help="Check the release of this record, which `sqlanon record` wrote; a policy or URL says where."),
]


_OUTCOMES = {
    "columns_equal": "columns and types are those that the policy's roles give",
    "types_equal": "types of columns",
    "rows_add_up": "rows released and left out add up to the source",
    "values_equal": "kept columns hold the source's values",
    "counts_add_up": "every cluster has as many values of each kept column as rows",
    "regions_contain": "labels are true of the raw values",
    "classes_equal": "classes hold the kept values of their own rows",
    "pseudonyms_distinct": "each value of an identifier has a pseudonym of its own",
    "masks_true": "constants, masks and faked values are those of the identifiers",
    "labels_fit": "labels are no wider than the algorithm makes them",
}


_COSTS_CHANGED = (
    "The costs have changed since the run that made the release ({files}): distances are measured by them as they are"
    " now."
)


UNKNOWN = "Rows are counted. The source can't be read here, so whether a person has several rows was not looked at."


def _model(*names: str, help: str, **limits: Any) -> Any:
    """An option of the models, which are for a table without a policy."""
    return typer.Option(*names, help=help, rich_help_panel="Models, for a table without a policy", **limits)


_Qi = Annotated[
    list[str] | None, _model(help="Quasi-identifiers, separated by commas; repeat it for names with commas.")
]


_K = Annotated[int | None, _model(min=1, help="k-anonymity.")]


_Sensitive = Annotated[
    list[str] | None, _model(help="A sensitive attribute, protected by a model or not; may be repeated.")
]


_L = Annotated[float | None, _model("--l", min=1, help="Distinct l-diversity; recursive with --c.")]


_C = Annotated[float | None, _model("--c", min=1e-9, help="c of recursive (c, l)-diversity.")]


_Entropy = Annotated[bool, _model("--entropy", help="--l is of entropy l-diversity.")]


_T = Annotated[float | None, _model("--t", min=0, help="t-closeness.")]


_Distance = Annotated[
    Literal["equal", "ordered", "hierarchical", "kl"] | None,
    _model(help="Distance of t-closeness; equal if not given."),
]


_V = Annotated[float | None, _model("--v", min=0, help="Variance diversity.")]


_SuppressedLabel = Annotated[
    str | None, _model(help="The label that suppressed rows show in quasi-identifiers; they are no class.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "verify", Panel.RELEASE, limits=True)(verify_command)


def verify_command(
    call: Call,
    policy: About = None,
    other: OtherTable = None,
    table: _Table = None,
    no_source: _NoSource = False,
    every: _All = False,
    record: _Record = None,
    qi: _Qi = None,
    k: _K = None,
    sensitive: _Sensitive = None,
    l: _L = None,  # noqa: E741
    c: _C = None,
    entropy: _Entropy = False,
    t: _T = None,
    distance: _Distance = None,
    v: _V = None,
    suppressed_label: _SuppressedLabel = None,
    header: Header = None,
    trust_owner: TrustOwner = False,
) -> int:
    """Check a release against its policy and source or its record, or any table against models given here. Exit code
    3 if a model is violated, or if the record or the release was altered.

    Nothing of a run is used and nothing is changed: equivalence classes are the groups of equal values in the table.
    With a policy every check of a run is made, if its source can be read and is still what was released; else the
    checks that were not made are named, and say nothing about the exit code. Models, rows and kept values are checked
    on all rows. Labels are held against raw values on all rows up to 1,000,000, and above on a random sample of about
    100,000, which the output says; --all takes every row.

    A release of differential privacy is held against its record and the ledger; epsilon can't be seen in a table. Rules
    that were to be hidden are mined again.
    """
    asked = {"k": k, "l": l, "c": c, "entropy": entropy or None, "t": t, "distance": distance, "v": v}
    given = {name: value for name, value in asked.items() if value is not None}
    options = {**given, "qi": qi, "sensitive": sensitive, "suppressed-label": suppressed_label}
    options["trust-owner"] = trust_owner
    unfit = [*(f"--{name}" for name, value in options.items() if value), *(["TABLE"] if other else [])]
    unfit += [] if header is None else ["--header"]
    about_rows = [name for name, is_given in (("--no-source", no_source), ("--all", every)) if is_given]
    if record is not None:
        _refuse("record", [*unfit, *about_rows])
        return tell_record(call, record, policy, table)
    if policy is None and (here := policy_here()) is not None:
        policy = str(here)
    if policy is None:
        raise PolicyError(
            f"What is to be checked? Give a policy (there is no {HERE} here), a URL and a table, a data file, or"
            " --record."
        )
    place = expanded(policy)
    is_file = files.is_data_file(place)
    if "://" not in place and not is_file:
        _refuse("policy", unfit)
        return _check_release(call, Path(place), table, with_source=not no_source, whole=every)
    if about_rows:
        raise PolicyError(
            f"{about_rows[0]} is for the release of a policy: models alone are checked of any other table, on all rows."
        )
    if (other is None) != is_file or table is not None:
        raise PolicyError("Write URL TABLE or FILE, then models: sqlanon verify URL TABLE --qi age,zip --k 5.")
    what, names, models = other or place, _names(qi or []), _models(given, sensitive or [])
    url = None if is_file else place
    common: dict[str, Any] = {"options": call.options, "reading": reading_by(header), "trusts_owner": trust_owner}
    verification = api.check_table(
        url, what, names, models, suppressed_label=suppressed_label, sensitive=sensitive or (), **common
    )
    return _tell(call, verification, what, api.table_repetition(url, what, **common))


def _check_release(call: Call, policy: Path, table: str | None, *, with_source: bool, whole: bool) -> int:
    """Check the release of a policy, or another table in its place, and print what came of it."""
    if whole and not with_source:
        raise PolicyError("--all holds every row against the source, which --no-source leaves out: give one of them.")
    if (tables := several_tables.load(policy, {"--all": whole, "--table": table})) is not None:
        return several_tables.tell_verify(call, tables)
    loaded = loading.load_policy(policy)
    audit = auditing.audit_release(loaded, table, call.options, with_source=with_source, whole=whole)
    if (texts := texts_of_policy(loaded)) is not None:
        return texts.tell_audit(call, cast("RecordedAudit", audit))
    repetition = api.source_repetition(loaded, call.options) if with_source else None
    return tell_audit(call, cast("Audit", audit), table or plans.release_text(loaded), repetition)


def _refuse(what: str, given: list[str]) -> None:
    if given:
        raise PolicyError(f"A {what} says all itself; leave {', '.join(given)} out (--table names another table).")


def _names(given: list[str]) -> list[str]:
    """The quasi-identifiers, of which there is one at least."""
    names = listed(given)
    if not names or not all(names):
        raise PolicyError("--qi is missing: it names the quasi-identifiers, such as --qi age,zip.")
    return names


def _models(asked: dict[str, Any], sensitive: list[str]) -> list[PrivacyModel]:
    """The models that the options ask for."""
    problems = list(_contradictions(asked, sensitive))
    if problems:
        raise PolicyError(problems)
    wanted: list[PrivacyModel] = [models.KAnonymity(asked["k"])] if "k" in asked else []
    for attribute in sensitive:
        wanted += _about(attribute, asked)
    return wanted


def _contradictions(asked: dict[str, Any], sensitive: list[str]) -> Iterator[str]:
    """List options that contradict each other."""
    about_values = [key for key in ("l", "t", "v") if key in asked]
    for option, needed in (("c", "l"), ("entropy", "l"), ("distance", "t")):
        if option in asked and needed not in asked:
            yield f"--{option} needs --{needed}."
    if "c" in asked and "entropy" in asked:
        yield "--c is of recursive, --entropy of entropy l-diversity: give one of them."
    if "k" not in asked and not about_values:
        yield "No model is asked for: give --k, --l, --t or --v."
    if about_values and not sensitive:
        yield f"--{about_values[0]} needs --sensitive: the attribute it is about."
    if asked.get("distance") == "hierarchical":
        yield "--distance hierarchical needs a hierarchy, which only a policy gives."


def _about(attribute: str, asked: dict[str, Any]) -> list[PrivacyModel]:
    """The models about one sensitive attribute."""
    wanted: list[PrivacyModel] = []
    if "entropy" in asked:
        wanted.append(models.EntropyLDiversity(attribute, asked["l"]))
    elif "c" in asked:
        wanted.append(models.RecursiveLDiversity(attribute, asked["c"], _whole(asked["l"])))
    elif "l" in asked:
        wanted.append(models.DistinctLDiversity(attribute, _whole(asked["l"])))
    if "t" in asked:
        wanted.append(models.DISTANCES[asked.get("distance", "equal")](attribute, asked["t"]))
    if "v" in asked:
        wanted.append(models.VarianceDiversity(attribute, asked["v"]))
    return wanted


def _whole(value: float) -> int:
    if not value.is_integer():
        raise PolicyError("--l must be a whole number, unless --entropy is given.")
    return int(value)


def _tell(call: Call, verification: Verification, what: str, repetition: Repetition | None) -> int:
    """Print the result, and what to know of rows and persons; the exit code."""
    if call.json:
        call.emit({"table": what, **verification.as_json(), "subject": repetition and repetition.as_json()})
    else:
        print(summary.verification_text(verification, what))
        if note := UNKNOWN if repetition is None else repetition.sentence:
            print(note)
    return 0 if verification.satisfied else ProtectionError.exit_code


def tell_audit(call: Call, audit: Audit, what: str, repetition: Repetition | None) -> int:
    """Print what an audit found, and what to know of rows and persons; the exit code."""
    if call.json:
        call.emit(audit_object(audit, what, repetition))
    else:
        print(audit_text(audit, what, repetition))
    return 0 if audit.satisfied else ProtectionError.exit_code


def audit_object(audit: Audit, what: str, repetition: Repetition | None) -> dict[str, Any]:
    """An audit as programs read it, with what was audited, and what to know of rows and persons."""
    return {"table": what, **audit.as_json(), "subject": repetition and repetition.as_json()}


def audit_text(audit: Audit, what: str, repetition: Repetition | None) -> str:
    """An audit for people."""
    verification = audit.verification
    head = f"{what}: " + (audit.unjudged or "models can't be checked.")
    if verification is not None:
        head = summary.verification_text(verification, what)
    lines = [head, UNKNOWN if repetition is None else repetition.sentence]
    lines += [
        f"  {_OUTCOMES[name]}{_of_sample(check)}: " + (f"NO ({check.violations:,})" if check.violations else "yes")
        for name, check in audit.checks.items()
    ]
    if audit.omitted:
        lines.append(f"Rows of the source that are not in the release: {audit.omitted:,}.")
    if audit.costs:
        lines.append(_COSTS_CHANGED.format(files=", ".join(audit.costs)))
    if audit.columns:
        lines.append(f"Not as the policy says: {', '.join(audit.columns)}.")
    if audit.failed and not audit.same_source and audit.failed != ("columns_equal",):
        lines.append(
            "Either the release was altered, or its source has changed since: no record of a run says which it is."
        )
    return "\n".join(line for line in [*lines, *_unchecked(audit)] if line)


def _of_sample(check: Check) -> str:
    """Say of how many rows an outcome is, where not all were looked at."""
    return f" (a random sample of {check.rows:,} rows; --all looks at every row)" if check.sample else ""


def _unchecked(audit: Audit) -> list[str]:
    """List the reasons why checks were not made, a line for each reason."""
    reasons = defaultdict(list)
    for name, reason in audit.unchecked.items():
        reasons[reason].append(_OUTCOMES[name])
    return [f"NOT checked, for {reason.rstrip('.')}: {'; '.join(names)}." for reason, names in reasons.items()]
