"""associations: mine the rules by which quasi-identifiers tell sensitive values, and hide rules that a policy lists."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlanon.cli.call import (
    HERE,
    About,
    Call,
    Follow,
    Header,
    OtherTable,
    Panel,
    PolicyFile,
    Quiet,
    TrustOwner,
    command,
    expanded,
    listed,
    policy_here,
    reading_by,
    with_default,
)
from sqlanon.cli.deferred import association_mining, associations, codec, files, loading
from sqlanon.cli.layout import percent, table
from sqlanon.cli.policy import Replace
from sqlanon.cli.release_texts import texts_of_policy
from sqlanon.cli.writing import quoted
from sqlanon.errors import PolicyError
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.results.associations import AssociationRule, Associations

_Qi = Annotated[
    list[str] | None,
    typer.Option(help="Columns of left sides, separated by commas; repeat it for names with commas."),
]
_Sensitive = Annotated[list[str] | None, typer.Option(help="Columns of right sides, given in the same way.")]
_Subject = Annotated[
    str | None, typer.Option(help="The column that tells whose each row is: persons are counted, not rows.")
]
_K = Annotated[int | None, typer.Option("-k", min=1, help="Members below which a left side singles people out.")]
_Support = Annotated[int, typer.Option(min=1, help="The least rows, or persons, with the values of both sides.")]
_Confidence = Annotated[
    float, typer.Option(help="The least share of those with the left side's values who have the right side's.")
]
_Most = Annotated[int, typer.Option(min=1, help="The most columns of a left side.")]
_Limit = Annotated[int, typer.Option(min=1, help="How many rules are listed.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        cls=with_default("mine"),
        help="Association rules: mine them, or hide them. Where neither is named, they are mined.",
    )
    command(group, "mine", limits=True)(mine_command)
    command(group, "hide", limits=True)(hide_command)
    app.add_typer(group, name="associations", rich_help_panel=Panel.CHOICE)


def mine_command(
    call: Call,
    policy: About = None,
    other: OtherTable = None,
    qi: _Qi = None,
    sensitive: _Sensitive = None,
    subject: _Subject = None,
    k: _K = None,
    support: _Support = 1,
    confidence: _Confidence = 0.8,
    most: _Most = 3,
    limit: _Limit = 20,
    header: Header = None,
    trust_owner: TrustOwner = False,
) -> None:
    """Mine the rules by which quasi-identifiers tell sensitive values: whom they single out, and whom they give away.
    Nothing is changed. What is printed holds values of the table.

    With a policy: of its source, whose roles, k, confidence-bound and subject it names. The word mine may be left out:
    sqlanon associations policy.yml. docs/output.md says more.
    """
    if policy is None and (here := policy_here()) is not None:
        policy = str(here)
    if policy is None:
        raise PolicyError(f"Which table? Give a policy (there is no {HERE} here), a URL and a table, or a data file.")
    place = expanded(policy)
    if "://" in place or files.is_data_file(place):
        is_file = files.is_data_file(place)
        if (other is None) != is_file or not qi or not sensitive or k is None:
            raise PolicyError(
                "Write URL TABLE or FILE, the columns of both sides, and k: sqlanon associations URL TABLE --qi age,zip"
                " --sensitive disease -k 5."
            )
        mined = associations.table_associations(
            None if is_file else place,
            other or place,
            listed(qi),
            listed(sensitive),
            association_mining.AssociationOptions(k, support, confidence, None, most, limit),
            subject=subject,
            options=call.options,
            reading=reading_by(header),
            trusts_owner=trust_owner,
        )
    else:
        given: dict[str, object] = {"TABLE": other, "--qi": qi, "--sensitive": sensitive, "--subject": subject, "-k": k}
        given |= {"--header": header, "--trust-owner": trust_owner or None}
        if wrong := [name for name, value in given.items() if value is not None]:
            raise PolicyError(f"A policy says all itself; leave {', '.join(wrong)} out.")
        mined = associations.policy_associations(
            loading.load_policy(Path(place)),
            support=support,
            confidence=confidence,
            most=most,
            limit=limit,
            options=call.options,
        )
    if call.json:
        call.emit(codec.to_json(mined))
    else:
        print(_text(mined))


def hide_command(
    call: Call, policy: PolicyFile = HERE, replace: Replace = False, progress: Follow = "auto", quiet: Quiet = False
) -> None:
    """Write a table from which the rules that the policy lists can't be mined, mine it again, and publish it.

    It is the run of a policy with algorithm: hide-rules, which `sqlanon check` holds against the table. It tells the
    figures of each rule before and after, the items taken out, and the other rules that are lost or new. docs/output.md
    says more.
    """
    loaded = loading.load_policy(policy)
    texts = texts_of_policy(loaded)
    if texts is None or loaded.algorithm.recodes != "items":
        raise PolicyError(
            f"{policy} lists no rules to hide (algorithm: hide-rules): sqlanon run {quoted(policy)} carries it out."
        )
    texts.tell_run(call, loaded, replace=replace, progress=progress, quiet=quiet)


def _text(mined: Associations) -> str:
    head = (
        f"{quantity(mined.total, 'rule')} from up to {quantity(mined.most, 'column')}, with a support of at least"
        f" {mined.support:,} and a confidence of at least {percent(mined.confidence)}.\n"
        f"  {mined.singling_out:,} single out: fewer than {mined.k:,} {mined.unit} have the left side\n"
        f"  {mined.giving_away:,} give away: {mined.k:,} {mined.unit} or more have it, and the confidence is above"
        f" {percent(mined.bound)}"
    )
    if not mined.rules:
        return head
    rows = [
        [_side(one.left), _side(one.right), one.support, one.left_support, percent(one.confidence), _tells(one)]
        for one in mined.rules
    ]
    first = "" if len(mined.rules) == mined.total else f"\nThe first {len(mined.rules):,} (--limit lists more):"
    headings = ["who has", "has", "both", "left", "confidence", ""]
    return f"{head}\n{first}\n{table(headings, rows, widest=72)}"


def _side(values: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name} = {'NULL' if text is None else text}" for name, text in values.items())


def _tells(rule: AssociationRule) -> str:
    return "singles out" if rule.singles_out else "gives away" if rule.gives_away else ""
