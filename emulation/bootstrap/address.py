"""A listening address as the 28 bytes of a sockaddr_in6, which is what travels through the store."""

import ipaddress
import socket
import struct
from typing import Any

# family, port (network order), flow info, address, scope. Flow info is free here: virtual ranks that share
# one listener are told apart by it.
_FORM = struct.Struct("<H2sI16sI")
ADDRESS_BYTES = _FORM.size
assert ADDRESS_BYTES == 28


def pack(host: str, port: int, lane: int = 0) -> bytes:
    """28 bytes for an IPv4 or IPv6 address; `lane` numbers a virtual rank behind a shared listener."""
    ip = ipaddress.ip_address(host)
    family = socket.AF_INET if ip.version == 4 else socket.AF_INET6
    return _FORM.pack(family, port.to_bytes(2, "big"), lane, ip.packed.ljust(16, b"\0"), 0)


def unpack(data: bytes) -> tuple[str, int, int]:
    """(host, port, lane).

    Raises:
        ValueError: these are not 28 bytes of an address.
    """
    if len(data) != ADDRESS_BYTES:
        raise ValueError(f"{len(data)} bytes instead of {ADDRESS_BYTES}")
    family, port, lane, packed, _ = _FORM.unpack(data)
    if family not in (socket.AF_INET, socket.AF_INET6):
        raise ValueError(f"address family {family}")
    number = int.from_bytes(port, "big")
    if not number:
        raise ValueError("port 0")
    return str(ipaddress.ip_address(packed[:4] if family == socket.AF_INET else packed)), number, lane


def own_host(store: Any) -> str:
    """The address of this host that others reach: the one that leads to the store where that has a host."""
    target = getattr(store, "host", None)
    if isinstance(target, str):
        try:
            family, _, _, _, where = socket.getaddrinfo(target, 9, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect(where)  # sends nothing, picks the route
                return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
    return "127.0.0.1"
