"""Gateway API's conformance tests, replayed: their YAML out of the module's archive into a folder, a real controller on
it, a real proxy for each Gateway that is asked something, and servers as the YAML's Deployments describe them.

    async with suite.replay("tcproute-simple") as replay:
        await replay.accepts("TCPRoute", "tcp-route", "tcp-gateway")
        port = await replay.gateway("tcp-gateway")

What the Go tests ask is written anew in `tests/loopback/test_*_conformance.py`: conditions, and bytes of clients. What
the suite makes with code (certificates, authorities) is made here.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from pathlib import Path
from signal import SIGKILL
from typing import Any

import yaml

from tests.fakes import echo_servers
from tests.fakes.certificates import Authority, Issued
from tests.fakes.proxy_process import Proxy, running
from tests.harness.patience import PATIENCE
from tests.harness.processes import Program
from tests.harness.waiting import until
from tests.outside.gateway_api.modules import CONFORMANCE, files

Object = dict[str, Any]
INFRA, APP, WEB = (f"gateway-conformance-{name}" for name in ("infra", "app-backend", "web-backend"))
GATEWAY_API = "gateway.networking.k8s.io/v1"
CLASS: Object = {
    "apiVersion": GATEWAY_API,
    "kind": "GatewayClass",
    "metadata": {"name": "gatewright"},
    "spec": {"controllerName": "gatewright.dev/controller"},
}
SPEAKS = {"TCP_ECHO_SERVER": "tcp", "UDP_ECHO_SERVER": "udp", "GRPC_ECHO_SERVER": "grpc"}
"""Variable of a container to what it speaks; else HTTP."""

CHECKS, LISTENERS, STRANGE = Authority("checks"), Authority("listeners"), Authority("strange")
URI = "spiffe://abc.example.com/test-identity"
LISTENER_NAMES = ("example.org", "second-example.org", "unknown-example.org", "https-listener.org", "*.wildcard.org")
CERTIFICATES: Mapping[tuple[str, str], Issued] = {
    (INFRA, "tls-validity-checks-certificate"): LISTENERS.issue(*LISTENER_NAMES),
    (INFRA, "tls-checks-certificate"): CHECKS.issue("abc.example.com", "other.example.com", uris=(URI,)),
    (INFRA, "tls-passthrough-checks-certificate"): CHECKS.issue("abc.example.com"),
    (INFRA, "tls-terminate-checks-certificate"): CHECKS.issue("tls.example.com"),
    (APP, "tls-passthrough-checks-certificate"): CHECKS.issue("abc.example.com"),
    (WEB, "certificate"): LISTENERS.issue("example.org"),
}
"""Of Secrets that the suite makes with code."""
AUTHORITIES = {
    (INFRA, "tls-checks-ca-certificate"): CHECKS,
    (INFRA, "tls-validity-checks-ca-certificate"): LISTENERS,
    (INFRA, "mismatch-ca-certificate"): STRANGE,
    (WEB, "web-backend-cm"): STRANGE,
}
"""Of ConfigMaps that it makes."""


def config_map(namespace: str, name: str, text: str) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"ca.crt": text}}


def made_with_code() -> Iterator[Object]:
    for (namespace, name), issued in CERTIFICATES.items():
        data = {entry: value.decode() for entry, value in issued.entries.items()}
        metadata = {"name": name, "namespace": namespace}
        yield {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "type": "kubernetes.io/tls",
            "stringData": data,
        }
    for (namespace, name), authority in AUTHORITIES.items():
        yield config_map(namespace, name, authority.pem.decode())


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.pem.decode())


@cache
def _texts() -> Mapping[str, str]:
    return dict(files(CONFORMANCE))


def manifest(path: str) -> list[Object]:
    """The objects of one file of the suite."""
    text = _texts()[path].replace("{GATEWAY_CLASS_NAME}", "gatewright")
    return [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]


def key_of(found: Object) -> tuple[str, str]:
    metadata = found["metadata"]
    return metadata.get("namespace", "default"), metadata["name"]


class Suite:
    """One controller for the replays of a module, one after the other. `close` ends it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects, self.socket = folder / "objects", folder / "xds.sock"
        self.objects.mkdir()
        self.base = [CLASS, *manifest("base/manifests.yaml"), *made_with_code()]
        self.put("base", self.base)
        command = [sys.executable, "-m", "controlplane", str(self.objects), "--socket", str(self.socket)]
        self.controller = Program(folder, "controller", [*command, "--xds", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        self.controller.await_ready()
        self.admin = self.controller.port("ADMIN")

    def close(self) -> None:
        self.controller.stop(SIGKILL)

    def put(self, name: str, objects: Sequence[Object]) -> None:
        """A file of these objects, written at once."""
        text = "\n---\n".join(map(json.dumps, objects))
        with tempfile.NamedTemporaryFile("w", dir=self.folder, delete=False) as file:
            file.write(text)
        os.replace(file.name, self.objects / f"{name}.yaml")

    def remove(self, name: str) -> None:
        (self.objects / f"{name}.yaml").unlink()

    async def status(self, selector: str) -> list[Object]:
        """The rows of `/api/status` for KIND/NAMESPACE/NAME."""

        def page() -> list[Object]:
            url = f"http://127.0.0.1:{self.admin}/api/status?object={selector}"
            with urllib.request.urlopen(url, timeout=PATIENCE) as found:
                rows: list[Object] = json.load(found)["objects"]
                return rows

        return await asyncio.to_thread(page)

    @asynccontextmanager
    async def replay(self, name: str) -> AsyncIterator[Replay]:
        """The file `tests/NAME.yaml` of the suite is there until the block ends."""
        async with AsyncExitStack() as stack, asyncio.timeout(PATIENCE):
            replay = Replay(self, stack, manifest(f"tests/{name}.yaml"))
            await replay.begin()
            yield replay
            self.remove("test")
            self.remove("endpoints")
            await until(replay.is_gone, f"the objects of {name} are gone")


class Replay:
    """What one conformance test does: waits for conditions, edits objects, asks through Gateways."""

    def __init__(self, suite: Suite, stack: AsyncExitStack, objects: list[Object]) -> None:
        self.suite = suite
        self.objects = objects
        self._stack = stack
        self._proxies: dict[str, Proxy] = {}
        self._slices: dict[tuple[str, str], Object] = {}
        """By the Service that has servers."""

    # --- objects

    async def begin(self) -> None:
        await self._start_servers()
        self._write()

    def _write(self) -> None:
        self.suite.put("test", self.objects)

    async def add_younger(self, kind: str, name: str, spec: Object) -> None:
        """An object that is younger than all others."""
        for number, each in enumerate(self.objects):
            each["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{number:02}Z"
        metadata = {"name": name, "namespace": INFRA, "creationTimestamp": "2026-01-02T00:00:00Z"}
        self.put({"apiVersion": GATEWAY_API, "kind": kind, "metadata": metadata, "spec": spec})
        await self._start_servers()

    def put(self, found: Object) -> None:
        """It comes, or is exchanged."""
        self.objects = [each for each in self.objects if not _is_same(each, found)] + [found]
        self._write()

    def find(self, kind: str, name: str, namespace: str = INFRA) -> Object:
        wanted = {"kind": kind, "metadata": {"name": name, "namespace": namespace}}
        return next(each for each in self.objects if _is_same(each, wanted))

    def delete(self, kind: str, name: str, namespace: str = INFRA) -> None:
        self.objects.remove(self.find(kind, name, namespace))
        self._write()

    async def is_gone(self) -> bool:
        for each in self.objects:
            if each["kind"] != "Deployment" and await self.suite.status("/".join((each["kind"], *key_of(each)))):
                return False
        return True

    # --- conditions

    async def status(self, kind: str, name: str, namespace: str = INFRA) -> Object:
        rows = await self.suite.status(f"{kind}/{namespace}/{name}")
        return dict(rows[0]["status"] or {}) if rows else {}

    async def has(self, kind: str, name: str, gateway: str, condition: str, namespace: str = INFRA) -> None:
        """Wait for a condition of a route or policy below a Gateway: `Accepted=False Conflicted`; without a reason, any
        will do. It is of the object's last generation."""
        found: list[str] = []

        async def is_there() -> bool:
            rows = await self.suite.status(f"{kind}/{namespace}/{name}")
            found[:] = [text for row in rows for text in _conditions(row, gateway)]
            return any(text == condition or text.startswith(f"{condition} ") for text in found)

        await until(is_there, lambda: f"{kind} {name} below {gateway} has {condition}: {found}")

    async def accepts(self, kind: str, name: str, gateway: str) -> None:
        """Gateway and route are accepted."""

        async def is_accepted() -> bool:
            status = await self.status("Gateway", gateway)
            return "Accepted=True Accepted" in list(map(_text, status.get("conditions", ())))

        await until(is_accepted, f"Gateway {gateway} is accepted")
        await self.has(kind, name, gateway, "Accepted=True Accepted")

    async def lacks_parents(self, kind: str, name: str) -> None:
        """No parent of the route has accepted it."""
        parents = (await self.status(kind, name)).get("parents", ())
        assert not any("Accepted=True Accepted" in map(_text, each["conditions"]) for each in parents), parents

    async def listeners(self, gateway: str, expected: Mapping[str, tuple[str, Sequence[str], int]]) -> None:
        """Wait until each listener has this condition, these supported kinds and so many routes."""
        found: dict[str, tuple[list[str], list[str], int]] = {}

        async def is_so() -> bool:
            rows = (await self.status("Gateway", gateway)).get("listeners", ())
            found.clear()
            for row in rows:
                kinds = [kind["kind"] for kind in row.get("supportedKinds", ())]
                found[row["name"]] = list(map(_text, row["conditions"])), kinds, row["attachedRoutes"]
            return found.keys() == expected.keys() and all(
                condition in found[name][0] and (list(kinds), routes) == found[name][1:]
                for name, (condition, kinds, routes) in expected.items()
            )

        await until(is_so, lambda: f"listeners of {gateway}: {found}")

    async def has_no_routes(self, gateway: str) -> None:
        rows = (await self.status("Gateway", gateway))["listeners"]
        assert [row["attachedRoutes"] for row in rows] == [0] * len(rows)

    # --- traffic

    async def gateway(self, name: str, listener: str = "") -> int:
        """Where a proxy of this Gateway listens for this listener, or for the first one."""
        listeners = self._gateway(name)["spec"]["listeners"]
        port = next(each["port"] for each in listeners if listener in ("", each["name"]))
        if name not in self._proxies:
            flags = ("--xds", f"unix:{self.suite.socket}", "--gateway", f"{INFRA}/{name}")
            self._proxies[name] = await self._stack.enter_async_context(running(*flags, workers=1))
            await self._proxies[name].ready()
        return self._proxies[name].at(port)

    def _gateway(self, name: str) -> Object:
        wanted = {"kind": "Gateway", "metadata": {"name": name, "namespace": INFRA}}
        return next(each for each in (*self.objects, *self.suite.base) if _is_same(each, wanted))

    # --- servers

    async def _start_servers(self) -> None:
        """For each Service that the test brings or names, and an EndpointSlice that leads there."""
        everything = [*self.suite.base, *self.objects]
        wanted = {*_references(self.objects), *(key_of(each) for each in self.objects if each["kind"] == "Service")}
        deployments = [each for each in everything if each["kind"] == "Deployment"]
        for service in everything:
            if service["kind"] == "Service" and key_of(service) in wanted - self._slices.keys():
                app = (service["spec"].get("selector") or {}).get("app", "")
                deployment = _selected(deployments, key_of(service)[0], app)
                if deployment is not None:
                    self._slices[key_of(service)] = await self._endpoints(service, self._pod(deployment))
        self.suite.put("endpoints", list(self._slices.values()))

    def _pod(self, deployment: Object) -> echo_servers.Pod:
        namespace, name = key_of(deployment)
        spec = deployment["spec"]["template"]["spec"]
        names = {each["name"] for each in spec["containers"][0].get("env", ())}
        speaks = next((word for variable, word in SPEAKS.items() if variable in names), "http")
        secret = next((volume["secret"]["secretName"] for volume in spec.get("volumes", ())), None)
        path = None
        if secret is not None:
            issued = CERTIFICATES[namespace, secret]
            path = self.suite.folder / f"{namespace}-{secret}.pem"
            path.write_bytes(issued.chain + issued.key)
        return echo_servers.Pod(name, namespace, speaks, path)

    async def _endpoints(self, service: Object, pod: echo_servers.Pod) -> Object:
        namespace, name = key_of(service)
        ports = []
        for port in service["spec"]["ports"]:
            number = await self._stack.enter_async_context(echo_servers.serving(pod, port["targetPort"]))
            ports.append(
                {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol", "TCP")}
                | ({"appProtocol": port["appProtocol"]} if "appProtocol" in port else {})
            )
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}],
            "ports": ports,
        }


def _is_same(one: Object, other: Object) -> bool:
    return one["kind"] == other["kind"] and key_of(one) == key_of(other)


def _selected(deployments: Sequence[Object], namespace: str, app: str) -> Object | None:
    for each in deployments:
        labels = each["spec"]["template"]["metadata"]["labels"]
        if key_of(each)[0] == namespace and labels.get("app") == app:
            found: Object = each
            return found
    return None


def _references(objects: Sequence[Object]) -> Iterator[tuple[str, str]]:
    """Namespace and name of each Service that a route names."""
    for each in objects:
        for rule in each.get("spec", {}).get("rules", ()) if each["kind"].endswith("Route") else ():
            for reference in rule.get("backendRefs", ()):
                yield reference.get("namespace", key_of(each)[0]), reference["name"]


def _conditions(row: Object, gateway: str) -> Iterator[str]:
    """Of a row of the status page: conditions below a Gateway that are of its last generation."""
    status = row["status"] or {}
    entries = [(each["parentRef"], each) for each in status.get("parents", ())]
    entries += [(each["ancestorRef"], each) for each in status.get("ancestors", ())]
    for reference, entry in entries:
        if reference["name"] == gateway:
            for condition in entry["conditions"]:
                if condition["observedGeneration"] == row["generation"]:
                    yield _text(condition)


def _text(condition: Object) -> str:
    return f"{condition['type']}={condition['status']} {condition['reason']}"
