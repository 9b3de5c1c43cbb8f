"""This module judges addresses: whether a request may be made to one, and which of the environment's proxies it takes.

They are taken apart by the code that the request is made with, so that nobody reads another host in them than is asked.
Proxies are the session's own affair; here they are only named in messages, by variable and without a password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from huggingface_hub.utils import httpx  # type: ignore[attr-defined]  # exported in all its versions, undeclared

__all__ = ["Origin", "Proxy", "ProxyError", "UnusableAddressError", "check_proxies", "joined", "origin_of", "proxy_for"]

_PORTS: Mapping[str, int] = {"http": 80, "https": 443}
_PROXY_PORTS: Mapping[str, int] = {**_PORTS, "socks5": 1080, "socks5h": 1080}


_HOST = re.compile(r"[\w.:-]+", re.ASCII)
_LAST_PORT = 65_535


class UnusableAddressError(Exception):
    """No request can be made to this address, and trying again is of no use."""


class ProxyError(UnusableAddressError):
    """The proxy that the environment names cannot be used as it is named there."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where connections go: two addresses with the same origin can share one."""

    scheme: str
    host: str
    port: int

    @property
    def netloc(self) -> str:
        """Host and port, without a user or password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy and the variable of the environment that names it."""

    variable: str
    scheme: str
    netloc: str


def origin_of(url: str) -> Origin:
    """The origin of an address.

    Raises:
        UnusableAddressError: for anything but http and https, or an address without a usable host.
    """
    try:
        parts = httpx.URL(url)
        scheme, host, port = parts.scheme, parts.raw_host.decode("ascii"), parts.port
        host.encode("idna")  # as the socket will
    except (httpx.InvalidURL, ValueError) as error:
        raise UnusableAddressError(f"it is no valid address ({error!s:.80})") from None
    if not _HOST.fullmatch(host or "-") or not 0 <= (port or 0) <= _LAST_PORT:
        raise UnusableAddressError("it is no valid address (no host or port can be spelt so)")
    if scheme not in _PORTS or not host:
        raise UnusableAddressError(f"an http or https address with a host was expected, found {url[:40]!r}")
    return Origin(scheme, host, _PORTS[scheme] if port is None else port)


def joined(url: str, location: str) -> str:
    """Where a redirect leads, without a user and password: they would be sent as a login.

    Raises:
        UnusableAddressError: when that is no address, or one that two programs read differently.
    """
    if "\\" in location:
        raise UnusableAddressError("a backslash is in it, behind which programs see different hosts")
    try:
        return str(httpx.URL(url).join(location).copy_with(username=None, password=None))
    except (httpx.InvalidURL, ValueError) as error:
        raise UnusableAddressError(f"it is no valid address ({error!s:.80})") from None


def proxy_for(origin: Origin) -> Proxy | None:
    """The environment's proxy on the way to an origin; raises ProxyError where that is none."""
    from urllib.request import getproxies, proxy_bypass

    found = getproxies()
    kind = origin.scheme if found.get(origin.scheme) else "all"
    if not found.get(kind) or proxy_bypass(f"{origin.host}:{origin.port}"):
        return None
    return _proxy(kind, found[kind])


def check_proxies() -> None:
    """Raise ProxyError for the first of the environment's proxies that is none."""
    from urllib.request import getproxies

    found = getproxies()
    for kind in (*_PORTS, "all"):
        if found.get(kind):
            _proxy(kind, found[kind])


def _proxy(kind: str, url: str) -> Proxy:
    names = (f"{kind}_proxy", f"{kind.upper()}_PROXY")
    variable = next((name for name in names if os.environ.get(name) == url), f"the system's setting for {kind}")
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        host, port = "", None
    if not host:
        raise ProxyError(f"{variable} names no proxy; an address such as http://host:port was expected")
    if parts.scheme not in _PROXY_PORTS or (parts.scheme.startswith("socks") and not _speaks_socks()):
        raise ProxyError(
            f"{variable} names a proxy of scheme '{parts.scheme:.20}'; http and https are spoken, as in "
            f"{variable}=http://host:port, and socks5 where the package socksio is installed"
        )
    return Proxy(variable, parts.scheme, f"{host}:{port or _PROXY_PORTS[parts.scheme]}")


def _speaks_socks() -> bool:
    from importlib.util import find_spec

    return find_spec("socksio") is not None
