"""TLS between sites: each shows its certificate, and takes from every other the very certificate that the plan names.

No authority is asked: whoever holds another certificate, however well signed, is a stranger.
"""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

from sqlanon.errors import PolicyError, unreadable
from sqlanon.methods.generalization.federation.federation_plan import FederationPlan

_MOST_BYTES = 2**16


class Credentials:
    """A site's own key and certificate, and the certificates of all sites, in binary form (DER)."""

    def __init__(self, plan: FederationPlan, place: int, key: Path) -> None:
        """Read the files; raises PolicyError or AccessError for one that can't be used."""
        self._files = [site.certificate for site in plan.sites.values()]
        self._key, self._place = key, place
        _require_private(key)
        self.certificates = [_certificate(name, site.certificate) for name, site in plan.sites.items()]
        if len(set(self.certificates)) < len(self.certificates):
            raise PolicyError("sites: two sites have the same certificate; each needs one of its own.")
        self.listening()  # so that a wrong key shows before anything is opened

    def listening(self) -> ssl.SSLContext:
        """TLS of the side that others connect to: they must show a certificate of a site."""
        context = self._context(ssl.PROTOCOL_TLS_SERVER)
        for place, certificate in enumerate(self.certificates):
            if place != self._place:
                context.load_verify_locations(cadata=certificate)
        return context

    def connecting(self, to: int) -> ssl.SSLContext:
        """TLS of the side that connects to a site: it must show that site's certificate."""
        context = self._context(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.certificates[to])
        return context

    def site_of(self, certificate: bytes | None) -> int | None:
        """Find the site that holds a certificate, by its place; None for a stranger's."""
        places = [place for place, known in enumerate(self.certificates) if known == certificate]
        return places[0] if places and places[0] != self._place else None

    def _context(self, protocol: int) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # the certificate itself is compared, which says more than a name
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        try:
            context.load_cert_chain(self._files[self._place], self._key)
        except (ssl.SSLError, OSError):
            raise PolicyError(
                f"--key: {self._key} is not the private key, without a password, of the certificate"
                f" {self._files[self._place]}."
            ) from None
        return context


def _certificate(site: str, file: str) -> bytes:
    """The one certificate of a file, in binary form."""
    try:
        text = Path(file).read_bytes()[:_MOST_BYTES].decode("ascii", "replace")
    except OSError as error:
        raise unreadable(f"The certificate of site '{site}', {file},", error) from None
    try:
        return ssl.PEM_cert_to_DER_cert(text)
    except ValueError:
        raise PolicyError(f"The certificate of site '{site}', {file}, is no single certificate in PEM.") from None


def _require_private(key: Path) -> None:
    """Refuse a key that others of the machine may read."""
    try:
        mode = key.stat().st_mode
    except OSError as error:
        raise unreadable(f"The private key {key}", error) from None
    if stat.S_IMODE(mode) & 0o077:
        raise PolicyError(f"--key: others may read {key}; take that right away: chmod 600.")
