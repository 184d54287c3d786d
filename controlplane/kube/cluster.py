"""A controller's side of a cluster, put together: facts in, statuses out while it leads."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, NamedTuple

from controlplane.answers.fleet import Fleet
from controlplane.deploy.names import object_name
from controlplane.deploy.request import CONTROLLER, Defaults
from controlplane.derive import Feed
from controlplane.kube import lease as leases
from controlplane.kube import presence
from controlplane.kube.access import Access, ApiError, NoCluster, opened
from controlplane.kube.authority_secret import AuthoritySecret
from controlplane.kube.leadership import Leadership
from controlplane.kube.reading.source import ClusterSource
from controlplane.kube.reading.spaces import Spaces
from controlplane.kube.reviews import TokenReviews
from controlplane.kube.writing.deployer import Deployer, IsElsewhere, Report
from controlplane.kube.writing.finalizers import FinalizerWriter
from controlplane.kube.writing.statuses import StatusWriter
from controlplane.settings import Cluster, shown
from controlplane.sources.source import Sink
from controlplane.spans import NO_SPANS
from controlplane.translate.gateway.class_finalizers import FinalizerWrite
from controlplane.translate.gateway.wanted import Provisioner, Wanted
from controlplane.translate.keys import ObjectKey
from controlplane.translate.status.statuses import StatusKey, StatusWrite
from controlplane.xds.hub import Hub
from controlplane.xds.reporter import Reporter
from controlplane.xds.trust.authority import UnusableAuthority
from controlplane.xds.trust.issuer import Issuer
from controlplane.xds.trust.service_accounts import ServiceAccounts, account
from gatewright.api.schema.selector_text import parsed
from gatewright.api.text.problem import Problem

log = logging.getLogger("controlplane.kube")

SERVICE: Final = CONTROLLER
"""By which proxies reach the controllers, in their namespace."""


LONGEST_LOOK: Final = 5.0
"""Seconds that statuses wait for a first look at the objects of all Gateways."""


def identity() -> str:
    """Of this process among the controllers of a cluster: the pod's name, and a random part, because a pod restarts
    under its name."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}_{random.getrandbits(48):012x}"


def service_names(namespace: str) -> tuple[str, ...]:
    """How the Service of the controllers may be called."""
    inside = f"{SERVICE}.{namespace}"
    return SERVICE, inside, f"{inside}.svc", f"{inside}.svc.cluster.local", "localhost"


def proxies_account(gateway: str) -> str:
    """The user name of the service account that the proxies of a Gateway ("namespace/name") run under."""
    namespace, _, name = gateway.partition("/")
    return account(namespace, object_name(name))


@dataclass(frozen=True, slots=True)
class Provisioning:
    """What starting proxies needs of the rest of the controller. `defaults` without `xds`: the Service of the
    controllers, at `port`."""

    defaults: Defaults
    port: int
    wanted: Feed[ObjectKey, Wanted]
    provision: Callable[[Provisioner], Awaitable[None]]
    report: Report
    is_elsewhere: IsElsewhere
    ready: asyncio.Event
    """Set when everything has been read."""


class Unwritten(NamedTuple):
    """What differs from what is written in the cluster."""

    statuses: Feed[StatusKey, StatusWrite]
    finalizers: Feed[ObjectKey, FinalizerWrite]
    """Of GatewayClasses."""


class ClusterSide:
    """As a `Source`, and the writer of statuses beside it.

    `unwritten`: what the program wants written. `knows_proxies`: proxies are known by tokens of service accounts, and
    the controllers by an authority of their own. `provisioning`: proxies are started, for which they have to be known
    so. `age`: seconds since the facts were reported whose statuses the program wants just now.
    """

    def __init__(
        self,
        cluster: Cluster,
        unwritten: Unwritten,
        name: str,
        fleet: Fleet,
        *,
        knows_proxies: bool = False,
        provisioning: Provisioning | None = None,
        age: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._cluster = cluster
        self._spaces = Spaces(parsed(cluster.namespaces) if cluster.namespaces else None)
        self._unwritten = unwritten
        self._name = name
        self._fleet = fleet
        self.hub: Hub | None = None
        """Where other controllers report what their proxies answer, while this one leads."""
        self._reporter: Reporter | None = None
        self._where = ""
        self.issuer: Issuer | None = None
        self.accounts: ServiceAccounts | None = None
        self._authority: AuthoritySecret | None = None
        self._reviews: TokenReviews | None = None
        if knows_proxies:
            self.issuer = Issuer(_now)
            self._reviews = TokenReviews(lambda: self.access)
            self.accounts = ServiceAccounts(self._reviews, proxies_account, time.time, time.monotonic)
        self._provisioning = provisioning
        self._age = age
        self._trusted = asyncio.Event()
        """Set when what proxies trust is something else."""
        self.deployer: Deployer | None = None
        self.source: ClusterSource | None = None
        self.spans = NO_SPANS
        """Who wants to know of statuses that are written."""
        self.writer: StatusWriter | None = None
        self._finalizer_writer: FinalizerWriter | None = None
        self.leadership: Leadership | None = None
        self._access: Access | None = None

    @property
    def access(self) -> Access:
        """Raises OSError before `open`."""
        if self._access is None:
            raise OSError("the cluster is not reached yet")
        return self._access

    async def open(self) -> None:
        """Raises NoCluster."""
        access = self._access = await opened(self._cluster)
        clock = asyncio.get_running_loop().time
        self.source = ClusterSource(access, spaces=self._spaces)
        self.writer = StatusWriter(access, self.source.version_of, clock, random.random, self._age)
        self.writer.spans = self.spans
        self._finalizer_writer = FinalizerWriter(access, self.source.version_of, clock, random.random)
        self.leadership = Leadership(access, access.namespace, self._name, clock)
        log.info("reading %s at %s", self._cluster, access.host)
        if self.issuer is not None:
            await self._open_authority(access, self.issuer)
            await self._open_hub(self.issuer, self.leadership)
            await self._open_deployer(access, self.issuer)

    async def _open_authority(self, access: Access, issuer: Issuer) -> None:
        """No proxy can be served without one. Raises NoCluster."""
        issuer.name(service_names(access.namespace))
        secret = self._authority = AuthoritySecret(access, access.namespace, issuer.use, _now)
        try:
            await secret.load()
        except UnusableAuthority as error:
            raise NoCluster(f"{secret.place}: {error}; remove it, and another authority is made") from error
        except (ApiError, OSError, TimeoutError) as error:
            raise NoCluster(f"{secret.place}, the authority of xDS, cannot be read or made: {error}") from error

    async def _open_hub(self, issuer: Issuer, leadership: Leadership) -> None:
        """Raises SocketError."""
        host, port = self._cluster.peers
        self.hub = Hub(self._fleet, self._name)
        self._reporter = Reporter(self._fleet, self._name, issuer, lambda: leadership.address)
        self._where = shown((_reachable(host), await self.hub.start(host, port, issuer)))
        leadership.place = self._place
        leadership.seen = self._seen

    def _place(self) -> leases.Place | None:
        return None if self.hub is None else leases.Place(self._where, frozenset(self.hub.origins))

    def _seen(self) -> None:
        """The Lease was looked at: who else is there, who leads."""
        assert self.hub is not None and self._reporter is not None and self.leadership is not None
        if self.leadership.is_leader:
            for origin in self.leadership.watched.others:
                self.hub.expect(origin)
        self._reporter.look()

    async def _open_deployer(self, access: Access, issuer: Issuer) -> None:
        wanted = self._provisioning
        if wanted is None:
            return
        self.deployer = Deployer(access, wanted.wanted, wanted.report, wanted.is_elsewhere)
        issuer.listeners.append(self._trusted.set)
        await self._provision(wanted, issuer)

    async def _provision(self, wanted: Provisioning, issuer: Issuer) -> None:
        """Says what all proxies have in common."""
        where = f"{SERVICE}.{self.access.namespace}.svc:{wanted.port}"
        defaults = wanted.defaults if wanted.defaults.xds else replace(wanted.defaults, xds=where)
        await wanted.provision(Provisioner(defaults, issuer.bundle.decode()))

    async def _follow_authority(self, wanted: Provisioning, issuer: Issuer) -> None:
        while True:
            await self._trusted.wait()
            self._trusted.clear()
            await self._provision(wanted, issuer)

    async def run(self, sink: Sink) -> None:
        """As `Source` has it."""
        assert self.source is not None and self.leadership is not None
        async with asyncio.TaskGroup() as group:
            group.create_task(self.source.run(sink))
            group.create_task(self.leadership.lead(self._write))
            if self._authority is not None:
                group.create_task(self._authority.follow(lambda: self._leads))
            if self._reporter is not None:
                group.create_task(self._reporter.run())
            if self.deployer is not None and self._provisioning is not None and self.issuer is not None:
                group.create_task(self.deployer.follow())
                group.create_task(self._follow_authority(self._provisioning, self.issuer))

    @property
    def _leads(self) -> bool:
        return self.leadership is not None and self.leadership.is_leader

    async def _write(self) -> None:
        assert self.leadership is not None
        if self.hub is not None:
            self.hub.lead(self.leadership.before)
        try:
            await self._act()
        finally:
            if self.hub is not None:
                self.hub.follow()

    async def _act(self) -> None:
        """What the controller that leads does."""
        assert self.writer is not None and self._finalizer_writer is not None
        async with asyncio.TaskGroup() as group:
            if not self._spaces.is_selective:  # else it cannot be known that no Gateway names a class
                group.create_task(self._finalizer_writer.run(self._unwritten.finalizers))
            if self.deployer is not None and self._provisioning is not None:
                await self._deploy(group, self.deployer, self._provisioning)
            group.create_task(self.writer.run(self._unwritten.statuses))

    async def _deploy(self, group: asyncio.TaskGroup, deployer: Deployer, wanted: Provisioning) -> None:
        """Statuses have addresses and failures: none is written before these are known."""
        await deployer.listed()
        await wanted.ready.wait()
        group.create_task(deployer.lead())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_LOOK):
                await deployer.looked.wait()

    def problems(self) -> Sequence[Problem]:
        """As `Source` has it."""
        found = list(self.source.problems()) if self.source is not None else []
        parts = (self.leadership, self._authority, self._reporter, self._finalizer_writer)
        troubled = [each.trouble for each in parts if each is not None and each.trouble]
        if self.deployer is not None:
            troubled += [f"made for Gateways: {each}" for each in self.deployer.problems()]
        return [*found, *(Problem("cluster", 0, "", "", trouble, code="unreadable") for trouble in troubled)]

    def notes(self) -> list[str]:
        """Which proxies are not among those that this controller knows."""
        if self.leadership is None:
            return []
        return presence.unknown_proxies(
            presence.Seen(
                self.leadership.is_leader,
                "" if self.leadership.is_leader else self.leadership.watched.holder,
                self.hub is not None,
                0 if self.hub is None else self.hub.awaited,
            )
        )

    def numbers(self) -> dict[str, dict[tuple[str, ...], float]]:
        """For the page of metrics, once it is open."""
        source, writer, leadership = self.source, self.writer, self.leadership
        if source is None or writer is None or leadership is None:
            return {}
        reflectors = source.reflectors.values()
        return {
            "leader": {(): leadership.is_leader},
            "cluster_relists_total": {(each.info.kind,): each.relists for each in reflectors},
            "cluster_unreadable": {(each.info.kind,): bool(each.trouble) for each in reflectors},
            "status_writes_total": {
                ("written",): writer.count,
                ("conflict",): writer.conflicts,
                ("failed",): writer.failures,
            },
            "status_writes_pending": {(): len(writer)},
            **({"cluster_namespaces": {(): len(self._spaces)}} if self._spaces.is_selective else {}),
            **(self.deployer.numbers() if self.deployer is not None else {}),
            **self._numbers_of_proxies(),
        }

    def _numbers_of_proxies(self) -> dict[str, dict[tuple[str, ...], float]]:
        """Of what is asked about them, and what controllers report of them to each other."""
        reviews, accounts, hub, reporter = self._reviews, self.accounts, self.hub, self._reporter
        if reviews is None or accounts is None or hub is None or reporter is None:
            return {}
        return {
            "peers": {("reporting",): hub.reporting, ("awaited",): hub.awaited},
            "peer_messages_total": {("received",): hub.messages, ("sent",): reporter.messages},
            "peer_failures_total": {(): reporter.failures},
            "token_reviews_total": {
                ("accepted",): reviews.accepted,
                ("refused",): reviews.refused,
                ("failed",): reviews.failures,
            },
            "token_reviews_pending": {(): accounts.pending},
            "token_reviews_kept": {(): accounts.kept},
        }

    async def close(self) -> None:
        if self.accounts is not None:
            await self.accounts.close()
        if self.hub is not None:
            await self.hub.stop()
        if self._access is not None:
            await self._access.close()


def _reachable(host: str) -> str:
    """By which others reach a listener of this process."""
    pod = os.environ.get("POD_IP", "")
    return pod or (socket.gethostname() if host in ("0.0.0.0", "::", "[::]") else host)


def _now() -> datetime:
    return datetime.now(UTC)
