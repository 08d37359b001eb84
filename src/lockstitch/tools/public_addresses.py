"""Which addresses a fetch may reach: the public ones, and those that were allowed by name or network."""

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from lockstitch.schema.errors import CallerError

from .contract import ToolError
from .worker import in_thread

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
"""RFC 6052: the last 32 bits are an IPv4 address that a gateway will reach."""
_ADDRESSES_MAX: Final = 16
"""Of one name; more are not tried."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What may be reached beside public addresses."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @staticmethod
    def of(allowed: Sequence[str]) -> "Reach":
        """From host names (``localhost``), addresses and networks (``10.0.0.0/8``). Raises CallerError."""
        hosts: set[str] = set()
        networks: list[Network] = []
        for item in allowed:
            try:
                networks.append(ipaddress.ip_network(item, strict=False))
            except ValueError:
                if not item or "/" in item or ":" in item:
                    raise CallerError(
                        f"fetch cannot be allowed to reach {item!r}: give a host, an address or a network"
                    ) from None
                hosts.add(item.lower())
        return Reach(frozenset(hosts), tuple(networks))

    def permits(self, host: str, address: Address) -> bool:
        """Whether the host may be reached at the address it resolved to."""
        if host.lower() in self.hosts or any(address in network for network in self.networks):
            return True
        return all(_is_public(inner) for inner in _meant(address))


async def resolve(host: str, port: int) -> list[str]:
    """Addresses of a host, from the system's resolver. Raises ToolError if there is none."""

    def look_up() -> list[str]:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))[:_ADDRESSES_MAX]

    try:
        return await in_thread(look_up, name="resolver")
    except (OSError, UnicodeError) as error:
        raise ToolError(f"The host {host} was not found: {error}.") from error


async def reachable(host: str, port: int, reach: Reach) -> list[str]:
    """The host's addresses, all of them permitted.

    Raises ToolError if any is not: a name that leads to both kinds is up to something.
    """
    addresses = await resolve(host, port)
    for text in addresses:
        if not reach.permits(host, ipaddress.ip_address(text.partition("%")[0])):
            raise ToolError(
                f"{host} leads to {text}, which is not a public address. Loopback and private addresses are"
                " only fetched from where the user has allowed it."
            )
    return addresses


def _meant(address: Address) -> list[Address]:
    """The address and those that it stands for: IPv4 addresses written as, or tunnelled in, IPv6 ones."""
    found: list[Address] = [address]
    if isinstance(address, ipaddress.IPv6Address):
        found += [inner for inner in (address.ipv4_mapped, address.sixtofour) if inner is not None]
        if address.teredo is not None:
            found += address.teredo
        if address in _NAT64:
            found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if address.ipv4_mapped is not None or address in _NAT64:
            found = found[1:]  # the wrapping itself is not a place
    return found


def _is_public(address: Address) -> bool:
    return address.is_global and not address.is_multicast
