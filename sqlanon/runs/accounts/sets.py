"""Sets of sensitive values: the classes of a person show the same one in all releases, as m-invariance asks.

The account knows the set of each person as a keyed digest. By each release that holds it, the set is that of all
earlier ones, so that a release is held against the account alone.
"""

from __future__ import annotations

import json
from typing import Any

from sqlanon.catalog.accounts import AccountRelease, LineKind, ReleaseAccount
from sqlanon.encoding.coded_table import CodedTable
from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import publisher_of
from sqlanon.engines.star import CLASS_NUMBER
from sqlanon.errors import ConflictError, PolicyError
from sqlanon.models import MInvariance
from sqlanon.models.base import PrivacyModel
from sqlanon.releases.former_sets import FormerSets
from sqlanon.results.history import SetFigures
from sqlanon.runs.execution import ClassRun
from sqlanon.sql import Identifier, Relation
from sqlanon.staging.staging import Staged
from sqlanon.support.quantities import quantity
from sqlanon.values.digest import exact_text


def set_model(run: ClassRun) -> PrivacyModel | None:
    """Find the model that holds sets of values across releases; None where the policy has none."""
    return next((model for model in run.models if model.holds_sets), None)


def require_sets(run: ClassRun) -> None:
    """Refuse before any work what an account knows that holds no sets, where a model holds them.

    Raises PolicyError where the account knows other things about these people than releases that hold such sets, and
    ConflictError where the release before is gone, or shows no sets any more.
    """
    model = set_model(run)
    people = None if run.way_out is None else run.way_out.people
    account = None if model is None or people is None else run.catalog.account(people.name)
    if model is None or account is None:
        return
    lines = run.catalog.account_releases(account)
    _require_set_lines(run, account, lines, model)
    if lines:
        _release_before(run, lines[-1], str(model.attribute))


def former_sets(run: ClassRun, coded: CodedTable) -> FormerSets | None:
    """Look up which sets the classes of the source's persons showed; None where no model asks, or nothing is published.

    Raises what `require_sets` raises.
    """
    model = set_model(run)
    if model is None or run.way_out is None or run.way_out.people is None:
        return None
    account, attribute = run.catalog.open_account(run.way_out.people), str(model.attribute)
    lines = run.catalog.account_releases(account)
    _require_set_lines(run, account, lines, model)
    run.known_lines = len(lines)
    return FormerSets.create(
        run.engine,
        run.workspace,
        coded,
        str(run.policy.person),
        attribute,
        (run.catalog, account),
        _release_before(run, lines[-1], attribute) if lines else None,
        model.least_rows,
    )


def _release_before(run: ClassRun, line: AccountRelease, attribute: str) -> Relation:
    """Find the release of a line; raises ConflictError where it is gone, or shows no sets of the attribute any more."""
    release, session = Relation.parse(str(line.about)), run.session.target
    problem = "is gone"
    if publisher_of(session).exists(release):
        kinds = {column.name: column.kind for column in session.columns(release)}
        wanted = next(one.column.kind for one in run.plan.attributes if one.name == attribute)
        if CLASS_NUMBER in kinds and kinds.get(attribute) is wanted:
            return release
        problem = f"has no numbered classes with '{attribute}' of the source's type"
    raise ConflictError(
        f"{line.about}, the release before, {problem}, and nobody can say which values the classes of its persons"
        " showed. Restore it, or begin anew: `sqlanon account forget`."
    )


def _require_set_lines(
    run: ClassRun, account: ReleaseAccount, lines: list[AccountRelease], model: PrivacyModel
) -> None:
    """Refuse an account that knows releases which held no sets of the attribute, or answers."""
    for line in lines:
        privacy: list[dict[str, Any]] = []
        if line.kind is LineKind.RELEASE:
            privacy = json.loads(run.catalog.run(line.run).policy)["privacy"]
        held = [one.get("attribute") for one in privacy if one["model"] == MInvariance.name]
        if held != [model.attribute]:
            what = "release" if line.kind is LineKind.RELEASE else line.kind.value
            raise PolicyError(
                f"privacy: {model.name} holds for persons of whom nothing else is out, and the account of"
                f" {account.name} knows a {what} of run {line.run} that shows no such sets of '{model.attribute}'. Name"
                " other people, or begin anew: `sqlanon account forget`."
            )


def hold_sets(run: ClassRun, account: ReleaseAccount, members: Relation, staged: Staged) -> None:
    """Write down for each person of a staged release the digest of the set that the staged class shows."""
    model, session = set_model(run), staged.engine
    assert model is not None
    (column,) = [one for one in session.columns(staged.final) if one.name == model.attribute]
    sets = run.workspace.table("history_sets")
    session.run(
        "runs/accounts/sets/create_sets",
        sets=sets,
        staged=staged.final,
        number=Identifier(CLASS_NUMBER),
        value=exact_text(session.render, column, Identifier(column.name)),
        account=account.id,
        accounts=run.catalog.account_tables["accounts"],
    )
    session.run("runs/accounts/sets/hold_sets", members=members, sets=sets)
    run.workspace.drop(sets)


def compare_sets(
    run: ClassRun, session: Engine, account: ReleaseAccount, members: Relation, lines: int
) -> SetFigures | None:
    """Count the persons of a release who had another set before; None where no model asks.

    lines: how many the account has, with the one that is about to be entered. Raises ConflictError where another run
    has entered something since the search.
    """
    if set_model(run) is None:
        return None
    if run.known_lines != lines - 1:
        raise ConflictError("Another run has entered something about the same people meanwhile: run again.")
    assert run.outcome.verification is not None
    persons = run.catalog.account_tables["account_persons"]
    of_members = {"members": members, "account": account.id, "persons": persons}
    entered, known, other = map(int, session.query_one("runs/accounts/sets/compare_sets", **of_members))
    return SetFigures(known, other, run.outcome.verification.statistics.rows - entered)


def sets_problem(figures: SetFigures, people: str, model: PrivacyModel | None) -> str | None:
    """Say how many persons show another set than before; None where nobody does."""
    if not figures.other or model is None:
        return None
    return (
        f"{quantity(figures.other, 'person')} of those who were released about {people} before would be in classes with"
        f" other values of '{model.attribute}' than then."
    )
