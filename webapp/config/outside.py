"""The user-supplied addresses to which this installation connects: public ones, and those in
networks that its operator named."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings

from engine.model.messages import Message

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
ALLOCATED = ipaddress.ip_network("2000::/3")
"""The public IPv6 addresses, without site-local ones and those that represent IPv4 addresses."""
SPECIAL = [ipaddress.ip_network(text) for text in ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]
"""Special-purpose networks (IANA) inside the public ones: protocols, documentation, and tunnels to
IPv4 addresses that were not checked."""


class RefusedAddress(ValueError):
    """The address is not one that this installation connects to."""


def is_named(text: str) -> bool:
    """Whether the numeric address is in a network that the operator named; false for a public one.
    Raises RefusedAddress for all others."""
    return is_among(text, [ipaddress.ip_network(network) for network in settings.WEBHOOK_NETWORKS], public=settings.PUBLIC_ADDRESSES)


def is_among(text: str, networks: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network], *, public: bool) -> bool:
    """The same for these networks, with public addresses or without."""
    address: Address = ipaddress.ip_address(text.split("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if any(address in network for network in networks):
        return True
    outside = address.version == 6 and address not in ALLOCATED
    if outside or not address.is_global or address.is_multicast or address.is_reserved or any(address in network for network in SPECIAL):
        raise RefusedAddress(
            Message("The host's address is not a public one. An operator of this installation can allow internal networks: VEDETTE_WEBHOOK_NETWORKS.")
        )
    if not public:
        raise RefusedAddress(Message("This installation connects only to networks that its operator named: VEDETTE_WEBHOOK_NETWORKS."))
    return False


LOOKUP_SECONDS = 2.0
_LOOKUPS = ThreadPoolExecutor(4, thread_name_prefix="lookup")
"""A name server that hangs blocks only these threads."""


def check_host(host: str) -> None:
    """Raises RefusedAddress when `host`, a name or a number, leads to an address
    that is not permitted now.

    A host that cannot be looked up in time passes: every connection is checked again.
    """
    lookup = _LOOKUPS.submit(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
    try:
        addresses = lookup.result(LOOKUP_SECONDS)
    except (OSError, UnicodeError, TimeoutError):
        lookup.cancel()
        return
    for *_, address in addresses:
        is_named(str(address[0]))
