"""The listening sockets of a proxy: one per worker, bind and address, opened here and kept while the bind exists.

Kept, because the system resets the connections that wait in a socket when its last holder closes it: a worker that
dies loses what is in its hands, never what waits for it. Opens nothing but sockets and reports to its caller alone.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dataplane.agent import holders
from dataplane.link.messages import WantedBind
from dataplane.net import tcp, udp

log = logging.getLogger("dataplane.agent.sockets")


class Place(NamedTuple):
    """One address of a bind. `port` is the port as configured, without the proxy's offset."""

    bind: str
    address: str
    port: int
    datagrams: bool = False
    """Of UDP, whose ports are others than TCP's."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What has to happen so that the wanted binds are those that listen."""

    close: tuple[Place, ...]
    open: tuple[Place, ...]


class Sockets:
    """All sockets of one proxy. `offset` is added to every port; None: the system chooses a port for each place."""

    def __init__(self, workers: int, offset: int | None) -> None:
        self._workers, self._offset = workers, offset
        self._open: dict[Place, list[socket.socket]] = {}
        self._chosen: dict[Place, int] = {}
        """Ports in use, or in use until now, for `log_closed`."""
        self._logged: dict[Place, str] = {}
        """Failures that were logged."""
        self._any_address = tcp.any_address()

    def difference(self, wanted: Iterable[WantedBind]) -> Difference:
        """Compare with what listens now."""
        places = {place for bind in wanted for place in self._places(bind)}
        self._logged = {place: reason for place, reason in self._logged.items() if place in places}
        return Difference(tuple(sorted(self._open.keys() - places)), tuple(sorted(places - self._open.keys())))

    def open(self, place: Place, source: str) -> str:
        """Listen there. Answers why not, or nothing; both are logged, the same failure once."""
        fields = {"bind": place.bind, "address": self._at(place), "source": source}
        try:
            self._open[place] = sockets = self._listen(place)
        except OSError as error:
            reason = self._reason(place, error)
            if self._logged.get(place) != reason:
                self._logged[place] = reason
                log.error("bind failed: %s", reason, extra={"fields": fields})
            return reason
        self._logged.pop(place, None)
        if not self._port(place):
            self._chosen[place] = sockets[0].getsockname()[1]
        log.info("bind opened", extra={"fields": {**fields, "address": self._at(place)}})
        return ""

    def close(self, place: Place) -> None:
        """Give up our copies; a worker that still has its own goes on accepting until it closes that."""
        for sock in self._open.pop(place):
            sock.close()

    def log_closed(self, place: Place, source: str) -> None:
        """The place is closed."""
        fields = {"bind": place.bind, "address": self._at(place), "source": source}
        self._chosen.pop(place, None)
        log.info("bind closed", extra={"fields": fields})

    def release(self) -> None:
        """Give up all copies, when the proxy drains: workers close theirs when they accept no more."""
        for sockets in self._open.values():
            for sock in sockets:
                sock.close()
        self._open.clear()

    def of_worker(self, index: int) -> list[tuple[str, int]]:
        """(bind key, descriptor) of every socket for this worker."""
        return [(place.bind, sockets[index].fileno()) for place, sockets in sorted(self._open.items())]

    def of_bind(self, bind: str, index: int) -> list[int]:
        """Descriptors of this worker's sockets of one bind."""
        return [sockets[index].fileno() for place, sockets in sorted(self._open.items()) if place.bind == bind]

    def listening(self) -> Mapping[str, list[str]]:
        """Bind key -> addresses, as people write them."""
        found: dict[str, list[str]] = {}
        for place in sorted(self._open):
            found.setdefault(place.bind, []).append(self._at(place))
        return found

    def addresses(self) -> Mapping[int, list[str]]:
        """Configured port -> addresses that listen for it."""
        found: dict[int, list[str]] = {}
        for place in sorted(self._open):
            at = self._host_port(place)
            if at not in found.setdefault(place.port, []):
                found[place.port].append(at)
        return found

    def _places(self, bind: WantedBind) -> list[Place]:
        kinds = [datagrams for datagrams, asked in ((False, bind.streams), (True, bind.datagrams)) if asked]
        addresses = bind.addresses or (self._any_address,)
        return [Place(bind.key, address, bind.port, datagrams) for datagrams in kinds for address in addresses]

    def _at(self, place: Place) -> str:
        return self._host_port(place) + ("/udp" if place.datagrams else "")

    def _host_port(self, place: Place) -> str:
        return tcp.host_port(place.address, self._chosen.get(place) or self._port(place))

    def _port(self, place: Place) -> int:
        """The port to ask for; 0: any."""
        return 0 if self._offset is None else place.port + self._offset

    def _listen(self, place: Place) -> list[socket.socket]:
        port = self._port(place)
        net = udp if place.datagrams else tcp
        if self._offset is not None:
            if not 0 < port < 65536:
                raise OSError(errno.EINVAL, f"there is no such port (offset {self._offset})")
            net.probe(place.address, port)
        if not tcp.CAN_SHARE_PORT:
            return [net.listen(place.address, port, shared=False)] * self._workers
        with contextlib.ExitStack() as undo:
            sockets = [undo.enter_context(net.listen(place.address, port, shared=True))]
            port = sockets[0].getsockname()[1]  # the others join the first, whose port the system may have chosen
            sockets += [
                undo.enter_context(net.listen(place.address, port, shared=True)) for _ in range(self._workers - 1)
            ]
            undo.pop_all()
        return sockets

    def _reason(self, place: Place, error: OSError) -> str:
        port = self._port(place)
        at = tcp.host_port(place.address, port) + ("/udp" if place.datagrams else "")
        cure = _CURES.get(error.errno or 0, "")
        if error.errno == errno.EADDRINUSE:
            return f"{at} is in use by {holders.describe(port, place.datagrams)}; stop it or choose another port"
        return f"cannot listen on {at}: {error.strerror or error}{cure}"


_CURES = {
    errno.EACCES: "; ports below 1024 need the capability CAP_NET_BIND_SERVICE, or choose a higher one",
    errno.EADDRNOTAVAIL: "; no interface of this machine has that address",
    errno.EMFILE: "; raise the limit of open files (ulimit -n)",
}
