"""One site among the others: it tells them messages, adds up counts with them, and leaves.

Sums are of additive shares: each site splits its counts into numbers at random, modulo 2^64, one for each site, which
add up to them; each site adds the shares that it was sent, and the sums of all shares give the sum of the counts. Any
number of sites that put together what they were sent learn of another's counts no more than the sum tells.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from sqlanon.errors import AccessError, PolicyError
from sqlanon.methods.generalization.federation.certificates import Credentials
from sqlanon.methods.generalization.federation.federation_plan import FederationPlan
from sqlanon.support.documents import parse_json

Counts = NDArray[np.uint64]
_MOST_BYTES = 2**20  # of a message in words
_BLOCK = 1_000_000  # counts that are added up together


class Party:
    """A site, connected with all others."""

    _heard = ""  # a digest of all words so far

    def __init__(self, plan: FederationPlan, site: str, key: Path) -> None:
        """Connect with the others, waiting for those that have not started yet.

        Raises PolicyError where the plan or the credentials can't be used, AccessError where a site can't be reached.
        """
        self.plan, self.site = plan, site
        self.place = plan.place_of(site)
        credentials = Credentials(plan, self.place, key)
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        from sqlanon.methods.generalization.federation.mpyc_runtime import (
            SiteRuntime,  # here, as MPyC is an extra, and slow to load
        )

        self._runtime = SiteRuntime(plan, self.place, credentials)
        self._runtime.carry_out(self._runtime.start(), "before all sites were connected")

    def __enter__(self) -> Party:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._runtime.end()
        self._loop.close()

    def tell(self, message: Any, doing: str) -> list[Any]:
        """Tell all sites a message; returns those of all sites, in the order of the plan.

        With it goes a digest of all words before, so that a site that tells others other words is noticed at the next.

        doing: what this is part of, for the error if a site is lost.
        """
        data = json.dumps([self._heard, message], sort_keys=True).encode()
        received = self._exchange([data] * len(self.plan.sites), _MOST_BYTES, doing)
        words = [self._read(one, name) for one, name in zip(received, self.plan.names, strict=True)]
        others = [f"'{name}'" for (heard, _), name in zip(words, self.plan.names, strict=True) if heard != self._heard]
        if others:
            raise AccessError(
                f"What was told before {doing} is not the same at this site and at {', '.join(others)}: a site tells"
                " different sites different words, or is out of step."
            )
        messages = [message for _, message in words]
        self._heard = hashlib.sha256(json.dumps([self._heard, messages], sort_keys=True).encode()).hexdigest()
        return messages

    def add(self, counts: Counts, doing: str) -> Counts:
        """Add up, over the sites, counts that none shows; every site passes as many."""
        blocks = [counts[start : start + _BLOCK] for start in range(0, len(counts), _BLOCK)]
        return np.concatenate([self._add(block, doing) for block in blocks]) if blocks else counts

    def _add(self, counts: Counts, doing: str) -> Counts:
        own = counts.astype(np.uint64)
        shares = [np.frombuffer(os.urandom(8 * len(own)), "<u8") for _ in range(len(self.plan.sites) - 1)]
        last = own - _sum(shares)
        sent = [*shares, last]
        partial = self._sum_of(sent, doing)
        return self._sum_of([partial] * len(self.plan.sites), doing)

    def _sum_of(self, sent: list[Counts], doing: str) -> Counts:
        """Send each site its counts; returns the sums of those that the sites sent here."""
        received = self.exchange([one.astype("<u8").tobytes() for one in sent], sent[0].nbytes, doing)
        return _sum([np.frombuffer(data, "<u8") for data in received])

    def exchange(self, messages: list[bytes], length: int, doing: str) -> list[bytes]:
        """Send each site its message; returns those of all sites, each of which must have as many bytes."""
        received = self._exchange(messages, length, doing)
        for data, name in zip(received, self.plan.names, strict=True):
            if len(data) != length:
                raise AccessError(
                    f"Site '{name}' sent another number of counts than was agreed; nothing was published."
                )
        return received

    def _exchange(self, messages: list[bytes], most: int, doing: str) -> list[bytes]:
        """Send each site its message; returns those of all sites, of which none has more bytes than `most`."""
        received: list[bytes] = self._runtime.carry_out(self._runtime.exchange(messages, most), doing)
        return received

    def _read(self, data: bytes, site: str) -> tuple[str, Any]:
        """Read the digest of earlier words, and a message."""
        try:
            words = parse_json(data.decode()) if len(data) <= _MOST_BYTES else None
        except (PolicyError, UnicodeDecodeError):
            words = None
        match words:
            case [str(heard), message]:
                return heard, message
        return self._refuse(site)

    def _refuse(self, site: str) -> NoReturn:
        raise AccessError(f"Site '{site}' sent something that is no message; do all run the same version of sqlanon?")


def _sum(parts: list[Counts]) -> Counts:
    return np.asarray(np.sum(parts, axis=0, dtype=np.uint64))
