"""Values that a policy's models name: what is shown of a run never has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sqlanon import policy
from sqlanon.errors import ProtectionError
from sqlanon.models import OWN, AlphaK
from sqlanon.policy.privacy import k_asked, models_with_k, parameters_of_model
from sqlanon.policy.shown_policy import flattened_both, without_values
from tests.cli.support import call, make_patients, write_policy
from tests.run_support import Database, anonymize

pytestmark = pytest.mark.slow

SECRET = "zz-secret-diagnosis"
ROWS = [(n, SECRET if n % 5 == 0 else "flu") for n in range(40)]
ROLES = {"q": "quasi-identifier", "s": "sensitive"}


def asked(alpha: float = 0.5, values: tuple[str, ...] = (SECRET,)) -> list[dict[str, Any]]:
    return [{"model": "alpha-k", "attribute": "s", "alpha": alpha, "k": 3, "values": list(values)}]


def test_parameters_that_are_shown_say_how_many_values_are_named() -> None:
    model = AlphaK("s", 0.5, 3, (SECRET, "flu"))
    assert model.shown_parameters == {**model.parameters, "values": "2 values, not shown"}
    assert AlphaK("s", 0.5, 3).shown_parameters == {"attribute": "s", "alpha": 0.5, "k": 3}
    assert "“" not in model.sentence.replace("“s”", "")
    assert SECRET not in model.sentence


def test_every_model_that_names_values_hides_them() -> None:
    """Whatever parameter holds them."""
    models = [kind for kind in OWN.values() if kind.named_values is not OWN["k-anonymity"].named_values]
    assert [kind.name for kind in models] == ["alpha-k", "confidence-bound"]
    assert all(parameters_of_model(kind.name).values_in for kind in models)  # type: ignore[union-attr]


def test_a_recorded_policy_is_shown_without_them_and_still_tells_changes() -> None:
    one, other = {"privacy": asked()}, {"privacy": asked(values=("flu",))}
    shown = without_values(one)
    assert shown["privacy"][0]["values"] == "1 value, not shown"
    assert one["privacy"][0]["values"] == [SECRET]
    before, after = flattened_both(one, other)
    assert before["privacy.alpha-k s.values"] == "1 value, not shown"
    assert after["privacy.alpha-k s.values"] == "1 value, not shown; others than before"
    assert flattened_both(one, one)[1] == before
    assert SECRET not in json.dumps([shown, before, after])


@pytest.mark.either_engine
def test_results_and_refusals_do_not_show_them(database: Database) -> None:
    table = database.create({"q": "INTEGER", "s": "VARCHAR(30)"}, ROWS)
    result = anonymize(database.policy(table, ROLES, privacy=asked()))
    assert result.models[0].parameters["values"] == "1 value, not shown"
    assert SECRET not in json.dumps([one.parameters for one in result.models])
    with pytest.raises(ProtectionError, match="1 value, not shown") as refused:
        anonymize(database.policy(table, ROLES, privacy=asked(alpha=0.1)), replace=True)
    assert SECRET not in str(refused.value)


@pytest.mark.either_engine
def test_output_does_not_show_them(database_url: str, tmp_path: Path) -> None:
    make_patients(database_url)
    text = "{model: distinct-l-diversity, attribute: disease, l: 2}"
    path = write_policy(tmp_path, database_url)
    written = path.read_text(encoding="utf-8")
    assert text in written
    named = "{model: alpha-k, attribute: disease, alpha: 0.9, k: 5, values: [asthma]}"
    path.write_text(written.replace(text, named), encoding="utf-8")
    for arguments in (
        ["run", path],
        ["run", path, "--replace", "--json"],
        ["verify", path],
        ["verify", path, "--json"],
    ):
        result = call(*arguments)
        assert result.exit_code == 0, (arguments, result.output)
        assert "asthma" not in result.output.replace("disease is asthma", "")
        assert "1 value, not shown" in result.output


def test_a_sweep_changes_every_k() -> None:
    alpha_k = policy.AlphaKParameters(model="alpha-k", attribute="s", alpha=0.5, k=7)
    plain = policy.KAnonymityParameters(model="k-anonymity", k=3)
    diverse = policy.DistinctLDiversityParameters(model="distinct-l-diversity", attribute="s", l=2)
    assert k_asked((plain, alpha_k)) == 7
    assert [model.k for model in models_with_k((plain, alpha_k), 5)] == [5, 5]  # type: ignore[attr-defined]
    assert models_with_k((alpha_k, diverse), 5) == (alpha_k.model_copy(update={"k": 5}), diverse)
    assert models_with_k((diverse,), 5)[0] == policy.KAnonymityParameters(model="k-anonymity", k=5)
