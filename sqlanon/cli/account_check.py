"""account check: who could be told from whom by releases that exist, all of them together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlanon.cli.call import HERE, Call
from sqlanon.cli.deferred import checking, loading, plans
from sqlanon.cli.layout import table
from sqlanon.errors import ProtectionError
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.report.releases_together.checking import Together, TogetherGroups

_WORST = 10  # pairs of releases that are listed
_PolicyOption = Annotated[
    Path, typer.Option("--policy", "-p", help="A policy of the people: their source, `subject`, roles and models.")
]


def check_command(
    call: Call,
    releases: Annotated[
        list[str],
        typer.Argument(
            metavar="RELEASE…",
            help="Two releases or more: runs of the policy's catalog, tables of the source's database, or files.",
        ),
    ],
    policy: _PolicyOption = HERE,
) -> int:
    """Check who could be told from whom by releases that exist, also of other programs. Nothing is changed or entered.

    Persons of the policy's source are grouped by their classes in all releases: those of a run by its rules, those of a
    table or file by what its labels cover. Exit code 3 if a group has fewer persons than k, or violates a model of
    sensitive values.
    """
    checked = checking.check_releases(loading.load_policy(policy), releases, call.options)
    if call.json:
        call.emit(checked.as_json())
    else:
        print(_text(checked))
    return 0 if checked.satisfied else ProtectionError.exit_code


def _text(checked: Together) -> str:
    """A check for people."""
    whole = checked.all_groups
    lines = [
        f"{quantity(len(checked.releases), 'release')} together: {quantity(whole.groups, 'group')} of"
        f" {quantity(whole.persons, 'person')}, the smallest of {whole.smallest:,};"
        f" {quantity(whole.below_k, 'person')} in groups of fewer than {checked.k}.",
    ]
    for model in checked.models:
        spec = plans.spec_text({"model": model.model, **model.parameters})
        lines.append(
            f"  {spec}: " + ("holds in all groups" if model.satisfied else f"NO ({model.violations:,} groups)")
        )
    lines.append(_table(checked.each, checked.k))
    if len(checked.releases) > 2:
        lines += [f"The worst pairs of {len(checked.pairs):,}:", _table(checked.pairs[:_WORST], checked.k)]
    for one in checked.releases:
        if one.ambiguous:
            lines.append(
                f"{one.name}: labels of several classes cover {quantity(one.ambiguous, 'person')}. Persons are grouped"
                " by the set of classes that may hold them: groups may be larger than reported, and are not smaller."
            )
        if one.omits:
            lines.append(f"{one.name} does not show {', '.join(one.omits)}.")
    return "\n".join(lines)


def _table(groups: tuple[TogetherGroups, ...], k: int) -> str:
    headings = ["release", "persons", "groups", "smallest", f"below {k}"]
    rows = [[" + ".join(one.releases), one.persons, one.groups, one.smallest, one.below_k] for one in groups]
    return table(headings, rows)
