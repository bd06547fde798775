"""Sites that lie, repeat what they sent, or die at any message: nobody publishes what was not decided and verified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sqlanon.errors import AccessError, SqlanonError, VerificationError
from sqlanon.methods.generalization.federation import releasing
from sqlanon.methods.generalization.federation.agreement import describe, require_same_parts
from sqlanon.methods.generalization.federation.party import Party
from sqlanon.methods.generalization.federation.shares import Sharing
from sqlanon.plan.plan import Plan
from tests.methods.generalization.federation.sites import AGES, Sites, attributes
from tests.methods.generalization.federation.support import NAMES
from tests.methods.generalization.federation.threads import Room, release, sites_of

pytestmark = pytest.mark.slow

WEST = NAMES.index("west")
FEW = {"name": "optimal", "quality": "height", "limits": {"age": [1, 1], "sex": [0, 1], "city": [1, 2]}}
REVEALED = ("counts", "decision")


def attacked(directory: Path, reveal: str) -> Sites:
    """Sites with an old release each."""
    sites = sites_of(directory, 3, suppression=0.2, plan={"reveal": reveal}, algorithm=FEW)
    sites.publish_old()
    return sites


def is_shares(sent: list[bytes]) -> bool:
    """Tell whether each site is sent something else."""
    return len(set(sent)) == len(sent)


@pytest.mark.parametrize("reveal", REVEALED)
@pytest.mark.parametrize("last", ["shares", "ready", "commit", "published"])
def test_a_site_that_dies_at_a_message_leaves_every_old_release(last: str, reveal: str, tmp_path: Path) -> None:
    """All but the last message, which follows the commit: then every site has published, and the others say so."""
    sites = attacked(tmp_path, reveal)

    def die(place: int, _number: int, sent: list[bytes]) -> list[bytes]:
        if place == WEST and (is_shares(sent) if last == "shares" else sent[0].endswith(f'"{last}"]'.encode())):
            raise AccessError("dead")
        return sent

    ended = release(sites, Room(NAMES, die, **sites.plan))
    assert {type(error) for error in ended.values()} == {AccessError}, ended
    assert all("'west' left" in str(error) for name, error in ended.items() if name != "west")
    if last == "published":
        assert all("WAS published" in "".join(ended[name].__notes__) for name in ("north", "south"))
        assert all(len(sites.released(name)) > 1 for name in NAMES)
    else:
        sites.require_old()


def other_policy(part: str) -> dict[str, Any]:
    """Changes of a policy by which a site's release becomes another one."""
    columns = attributes()
    columns["age"]["hierarchy"] = {"mapping": {**AGES, "21": ["35-39", "30s"]}}
    return {
        "hierarchy": {"attributes": columns},
        "k": {"privacy": [{"model": "k-anonymity", "k": 2}]},
        "levels": {"algorithm": FEW | {"limits": {"age": [0, 0]}}},
    }[part]


@pytest.mark.parametrize("reveal", REVEALED)
@pytest.mark.parametrize("part", ["hierarchy", "k", "levels"])
def test_forged_digests_publish_nothing(
    part: str, reveal: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A site with another policy says the digests of the others, and its part does not fit theirs."""
    sites = attacked(tmp_path, reveal)

    def forging(party: Party, plan: Plan) -> None:
        described = party.tell(describe(party, plan), "")
        require_same_parts(party, described[0])

    monkeypatch.setattr(releasing, "require_agreement", forging)
    ended = release(sites, west=sites.policy("west", **other_policy(part)))
    assert {type(error) for error in ended.values()} <= {AccessError, VerificationError}, ended
    sites.require_old()


@pytest.mark.parametrize("reveal", REVEALED)
@pytest.mark.parametrize("place", [0, -1])
def test_shares_of_an_earlier_run_are_not_taken_for_new_ones(place: int, reveal: str, tmp_path: Path) -> None:
    """Neither the first nor the last: the sums that follow are no counts, or not those that were decided on."""
    sites = attacked(tmp_path, reveal)
    earlier = Room(NAMES, **sites.plan)
    release(sites, earlier)
    replayed = [number for number, sent in enumerate(earlier.sent) if is_shares(sent[WEST])][place]
    for name in NAMES:
        with sites.opened(name) as database:
            database.sql("DROP TABLE released")
    sites.publish_old()

    def replay(site: int, number: int, sent: list[bytes]) -> list[bytes]:
        is_replayed = (site, number) == (WEST, replayed)
        return [earlier.sent[number][WEST][0], *sent[1:]] if is_replayed else sent  # what one site was sent before

    ended = release(sites, Room(NAMES, replay, **sites.plan))
    assert all(isinstance(error, SqlanonError) for error in ended.values()), ended
    if (place, reveal) == (0, "counts"):
        assert any("are no counts of rows" in str(error) for error in ended.values())
    sites.require_old()


def test_a_site_that_tells_each_site_other_words_is_noticed_at_the_next() -> None:
    """The first words are heard, the second compared; who forges what it has heard is out of step with all."""

    def two_tongues(place: int, number: int, sent: list[bytes]) -> list[bytes]:
        return [*sent[:2], sent[2].replace(b"north", b"south")] if (place, number) == (0, 0) else sent

    def forge(place: int, number: int, sent: list[bytes]) -> list[bytes]:
        return [b'["0", "again"]'] * 3 if (place, number) == (0, 1) else sent

    def part(party: Party) -> Any:
        return [party.tell(word, "while words were told") for word in (party.site, "again", "and again")]

    told = [[*NAMES], ["again"] * 3, ["and again"] * 3]
    assert Room(NAMES).run(part) == [told] * 3
    for tamper, names in ((two_tongues, ["'west'", "'west'", "'north', 'south'"]), (forge, ["'north'"] * 3)):
        for error, others in zip(Room(NAMES, tamper).run(part), names, strict=True):
            assert isinstance(error, AccessError)
            assert f"is not the same at this site and at {others}: a site tells" in str(error)


def test_shares_that_do_not_belong_together_open_nothing() -> None:
    """A site that opens another share than it computed is noticed by all others."""

    def other(place: int, number: int, sent: list[bytes]) -> list[bytes]:
        return [b"\7\0\0\0"] * len(sent) if (place, number) == (0, 1) else sent

    def part(party: Party) -> Any:
        sharing = Sharing(party)
        return sharing.open(sharing.share_sum(np.array([5], np.uint64), ""), "").tolist()

    for sites in (3, 4, 5):
        assert Room(sites).run(part) == [[5 * sites]] * sites
        ended = Room(sites, other).run(part)
        assert all("do not belong together" in str(error) for error in ended)
