"""Restricts outgoing messages: an address that a user configured must not reach the internal network.

The name is resolved once, every address of it is checked, and the connection goes to exactly that address.
The address that a packet really reaches counts: IPv4 inside IPv6 (mapped, 6to4, Teredo, NAT64) is extracted
first. The ranges are listed, because `ipaddress.is_global` alone allows multicast, site-local and translated
ones.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

import msgspec

from holdfast.errors import EgressError

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

PORTS = frozenset({443, 8443})
LONGEST = 2048

_HINT = "Use a public https address, or ask the operator to allow this host."

_NOT_OUTSIDE_4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
        "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
        "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    )
)  # fmt: skip
_GLOBAL_6 = IPv6Network("2000::/3")
_NOT_OUTSIDE_6 = tuple(IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "3fff::/20"))

# IPv6 that stands for an IPv4 address in its last four bytes: compatible, mapped, translated (SIIT), NAT64.
_EMBEDDING = tuple(
    IPv6Network(text) for text in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")
)
_TO_METADATA = frozenset({"169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254"})
_METADATA_NAMES = frozenset(
    {"metadata", "metadata.google.internal", "instance-data", "instance-data.ec2.internal",
     "metadata.tencentyun.com", "metadata.azure.internal"}
)  # fmt: skip


class EgressTarget(msgspec.Struct, frozen=True):
    """A parsed address: `host` is the name for TLS and the Host header."""

    host: str
    port: int
    path: str
    tls: bool

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


class Egress(msgspec.Struct, frozen=True):
    """`allow`: hosts (`name` or `name:port`) that the operator trusts: plain http, other ports and internal
    addresses are allowed for them; metadata addresses of clouds never are."""

    allow: tuple[str, ...] = ()
    timeout: float = 15.0  # seconds for all of one request
    max_reply: int = 64 * 1024

    def allows(self, host: str, port: int) -> bool:
        names = {host, f"{host}:{port}", f"[{host}]", f"[{host}]:{port}"}
        return any(each.lower() in names for each in self.allow)


def target_of(url: str, egress: Egress) -> EgressTarget:
    """Raises EgressError if the URL is not valid or not allowed, as far as can be seen without resolving
    it."""
    parts = _split(url)
    host = _host(parts, url)
    tls = parts.scheme == "https"
    port = _port(parts) or (443 if tls else 80)
    allowed = egress.allows(host, port)
    if parts.scheme not in ("http", "https") or not (tls or allowed):
        raise EgressError(f"{_shown(url)} is not https.", hint=_HINT)
    # Also for allowed hosts: the metadata service hands out credentials of the machine.
    if host in _METADATA_NAMES:
        raise EgressError(f"{host} is the metadata service of a cloud.", hint=_HINT)
    if port not in PORTS and not allowed:
        raise EgressError(f"{_shown(url)} has port {port}; 443 and 8443 are allowed.", hint=_HINT)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return EgressTarget(host, port, path, tls)


def _split(url: str) -> SplitResult:
    # urlsplit drops line breaks and accepts backslashes; browsers and servers treat both differently.
    if len(url) > LONGEST or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise EgressError(
            f"an address must have at most {LONGEST} printable ASCII characters, without spaces or "
            f"backslashes.",
            hint="Write names of other scripts in their xn-- form.",
        )
    try:
        return urlsplit(url)
    except ValueError as error:
        raise EgressError(f"{_shown(url)} is not an address: {error}.") from None


def _host(parts: SplitResult, url: str) -> str:
    if parts.username is not None or parts.password is not None:
        raise EgressError(
            "an address must not contain a user name or a password.", hint="Use a signed webhook."
        )
    # "metadata.example." is the same name as without the dot; "%" would be a zone of an IPv6 address.
    host = (parts.hostname or "").rstrip(".")
    if not host or "%" in host:
        raise EgressError(f"{_shown(url)} has no host.", hint="Write https://host/path.")
    return host


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError as error:
        raise EgressError(f"the port of the address is not valid: {error}.") from None


def _shown(url: str) -> str:
    """Without the path, which is often a secret."""
    return repr(
        url.partition("://")[0] + "://" + url.partition("://")[2].partition("/")[0].rpartition("@")[2]
    )


async def address_of(target: EgressTarget, egress: Egress, resolve: Resolve | None = None) -> str:
    """The address to connect to. Raises EgressError if any address of the name is internal; OSError if it has
    none."""
    found = [ip_address(text) for text in await (resolve or _resolve)(target.host, target.port)]
    if not found:
        raise OSError(f"{target.host} has no address")
    allowed = egress.allows(target.host, target.port)
    # Every address and not only the first: the order of a DNS reply is the choice of its owner.
    for address in found:
        if is_metadata(address) or not (allowed or is_outside(address)):
            raise EgressError(
                f"{target.host} resolves to {address}, which is not a public address.", hint=_HINT
            )
    # An address and not the name: a second lookup at connection
    # time could return an internal address (DNS rebinding).
    return str(found[0])


async def _resolve(host: str, port: int) -> list[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(info[4][0]) for info in found]


def is_outside(address: Address) -> bool:
    """Whether it belongs to the public internet, also after unwrapping IPv4 inside IPv6."""
    return all(_is_public(reached) for reached in reached_by(address))


def is_metadata(address: Address) -> bool:
    return any(str(reached) in _TO_METADATA for reached in (address, *reached_by(address)))


def reached_by(address: Address) -> tuple[Address, ...]:
    """The addresses that a packet to this one ends up at: those inside it, or itself."""
    if isinstance(address, IPv4Address):
        return (address,)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    if address.teredo is not None:
        # Teredo embeds both the server and the client; a packet may reach either.
        return (*address.teredo, address)
    if any(address in network for network in _EMBEDDING):
        return (IPv4Address(address.packed[12:]),)
    if address.packed[8:12] in (b"\0\0\x5e\xfe", b"\2\0\x5e\xfe"):  # ISATAP
        return (IPv4Address(address.packed[12:]), address)
    return (address,)


def _is_public(address: Address) -> bool:
    if address.is_multicast or address.is_unspecified or address.is_loopback or address.is_link_local:
        return False
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_OUTSIDE_4)
    return address in _GLOBAL_6 and not any(address in network for network in _NOT_OUTSIDE_6)
