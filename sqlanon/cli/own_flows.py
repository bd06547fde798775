"""Releases that show no classes, as check and run carry them out: noisy cells, changed values, hidden rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlanon.cli.deferred import hiding, private, private_check, randomized, runner, sources
from sqlanon.cli.deferred import progress as progressing
from sqlanon.errors import PolicyError

if TYPE_CHECKING:
    from sqlanon.cli.call import Call
    from sqlanon.policy import Policy


@dataclass(frozen=True)
class OwnFlow:
    """The words for policies of one kind, as they are checked and carried out.

    subject: what options are said to have no meaning for.
    rule: which rows are left out, told before a row is read. is_timed: whether progress tells seconds.
    """

    subject: Callable[[Policy], str]
    check_text: Callable[[Any], str]
    result_text: Callable[[Any], str]
    rule: Callable[[Policy], str | None] = lambda _: None
    is_timed: bool = True

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
            result = runner.run(policy, replace=replace, options=call.options, observer=watching)
        with call.telling(result.run):
            if call.json:
                call.emit(result.as_json())
            else:
                print(self.result_text(result))


def own_flow_of(policy: Policy) -> OwnFlow | None:
    """Find the words for a policy whose release shows no classes; None for all others."""
    return _FLOWS.get(policy.algorithm.recodes)


def _algorithm(policy: Policy) -> str:
    return f"algorithm: {policy.algorithm.name}"


# By `Recodes`, whose module is not loaded for it; lambdas, as a module is loaded when something of it is first used.
_FLOWS = {
    "counts": OwnFlow(
        subject=lambda _: "differential privacy",
        check_text=lambda checked: private.check_text(checked),
        result_text=lambda result: private.result_text(result),
        rule=lambda policy: private_check.rule_of_rows(policy),
        is_timed=False,
    ),
    "noise": OwnFlow(
        subject=_algorithm,
        check_text=lambda checked: randomized.check_text(checked),
        result_text=lambda result: randomized.result_text(result),
    ),
    "items": OwnFlow(
        subject=_algorithm,
        check_text=lambda checked: hiding.check_text(checked),
        result_text=lambda result: hiding.result_text(result),
    ),
}
