"""Stands in for the identity daemon of a private network: who has this address? Python alone, nothing to install.

    python examples/identity/daemon.py /tmp/whois.sock 127.0.0.2=laptop,ann@example.com

It answers `GET /localapi/v0/whois?addr=ADDRESS` on a Unix socket as tailscaled does: 200 with the machine and its user,
or 404. Clients are those of the command line: ADDRESS=MACHINE,USER. It proves nobody's identity: for trying out only.
"""

from __future__ import annotations

import ipaddress
import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from urllib.parse import parse_qs, urlsplit

AUTHORITY = "local-tailscaled.sock"
"""The only host that the daemon answers to: so that no page in a browser can make it talk."""

Clients = dict[str, tuple[str, str]]
"""IP address to machine and user."""


class Daemon(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True

    def __init__(self, path: str, clients: Clients) -> None:
        super().__init__(path, Answering)
        self.clients = clients


class Answering(BaseHTTPRequestHandler):
    server: Daemon
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if self.headers.get_all("host") != [AUTHORITY]:
            self._answer(403, b"invalid localapi request\n")
        elif url.path != "/localapi/v0/whois":
            self._answer(404, b"no such path\n")
        else:
            self._whois(parse_qs(url.query).get("addr", [""])[0])

    def _whois(self, text: str) -> None:
        try:
            address, port = split(text)
        except ValueError:
            self._answer(400, b"invalid 'addr' parameter\n")
            return
        known = self.server.clients.get(address)
        if known is None:
            where = f"[{address}]" if ":" in address else address
            self._answer(404, f"no match for {where}:{port}\n".encode())
            return
        node, login = known
        found = {"Node": {"Name": node}, "UserProfile": {"LoginName": login}}
        self._answer(200, json.dumps(found).encode(), "application/json")

    def _answer(self, status: int, body: bytes, content_type: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "-"  # for the log: clients of a Unix socket have no address


def split(text: str) -> tuple[str, int]:
    """Address and port of `1.2.3.4`, `1.2.3.4:80`, `::1` or `[::1]:80`. Raises ValueError."""
    try:
        return str(ipaddress.ip_address(text)), 0
    except ValueError:
        host, _, port = text.rpartition(":")
        return str(ipaddress.ip_address(host.strip("[]"))), int(port)


def client(text: str) -> tuple[str, tuple[str, str]]:
    """ADDRESS=MACHINE,USER. Raises ValueError."""
    address, _, who = text.partition("=")
    node, _, login = who.partition(",")
    return str(ipaddress.ip_address(address)), (node, login)


def main(path: str, *clients: str) -> None:
    Path(path).unlink(missing_ok=True)  # of a daemon that was killed
    daemon = Daemon(path, dict(map(client, clients)))
    sys.stderr.write(f"{len(clients)} known clients, on {path}\n")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        daemon.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        os.unlink(path)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
