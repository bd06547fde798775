"""Releases that show no classes, as `check`, `run` and `verify` tell of them; methods bring the words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlanon.cli.deferred import progress as progressing
from sqlanon.cli.deferred import sources
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.support.methods import method_of

if TYPE_CHECKING:
    from sqlanon.cli.call import Call
    from sqlanon.policy import Policy
    from sqlanon.report.release_audit.recorded import RecordedAudit


@dataclass(frozen=True)
class ReleaseTexts:
    """The words for policies of one kind, as they are checked and carried out, and their releases audited.

    check_text, result_text, audit_text: write a check, a result and an audit for people.
    subject: names what options have no meaning for, in the error that refuses them.
    rule: which rows are left out, told before a row is read. is_timed: whether progress tells seconds.
    runs_dry: whether the statements of a run can be told without one.
    tell_loss: prints what readers of a release can take away of its protection.
    """

    check_text: Callable[[Any], str]
    result_text: Callable[[Any], str]
    audit_text: Callable[[Any], str]
    subject: Callable[[Policy], str] = lambda policy: name_algorithm(policy)
    rule: Callable[[Policy], str | None] = lambda _: None
    is_timed: bool = True
    runs_dry: bool = False
    tell_loss: Callable[[Call, Policy], None] | None = None

    def refuse(self, policy: Policy, given: Mapping[str, object]) -> None:
        """Refuse options that have no meaning where no classes are made."""
        unfit = [name for name, value in given.items() if value]
        if unfit:
            raise PolicyError(f"{', '.join(unfit)} has no meaning for {self.subject(policy)}; leave it out.")

    def tell_check(self, call: Call, policy: Policy) -> str | None:
        """Check a policy against its table and print what comes of it; gives why a run would be refused."""
        checked = sources.check_without_classes(policy, call.options)
        if call.json:
            call.emit(checked.as_json())
        else:
            print(self.check_text(checked))
        return checked.refusal

    def tell_run(self, call: Call, policy: Policy, *, replace: bool, progress: str, quiet: bool) -> None:
        """Carry out a policy and print the result."""
        rule = self.rule(policy)
        if rule is not None and not call.json and progress != "json":
            call.note(rule)
        with progressing.observer(call, progress, quiet, is_timed=self.is_timed) as watching:
            result = sources.run(policy, replace=replace, options=call.options, observer=watching)
        with call.telling(result.run):
            if call.json:
                call.emit(result.as_json())
            else:
                print(self.result_text(result))

    def tell_audit(self, call: Call, audit: RecordedAudit) -> int:
        """Print what an audit found; the exit code."""
        if call.json:
            call.emit(audit.as_json())
        else:
            print(self.audit_text(audit))
        return 0 if audit.satisfied else ProtectionError.exit_code


def checks_text(audit: RecordedAudit, words: Mapping[str, str]) -> str:
    """The checks of an audit, a line each, in the words that stand for their names."""
    outcomes = {
        name: f"VIOLATED ({check.violations:,})" if check.violations else "passed"
        for name, check in audit.checks.items()
    }
    outcomes |= {name: f"not checked, as {reason}" for name, reason in audit.unchecked.items()}
    return "\n".join(f"  {words.get(name, name)}: {outcome}" for name, outcome in outcomes.items())


def checked_text(checks: Iterable[str]) -> str:
    """Name the checks that a staged release has passed, in a sentence."""
    return f"Checked: {', '.join(name.replace('_', ' ') for name in checks)}."


def recorded_text(audit: RecordedAudit, words: Mapping[str, str]) -> str:
    """Tell of an audit by the record of a run; words: those that stand for the names of checks."""
    return (
        f"{audit.table}, made by run {audit.run}:\n{checks_text(audit, words)}\n"
        "The source was not read; the run held the release against it."
    )


def texts_of(algorithm: str) -> ReleaseTexts:
    """Find the words for an algorithm whose releases show no classes.

    Raises PolicyError where its method is not there.
    """
    method = method_of(algorithm)
    if method is None or method.text is None:
        raise PolicyError(f"No installed method has the algorithm '{algorithm}'.")
    texts: ReleaseTexts = method.load(method.text)
    return texts


def texts_of_policy(policy: Policy) -> ReleaseTexts | None:
    """Find the words for a policy whose release shows no classes; None for all others."""
    return None if policy.algorithm.recodes.makes_classes else texts_of(policy.algorithm.name)


def name_algorithm(policy: Policy) -> str:
    """Name the algorithm of a policy, as the policy writes it."""
    return f"algorithm: {policy.algorithm.name}"
