"""Rules between the keys of policies that hide association rules, and of those that don't."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlanon.methods.rule_hiding.policy import HiddenRule, HiddenRulesParameters, HideRules
from sqlanon.policy.algorithm_parameters import Recodes
from sqlanon.policy.attributes import Role
from sqlanon.policy.document import Path
from sqlanon.policy.grammar import Policy
from sqlanon.policy.unused import WithoutClasses
from sqlanon.support.suggest import did_you_mean

_PARTS = WithoutClasses(
    algorithm="hide-rules",
    model="hidden-rules",
    release="a release with hidden rules",
    file="a table is released; export it afterwards.",
    url="write a table of the source's database; it can be copied afterwards.",
)
_DIGITS = 6  # after the point, of a confidence: so products of counts stay whole numbers of 64 bits


def hiding_of(policy: Policy) -> tuple[HideRules, HiddenRulesParameters]:
    """Return the search and the model of a policy that hides rules."""
    (model,) = policy.privacy
    assert isinstance(policy.algorithm, HideRules)
    assert isinstance(model, HiddenRulesParameters)
    return policy.algorithm, model


def hiding_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    """Say what does not go with the hiding of rules, or only with it.

    place: writes the path of a key for people.
    """
    yield from _PARTS.model_problems(policy, place)
    hides_rules = policy.algorithm.recodes is Recodes.ITEMS
    if not hides_rules or len(policy.privacy) != 1 or not isinstance(policy.privacy[0], HiddenRulesParameters):
        return
    yield from _PARTS.unused_problems(policy, place)
    yield from _role_problems(policy, place)
    yield from _layout_problems(policy, place)
    yield from _rule_problems(policy, place)


def _role_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    for name, attribute in policy.attributes.items():
        path = place(("attributes", name))
        if attribute.role is Role.QUASI_IDENTIFIER:
            yield (
                f"{path}: a quasi-identifier would be released as it is, as hide-rules hides rules and not people; hide"
                " the rules of an anonymized table, or say that nobody can be recognized by it (role: insensitive)."
            )


def _layout_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    algorithm, _ = hiding_of(policy)
    if algorithm.method == "border" and algorithm.most == 1:
        yield f"{place(('algorithm', 'most'))}: method: border keeps sets of up to `most` items; write 2 or more."
    for key in ("transaction", "item"):
        name, path = getattr(algorithm, key), place(("algorithm", key))
        if name is None:
            continue
        yield from _released_problems(policy, name, path)
        if algorithm.transaction is None or algorithm.item is None:
            yield f"{path}: transaction and item go together; name both columns, or none where rows are transactions."
        elif algorithm.transaction == algorithm.item:
            yield f"{path}: transaction and item are two columns."


def _released_problems(policy: Policy, name: str, path: str) -> Iterator[str]:
    attribute = policy.attributes.get(name)
    if attribute is None:
        yield f"{path}: '{name}' is not among the attributes; {did_you_mean(name, policy.attributes)}"
    elif attribute.role.leaves_out:
        yield f"{path}: '{name}' is left out of the release (role: {attribute.role.value}); give it another role."


def _rule_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    algorithm, model = hiding_of(policy)
    model_place = len(policy.privacy) - 1
    shares: list[tuple[Path, float]] = [(("privacy", model_place, "confidence"), model.confidence)]
    for number, rule in enumerate(model.rules):
        path: Path = ("privacy", model_place, "rules", number)
        shares.append(((*path, "confidence"), model.confidence if rule.confidence is None else rule.confidence))
        if rule.names_columns is (algorithm.transaction is not None):
            form = "lists of items" if algorithm.transaction is not None else "mappings of columns to values"
            yield f"{place(path)}: sides must be {form} here."
        for name in _columns_of(rule):
            yield from _released_problems(policy, name, place(path))
    for path, share in shares:
        if round(share, _DIGITS) != share:
            yield f"{place(path)} must have up to {_DIGITS} digits after the point."


def _columns_of(rule: HiddenRule) -> tuple[str, ...]:
    return (*rule.if_, *rule.then) if rule.names_columns else ()
