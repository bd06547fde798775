"""Rules between the keys of differential privacy, which any policy may have, and its model."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlanon.policy.differential_privacy import mechanism_of
from sqlanon.policy.document import Path
from sqlanon.policy.grammar import Policy


def budget_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    """Say which keys are for differential privacy, where the policy does not ask for it.

    place: writes the path of a key for people.
    """
    if mechanism_of(policy.privacy) is not None:
        return
    for name, attribute in policy.attributes.items():
        for key in ("domain", "values"):
            if getattr(attribute, key) is not None:
                path = place(("attributes", name, key))
                yield f"{path} is for differential privacy, which the policy does not ask for; leave it out."
    if policy.budget is not None:
        path = place(("budget",))
        yield f"{path} is for differential privacy; the share of rows that may be left out is suppression."
