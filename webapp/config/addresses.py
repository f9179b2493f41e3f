"""The client's address of a request."""

from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from django.conf import settings
from django.http import HttpRequest


def address_of(request: HttpRequest) -> str:
    """The client's address: behind a trusted proxy the last one that the proxy added, never one
    that the client sent."""
    return _chosen(request.headers.get("X-Forwarded-For", ""), request.META.get("REMOTE_ADDR", ""))


def address_of_scope(scope: Mapping[str, Any]) -> str:
    """The same for a socket."""
    forwarded = b",".join(value for name, value in scope.get("headers", ()) if name.lower() == b"x-forwarded-for").decode("latin1")
    return _chosen(forwarded, (scope.get("client") or ("",))[0])


def _chosen(forwarded: str, remote: str) -> str:
    return (forwarded.split(",")[-1].strip() if settings.SECURE_PROXY_SSL_HEADER else "") or remote


def host_of(address: str) -> str:
    """One host's address: of IPv4 the address, of IPv6 the first one of its network of 2**64
    addresses. Other texts stay as they are.

    >>> host_of("2001:db8:0:7::1"), host_of("192.0.2.7"), host_of("")
    ('2001:db8:0:7::', '192.0.2.7', '')
    """
    try:
        host = ip_address(address)
    except ValueError:
        return address
    return str(ip_network((host, 64), strict=False).network_address) if isinstance(host, IPv6Address) and host.ipv4_mapped is None else address
