"""This module opens the sockets: to an origin itself or through the environment's proxy, with TLS where asked for.

Certificates and proxies are those that the client library of the Hub would use: ``SSL_CERT_FILE`` and
``SSL_CERT_DIR``, else certifi's list; ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``.
"""

from __future__ import annotations

import base64
import http.client
import os
import socket
import ssl
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote, urlsplit

__all__ = ["Connection", "Origin", "ProxyError", "UnusableAddressError", "dial", "origin_of"]

_PORTS: Mapping[str, int] = {"http": 80, "https": 443}


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
        """Host and port as the ``Host`` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class _Proxy:
    variable: str
    host: str
    port: int
    authorization: str | None


class Connection(http.client.HTTPConnection):
    """A kept-alive connection that was dialled here; ``prefix`` goes before the path where a proxy wants all of it."""

    prefix = ""
    proxy_authorization: str | None = None


def origin_of(url: str) -> Origin:
    """The origin of an address.

    Raises:
        UnusableAddressError: for anything but http and https, or an address without a host.
    """
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
        (host or "").encode("idna")
    except ValueError as error:
        raise UnusableAddressError(f"it is no valid address ({error!s:.80})") from None
    if scheme not in _PORTS or not host:
        raise UnusableAddressError(f"an http or https address with a host was expected, found {url[:40]!r}")
    return Origin(scheme, host, port or _PORTS[scheme])


def dial(origin: Origin, *, connect_timeout: float, read_timeout: float) -> Connection:
    """A connection, ready for requests.

    Raises:
        OSError: when nobody answers, the name is unknown, or TLS fails.
        ProxyError: when the environment's proxy is of a kind that is not spoken here, or wants a login.
    """
    proxy = _proxy_for(origin)
    sock = _connect(origin, proxy, connect_timeout)
    with ExitStack() as on_failure:
        on_failure.enter_context(sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if origin.scheme == "https":
            if proxy:
                _open_tunnel(sock, origin, proxy)
            sock = on_failure.enter_context(_tls().wrap_socket(sock, server_hostname=origin.host))
        sock.settimeout(read_timeout)
        on_failure.pop_all()  # all went well: the socket stays open
    connection = Connection(origin.host, origin.port)
    connection.sock = sock
    if proxy and origin.scheme == "http":
        connection.prefix = f"http://{origin.netloc}"
        connection.proxy_authorization = proxy.authorization
    return connection


@cache
def _tls() -> ssl.SSLContext:
    import certifi

    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if not file and not folder:
        file = certifi.where()
    return ssl.create_default_context(cafile=file or None, capath=folder or None)


def _proxy_for(origin: Origin) -> _Proxy | None:
    # A plain look first: urllib.request is slow to import, and most machines have no proxy.
    if not any(name.lower().endswith("_proxy") and value for name, value in os.environ.items()):
        return None
    from urllib.request import getproxies, proxy_bypass

    found = getproxies()
    kind = origin.scheme if found.get(origin.scheme) else "all"
    url = found.get(kind)
    if not url or proxy_bypass(f"{origin.host}:{origin.port}"):
        return None
    names = (f"{kind}_proxy", f"{kind.upper()}_PROXY")
    variable = next((name for name in names if os.environ.get(name) == url), f"the system's setting for {kind}")
    return _proxy(url if "://" in url else f"http://{url}", variable)


def _proxy(url: str, variable: str) -> _Proxy:
    """The proxy at an address; neither this nor its password is shown where it is wrong."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _PORTS["http"]
        host.encode("idna")
    except ValueError:
        host = ""
    if not host:
        raise ProxyError(f"{variable} names no proxy; an address such as http://host:port was expected")
    if parts.scheme != "http":
        raise ProxyError(
            f"{variable} names a proxy of scheme '{parts.scheme}'; only http is spoken, as in {variable}=http://host:port"
        )
    authorization = None
    if parts.username is not None:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(secret.encode()).decode()
    return _Proxy(variable, host, port, authorization)


def _connect(origin: Origin, proxy: _Proxy | None, timeout: float) -> socket.socket:
    if proxy is None:
        return socket.create_connection((origin.host, origin.port), timeout)
    try:
        return socket.create_connection((proxy.host, proxy.port), timeout)
    except OSError as error:
        why = error.strerror or error
        raise ConnectionError(f"{proxy.variable} names the proxy {proxy.host}:{proxy.port}: {why}") from None


def _open_tunnel(sock: socket.socket, origin: Origin, proxy: _Proxy) -> None:
    target = f"{origin.host}:{origin.port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("ascii"))
    answer = http.client.HTTPResponse(sock, method="CONNECT")
    answer.begin()
    if answer.status == 407:
        raise ProxyError(
            f"the proxy {proxy.host}:{proxy.port} wants a login (407), as in "
            f"{proxy.variable}=http://user:password@{proxy.host}:{proxy.port}"
        )
    if answer.status != 200:
        raise ConnectionError(f"the proxy answered {answer.status} {answer.reason[:60]}")
