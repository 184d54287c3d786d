"""The composition root of the controller: the only file that knows every package.

`running` starts source, pipeline, xDS server and admin API, and ends all of them; the commands call it. What people may
see of a running controller is `known_facts`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from functools import partial

from controlplane import collector, spans
from controlplane.admin import pages
from controlplane.admin.pages import Listening
from controlplane.admin.server import Server as AdminServer
from controlplane.deploy.request import Defaults
from controlplane.facts import Fact
from controlplane.known_facts import KnownFacts
from controlplane.kube import cluster as kube
from controlplane.pipeline import Listener, Pipeline
from controlplane.settings import Cluster, Proxies, Settings, shown
from controlplane.sources import decode, tree
from controlplane.sources.aside import Decoder, Pieces
from controlplane.sources.directory import Directory
from controlplane.sources.source import Source
from controlplane.translate.keys import ObjectKey as Place
from controlplane.xds import XdsServer, xds_settings
from controlplane.xds.node import Identity, Peer
from gatewright.api.objects.gateway import Gateway
from gatewright.api.objects.gateway_class import GatewayClass
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.schema.names import CONTROLLER_NAME
from gatewright.api.text.problem import Problem
from gatewright.version import VERSION

log = logging.getLogger("controlplane")

SWITCH = 0.0005
"""Seconds that a thread waits for the interpreter while another one computes."""


class AddressTaken(Exception):
    """An address cannot be listened on; the text names it."""


class App(Listener):
    """One running controller. Made by `running`."""

    def __init__(self, settings: Settings) -> None:
        """Raises Exposed or CredentialError: xDS cannot be served as the settings say."""
        self.settings = settings
        name = kube.identity()
        self.news = asyncio.Event()
        """Set whenever objects or proxies are not what they were, and by who waits for that and clears it."""
        self.pipeline = Pipeline(
            name if isinstance(settings.source, Cluster) else "",
            selectors_need_grants=settings.mcp.selectors_need_grants,
            listener=self,
        )
        self.spans = spans.of_environment(os.environ)
        self.pipeline.spans = self.spans
        self.source: Source
        self.cluster: kube.ClusterSide | None = None
        self.tree: tree.Tree | None = None
        """Of a folder."""
        if isinstance(settings.source, Cluster):
            knows_proxies = settings.security.service_accounts
            program = self.pipeline.program
            self.cluster = kube.ClusterSide(
                settings.source,
                kube.Unwritten(program.unwritten, program.class_finalizers),
                name,
                self.pipeline.fleet,
                knows_proxies=knows_proxies,
                provisioning=self._provisioning(settings.source.proxies) if knows_proxies else None,
                age=self.pipeline.age,
            )
            self.cluster.spans = self.spans
            self.source = self.cluster
        else:
            pieces = Pieces(decode.decode)
            self.tree = tree.Tree(pieces.decode, decode.with_generation)
            self.source = Directory(settings.source, self.tree, pieces, Decoder())
        self.xds = XdsServer(
            self.pipeline.snapshots,
            self.pipeline.fleet,
            xds_settings.made_of(settings, None if self.cluster is None else self.cluster.issuer),
            authorize=self._when_ready,
            accounts=None if self.cluster is None else self.cluster.accounts,
        )
        facts_ = KnownFacts(self)
        self._pages: dict[str, tuple[tuple[str, int], Listening]] = {
            "admin": (settings.admin, AdminServer(facts_, *settings.admin, settings.admin_hosts))
        }
        if settings.stats is not None:
            self._pages["stats"] = settings.stats, Listening(pages.stats(facts_), *settings.stats)
        if settings.readiness is not None:
            self._pages["readiness"] = settings.readiness, Listening(pages.readiness(facts_), *settings.readiness)
        self.ports: dict[str, int] = {}
        """Where the pages listen, by name, while they do."""
        self._is_serving = self._is_ending = False
        self.is_broken = False
        """A bug ended what reads. Only another process mends that."""
        self._problems: list[Problem] = []

    def _provisioning(self, proxies: Proxies | None) -> kube.Provisioning | None:
        if proxies is None:
            return None
        usual = Defaults(proxies.tag or VERSION, xds=proxies.xds)
        return kube.Provisioning(
            replace(
                usual,
                registry=usual.registry if proxies.registry is None else proxies.registry,
                repository=proxies.repository or usual.repository,
            ),
            self.settings.xds[1],
            self.pipeline.program.wanted,
            self.pipeline.provision,
            self.pipeline.provisioned,
            self._is_elsewhere,
            self.pipeline.ready,
        )

    def changed(self) -> None:
        self.news.set()

    def owners_changed(self) -> None:
        if self.cluster is not None and self.cluster.deployer is not None:
            self.cluster.deployer.look_for_moved()

    def _is_elsewhere(self, gateway: Place) -> bool:
        """Whether a Gateway is there whose class is another controller's."""
        objects = self.pipeline.objects
        found = objects.get(ObjectKey("Gateway", gateway.namespace, gateway.name))
        if not isinstance(found, Gateway):
            return False
        its_class = objects.get(ObjectKey("GatewayClass", "", found.spec.gateway_class_name))
        return isinstance(its_class, GatewayClass) and its_class.spec.controller_name != CONTROLLER_NAME

    async def open(self) -> None:
        """Listens, and reaches the cluster. Raises NoCluster, AddressTaken, or SocketError of the xDS package."""
        if self.cluster is not None:
            await self.cluster.open()
        for name, (address, page) in self._pages.items():
            try:
                self.ports[name] = await page.start()
            except OSError as error:
                raise AddressTaken(f"{shown(address)} ({name} page): {error.strerror or error}") from error
        await self.xds.start()
        self._is_serving = True

    async def close(self) -> None:
        self._is_ending = True
        self.pipeline.close()
        await self.xds.stop()
        if self.cluster is not None:
            await self.cluster.close()
        for name in [*self.ports]:
            await self._pages[name][1].stop()
            del self.ports[name]
        if self.spans is not spans.NO_SPANS:  # last: until here there is work to be recorded
            await asyncio.to_thread(self.spans.close)

    @property
    def admin_port(self) -> int:
        """Where the admin API listens."""
        return self.ports.get("admin", 0)

    def addresses(self) -> dict[str, str]:
        """Where the pages listen, by name."""
        return {name: shown((self._pages[name][0][0], port)) for name, port in self.ports.items()}

    def pending(self) -> list[str]:
        """What keeps the controller from being ready; nothing when it is."""
        reasons = {
            "end of this process": self._is_ending,
            "a restart: nothing is read any more": self.is_broken,
            "the configuration is being read": not self.pipeline.ready.is_set(),
            "the xDS server does not listen yet": not self._is_serving,
        }
        return [reason for reason, holds in reasons.items() if holds]

    async def take(self, facts: Sequence[Fact]) -> None:
        """As `Sink` has it: `run` of the source is given this object."""
        await self.pipeline.take(facts)

    async def idle(self) -> None:
        """The source has reported all that there is."""
        is_first = not self.pipeline.ready.is_set()
        await self.pipeline.idle()
        self._report(self.source.problems())
        if is_first:
            # What is read at the start stays. Looking at all of it in search of cycles would hold the loop for as much
            # as half a second at 10,000 objects, many times while it is read; later collections see only what is new.
            gc.freeze()
            gc.enable()
            for note in self.notes():
                log.warning("%s", note)

    def _report(self, problems: Sequence[Problem]) -> None:
        """One line for each new problem, one when all are solved."""
        known = set(self._problems)
        for problem in problems:
            if problem not in known and problem.severity != "info":
                log.log(logging.ERROR if problem.severity == "error" else logging.WARNING, "%s", problem)
        if self._problems and not problems:
            log.info("the files have no problems any more" if self.cluster is None else "the cluster can be read again")
        self._problems = [*problems]

    async def _when_ready(self, identity: Identity, peer: Peer) -> str | None:
        """Lets a proxy in once there is a complete state: an early answer would make it forget all that it has."""
        await self.pipeline.ready.wait()
        return None

    def gateways(self) -> list[Gateway]:
        """The Gateways of our classes, by name."""
        items = self.pipeline.objects.values()
        classes = [item for item in items if isinstance(item, GatewayClass)]
        classes_here = {item.metadata.name for item in classes if item.spec.controller_name == CONTROLLER_NAME}
        found = [item for item in items if isinstance(item, Gateway) and item.spec.gateway_class_name in classes_here]
        return sorted(found, key=lambda item: item.key)

    def notes(self) -> list[str]:
        """What is worth knowing and belongs to no object."""
        if not self.pipeline.ready.is_set():
            return ["the configuration is still being read"]
        if self.gateways():
            return []
        wrong = {problem.object for problem in self.source.problems() if problem.severity == "error"}
        if any(key.kind == "Gateway" and str(key) not in wrong for key in self.pipeline.objects):
            return [
                f"no Gateway is managed by Gatewright: their classes are not GatewayClasses of {CONTROLLER_NAME};"
                " nothing is served"
            ]
        if any(name.startswith("Gateway ") for name in wrong):
            return ["no Gateway could be read, see the errors; nothing is served until one can"]
        return [f"{self.settings.source} holds no Gateway; nothing is served until it does"]


@contextlib.asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[App]:
    """A controller that reads, listens and publishes until the block ends. Raises as `App.open` does."""
    app = App(settings)
    with collector.paced(), _quick_switches():
        gc.disable()
        try:
            await app.open()
            reading = asyncio.create_task(app.source.run(app))
            reading.add_done_callback(partial(_reading_ended, app))
            try:
                yield app
            finally:
                reading.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await reading
        finally:
            gc.enable()
            await app.close()


@contextlib.contextmanager
def _quick_switches() -> Iterator[None]:
    """The thread that watches the folder says that a change is whole while the loop still reads what came first: it
    must not wait for the interpreter until the loop has nothing to do."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _reading_ended(app: App, reading: asyncio.Task[None]) -> None:
    """The source is read until the controller ends. What ends that sooner is a bug, which would stay unnoticed
    otherwise: proxies go on with what they have. From now on both probes fail, so that a cluster starts another."""
    if not reading.cancelled() and (error := reading.exception()) is not None:
        app.is_broken = True
        log.critical("%s is not read any more; restart the controller: %r", app.settings.source, error, exc_info=error)
