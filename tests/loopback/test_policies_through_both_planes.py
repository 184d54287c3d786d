"""GatewayPolicies from a file to an answer: a real controller, a real proxy of two workers, requests by sockets.

What is asserted is what a user sees: answers, and what `gatewright status` reads. How policies merge in every case is
the matter of the matrix (`tests/unit/attach`); what each one does, of `tests/policies`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.fakes.controller_process import controller
from tests.fakes.proxy_process import Proxy, running
from tests.fakes.web_objects import OBJECTS
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.leaves("upstreams live in this process, with what proxies that end later keep open to them"),
]

ROUTES = """
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop}
spec:
  parentRefs: [{name: web}]
  rules:
    - {name: browse, matches: [{path: {value: /}}], backendRefs: [{name: origin, port: 80}]}
    - {name: pay, matches: [{path: {value: /pay}}], backendRefs: [{name: origin, port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: plain}
spec:
  parentRefs: [{name: web}]
  rules:
    - name: gold
      matches: [{path: {value: /plain}, headers: [{name: x-tier, value: gold}]}]
      backendRefs: [{name: origin, port: 80}]
    - {name: any, matches: [{path: {value: /plain}}], backendRefs: [{name: origin, port: 80}]}
"""

GATEWAY = "{group: gateway.networking.k8s.io, kind: Gateway, name: web}"
LISTENER = "{group: gateway.networking.k8s.io, kind: Gateway, name: web, sectionName: http}"
SHOP = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}"
PAY = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop, sectionName: pay}"
GOLD = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: plain, sectionName: gold}"


def policy(name: str, target: str, traffic: str, inheritance: str = "Default") -> str:
    strategy = f"\n  strategy: {{inheritance: {inheritance}}}" if inheritance != "Default" else ""
    return f"""
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: {name}}}
spec:
  targetRefs: [{target}]{strategy}
  traffic: {traffic}
"""


def level(name: str) -> str:
    """A field that tells in the response whose it is."""
    return f'headerModifiers: {{response: {{set: [{{name: x-level, value: "{name}"}}]}}}}'


def secret(name: str, entry: str, text: str) -> str:
    return f"\n---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{{entry}: {text!r}}}\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client got; the origin's body is the head that it received."""

    status: int
    headers: dict[str, str]
    body: str

    @property
    def level(self) -> str:
        return self.headers.get("x-level", "")


def parsed(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode().split("\r\n")
    pairs = (line.partition(": ") for line in lines if line)
    return int(first.split()[1]), {name.lower(): value for name, _, value in pairs}


class Connection:
    """One of a client's, that is kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, path: str, **headers: str) -> Answer:
        lines = [f"GET {path} HTTP/1.1", "host: shop.example"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        async with asyncio.timeout(PATIENCE):
            status, got = parsed(await self._reader.readuntil(b"\r\n\r\n"))
            body = await self._reader.readexactly(int(got["content-length"]))
        return Answer(status, got, body.decode())

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def origin() -> AsyncIterator[int]:
    """A server that answers with the head that it received."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(head), head))
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


class Planes:
    """Made by `planes`."""

    def __init__(self, folder: Path, port: int, admin: int, proxy: Proxy) -> None:
        self._folder = folder
        """Its log stands beside it."""
        self._port = port
        self._admin = admin
        self.proxy = proxy

    def write(self, *documents: str, file: str = "policies") -> None:
        """Make these the documents of a file, at once."""
        fresh = self._folder / f".{file}"
        fresh.write_text("".join(documents))
        fresh.rename(self._folder / f"{file}.yaml")

    async def connect(self) -> Connection:
        return Connection(*await asyncio.open_connection("127.0.0.1", self._port))

    async def ask(self, path: str, **headers: str) -> Answer:
        """On a connection of its own: the system spreads them over the workers."""
        connection = await self.connect()
        try:
            return await connection.ask(path, **headers)
        finally:
            connection.close()

    async def ask_often(self, count: int, path: str, **headers: str) -> list[Answer]:
        """At the same time."""
        return list(await asyncio.gather(*(self.ask(path, **headers) for _ in range(count))))

    async def status(self) -> dict[str, Any]:
        return await asyncio.to_thread(self._status)

    def _status(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._admin}/api/status", timeout=PATIENCE) as answer:
            body: dict[str, Any] = json.load(answer)
        return body

    async def conditions(self, name: str) -> dict[str, tuple[str, str]]:
        """Of a GatewayPolicy: type to status and message."""
        for found in (await self.status())["objects"]:
            if (found["kind"], found["name"]) == ("GatewayPolicy", name):
                return {row["type"]: (row["status"], row["message"]) for row in found["status"]["conditions"]}
        return {}

    async def told(self) -> str:
        """Everything that the planes say of what they have: logs, dumps, status."""
        pages = [await self.proxy.dump(), await self.proxy.dump("?worker=0"), await self.status()]
        return json.dumps(pages) + self.proxy.log() + (self._folder.parent / "controller.log").read_text()

    async def refusals(self) -> str:
        """What the proxy's last answer to the controller refuses."""
        (row,) = (await self.status())["proxies"]
        return json.dumps(row["refusals"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Planes]:
    """A controller of a folder with two routes, and a proxy that serves it; each test writes policies of its own."""
    scratch = tmp_path_factory.mktemp("planes")
    folder, path = scratch / "config", scratch / "xds.sock"
    folder.mkdir()
    async with origin() as upstream:
        (folder / "web.yaml").write_text(OBJECTS.format(port=8080, upstream=upstream) + ROUTES)
        flags = ("--xds", f"unix:{path}", "--gateway", "default/web")
        async with controller(folder, path) as admin, running(*flags, workers=2) as proxy:
            await proxy.ready()
            yield Planes(folder, proxy.at(8080), admin, proxy)


FOUR_LEVELS = (
    policy("at-listener", LISTENER, f"{{{level('listener')}}}"),
    policy("at-route", SHOP, f"{{{level('route')}}}"),
    policy("at-rule", PAY, f"{{{level('rule')}, directResponse: {{status: 202, body: paid}}}}"),
)
PHASES = (
    policy(
        "before",
        GATEWAY,
        "{phase: PreRouting, transformation: {request: {metadata: {seen: '\"yes\"'}, "
        "set: [{name: x-tier, value: 'request.headers[\"x-want\"]'}]}}}",
    ),
    policy(
        "after",
        GATEWAY,
        "{transformation: {request: {set: [{name: x-seen, value: metadata.seen}]}, "
        "response: {set: [{name: x-after, value: '\"post\"'}]}}}",
    ),
    policy("golden", GOLD, f"{{{level('gold')}}}"),
)


async def test_the_most_specific_policy_acts_an_override_locks_its_field_and_both_phases_run(both: Planes) -> None:
    wide = policy("at-gateway", GATEWAY, f"{{{level('gateway')}}}")
    locked = policy("at-gateway", GATEWAY, f"{{{level('gateway')}}}", "Override")
    both.write(wide, *FOUR_LEVELS, *PHASES)
    await until(lambda: levels_are(both, "route", "rule", "listener"), "each level's own")
    paid = await both.ask("/pay")
    assert (paid.status, paid.body) == (202, "paid")

    # PreRouting chose the rule, and left a value for PostRouting; the client's own header counts for nothing.
    gold = await both.ask("/plain", x_want="gold")
    assert (gold.level, gold.headers["x-after"]) == ("gold", "post")
    assert {"x-tier: gold", "x-seen: yes"} <= set(gold.body.split("\r\n"))
    forged = await both.ask("/plain", x_tier="gold")
    assert (forged.level, "x-tier" in forged.body) == ("listener", False)

    both.write(locked, *FOUR_LEVELS, *PHASES)
    await until(lambda: levels_are(both, "gateway", "gateway", "gateway"), "the override")
    assert (await both.ask("/pay")).body == "paid"  # the other field of the rule's policy stays
    assert "at-gateway" in (await both.conditions("at-rule"))["Overridden"][1]
    both.write(wide, *FOUR_LEVELS[1:], *PHASES)
    await until(lambda: levels_are(both, "route", "rule", "gateway"), "the end of the override and of a level")
    assert "Overridden" not in await both.conditions("at-rule")


async def levels_are(both: Planes, *wanted: str) -> bool:
    """Of `/`, `/pay` and `/plain`."""
    return tuple([(await both.ask(path)).level for path in ("/", "/pay", "/plain")]) == wanted


EDITS = 8


async def test_an_edit_under_traffic_loses_no_request_and_nobody_sees_an_older_one_again(both: Planes) -> None:
    def edited(number: int) -> str:
        return policy("edited", SHOP, f"{{{level(str(number))}}}")

    both.write(edited(0))
    await until(lambda: levels_are(both, "0", "0", ""), "the policy")
    kept, ended = await both.connect(), asyncio.Event()
    seen = [await kept.ask("/")]

    async def ask() -> None:
        """By turns on a connection that stays and on one of its own, each when the one before has its answer."""
        while not ended.is_set():
            seen.append(await kept.ask("/"))
            seen.append(await both.ask("/pay"))

    async with asyncio.TaskGroup() as group:
        group.create_task(ask())
        for number in range(1, EDITS + 1):
            both.write(edited(number))
            await until(lambda wanted=str(number): seen[-1].level == wanted, f"edit {number}")  # type: ignore[misc]
        ended.set()
    kept.close()
    assert {answer.status for answer in seen} == {200}
    numbers = [int(answer.level) for answer in seen]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(EDITS + 1))


LIMIT = 12


def worker(answer: Answer) -> str:
    """Whose answer it is: all but the last part of a request's id is the worker's own."""
    (made,) = (line for line in answer.body.split("\r\n") if line.startswith("x-request-id: "))
    return made.rpartition("-")[0]


async def test_a_limit_counts_once_and_outlives_edits_swaps_and_a_worker(both: Planes) -> None:
    limits = f"{{requests: {2 * LIMIT}, unit: Hours}}, {{requests: {LIMIT}, unit: Hours, key: source.address}}"
    limited = policy("limited", PAY, f"{{rateLimit: {{local: [{limits}]}}}}")

    async def statuses() -> Counter[int]:
        return Counter([answer.status for answer in await both.ask_often(2 * LIMIT, "/pay")])

    both.write(limited, policy("shown", GATEWAY, f"{{{level('one')}}}"))
    await until(lambda: level_is(both, "/", "one"), "the policies")
    assert len({worker(answer) for answer in await both.ask_often(2 * LIMIT, "/")}) == 2
    assert await statuses() == {200: LIMIT, 429: LIMIT}

    both.write(limited, policy("shown", GATEWAY, f"{{{level('two')}}}"))
    await until(lambda: level_is(both, "/", "two"), "another policy's edit")
    assert await statuses() == {429: 2 * LIMIT}

    (first, _) = await both.proxy.workers()
    started = both.proxy.log().count("worker serves")
    os.kill(first, signal.SIGKILL)
    await until(lambda: both.proxy.log().count("worker serves") > started, "a new worker")
    assert await statuses() == {429: 2 * LIMIT}
    shown = await both.ask_often(2 * LIMIT, "/")
    assert {answer.level for answer in shown} == {"two"}
    assert len({worker(answer) for answer in shown}) == 2

    both.write()  # the limit goes, and with it what it refused
    await until(lambda: status_is(both, "/pay", 200), "requests without a limit")


async def level_is(both: Planes, path: str, wanted: str) -> bool:
    return (await both.ask(path)).level == wanted


async def status_is(both: Planes, path: str, wanted: int, **headers: str) -> bool:
    return (await both.ask(path, **headers)).status == wanted


PASSWORDS = "ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="
NO_PASSWORDS = "ann:no-hash-at-all"
LOGIN = "Basic YW5uOnBhc3N3b3Jk"  # ann:password
WRONG = "Basic YW5uOndyb25n"
USERS = policy("users", SHOP, "{basicAuthentication: {secretRef: {name: users}}}")
FIELD = "policy/default/users/basic_authentication"


async def test_what_cannot_be_checked_is_refused_and_named_until_it_is_cured(both: Planes) -> None:
    good, bad = (secret("users", ".htaccess", text) for text in (PASSWORDS, NO_PASSWORDS))
    both.write(USERS, good)
    await until(lambda: status_is(both, "/", 401, authorization=WRONG), "the policy")
    await until(lambda: status_is(both, "/", 200, authorization=LOGIN), "it alone")

    both.write(USERS, bad)
    await until(lambda: says(both, "Programmed", "traffic.basicAuthentication: "), "the refusal in the status")
    assert FIELD in await both.refusals()
    refused = await both.ask_often(10, "/", authorization=LOGIN)
    assert {(answer.status, answer.body) for answer in refused} == {(503, "policy cannot be applied")}
    assert (await both.ask("/plain")).status == 200  # which it does not cover
    assert "GatewayPolicy default/users basicAuthentication" in await both.proxy.logged("PolicyUnusable")

    both.write(USERS)
    await until(lambda: says(both, "ResolvedRefs", "default/users"), "the missing Secret in the status")
    await until(lambda: status_is(both, "/", 503, authorization=LOGIN), "the refusal")

    both.write(USERS, good)
    await until(lambda: status_is(both, "/", 200, authorization=LOGIN), "the cure")
    await until(lambda: cured(both), "a status without refusals")
    told = await both.told()
    assert not [text for text in (NO_PASSWORDS, PASSWORDS.partition(":")[2], LOGIN) if text in told]


async def says(both: Planes, kind: str, name: str) -> bool:
    """Whether a condition of the policy is False and names the culprit."""
    status, message = (await both.conditions("users")).get(kind, ("", ""))
    return status == "False" and name in message


async def cured(both: Planes) -> bool:
    found = await both.conditions("users")
    return await both.refusals() == "[]" and {status for status, _ in found.values()} == {"True"}


KEYS = policy(
    "keys",
    SHOP,
    "{apiKeyAuthentication: {secretSelector: {matchLabels: {for: shop}}, location: {header: {name: x-key}}}}",
)


def key(name: str, text: str) -> str:
    """A Secret that `KEYS` selects."""
    return secret(name, "entry", text).replace(f"name: {name}", f"name: {name}, labels: {{for: shop}}")


async def test_a_rotated_secret_acts_and_is_not_seen(both: Planes) -> None:
    both.write(KEYS, key("first", "old-key"))
    await until(lambda: status_is(both, "/", 401), "the policy")
    await until(lambda: status_is(both, "/", 200, x_key="old-key"), "its Secret")
    assert (await both.ask("/", x_key="new-key")).status == 401
    both.write(KEYS, key("first", "new-key"))
    await until(lambda: status_is(both, "/", 401, x_key="old-key"), "the end of the old key")
    assert (await both.ask("/", x_key="new-key")).status == 200
    both.write(KEYS, key("first", "new-key"), key("second", "more-key"))
    await until(lambda: status_is(both, "/", 200, x_key="more-key"), "the key of another Secret")
    told = await both.told()
    assert "secret/default/second" in told
    assert not [text for text in ("old-key", "new-key", "more-key") if text in told]


FRONTEND = """
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: edge}}
spec:
  targetRefs: [{target}]
  frontend: {frontend}
"""


def frontend(settings: str) -> str:
    return FRONTEND.format(target=GATEWAY, frontend=settings)


async def raw(both: Planes, target: str = "/", *lines: str) -> tuple[int, str]:
    """Status and body of a request that is written as it stands; 0: closed without an answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", both._port)
    try:
        writer.write("\r\n".join([f"GET {target} HTTP/1.1", "host: shop.example", *lines, "", ""]).encode())
        async with asyncio.timeout(PATIENCE):
            status, got = parsed(await reader.readuntil(b"\r\n\r\n"))
            return status, (await reader.readexactly(int(got["content-length"]))).decode()
    except (asyncio.IncompleteReadError, ConnectionError):
        return 0, ""
    finally:
        writer.close()


async def gives(both: Planes, wanted: int, target: str = "/", *lines: str) -> bool:
    return (await raw(both, target, *lines))[0] == wanted


async def test_settings_of_a_gateway_arrive_and_go(both: Planes) -> None:
    """`frontend` from a file of the controller's folder to both workers, in one state each."""
    http = "{headerUnderscores: Keep, path: {escapedSlashes: Decode, repeatedSlashes: Merge}, http1MaxHeaders: 20}"
    both.write(frontend(f"{{http: {http}, limits: {{maxRequestBytes: 1Ki}}}}"))
    many = [f"x{n}: 1" for n in range(20)]
    await until(lambda: gives(both, 431, "/", *many), "fewer headers")
    status, body = await raw(both, "/a%2Fb//c", "x_under: kept")
    assert status == 200 and body.startswith("GET /a/b/c HTTP/1.1") and "x_under: kept" in body
    assert (await raw(both, "/", "content-length: 2000"))[0] == 413

    deny = "{action: Deny, policy: {matchExpressions: ['source.address == \"127.0.0.1\"']}}"
    both.write(frontend(f"{{networkAuthorization: {deny}}}"))
    await until(lambda: gives(both, 0), "nobody from here may connect")
    assert (await both.conditions("edge"))["Accepted"][0] == "True"
    assert "edge networkAuthorization" in await both.proxy.logged("NetworkAuthorizationDenied")

    both.write(frontend("{proxyProtocol: {version: V1}}"))
    await until(lambda: proxied(both, "PROXY TCP4 198.51.100.7 10.0.0.1 4711 80", "198.51.100.7"), "the header")
    assert await gives(both, 0)

    both.write()
    await until(lambda: gives(both, 200, "/", *many), "the end of all of it")
    status, body = await raw(both, "/a%2Fb", "x_under: dropped")
    assert status == 200 and "x_under" not in body and body.startswith("GET /a%2Fb ")


async def proxied(both: Planes, header: str, client: str) -> bool:
    """Whether a request behind this header is that client's."""
    reader, writer = await asyncio.open_connection("127.0.0.1", both._port)
    try:
        writer.write(f"{header}\r\nGET / HTTP/1.1\r\nhost: shop.example\r\nconnection: close\r\n\r\n".encode())
        async with asyncio.timeout(PATIENCE):
            return f"x-forwarded-for: {client}\r\n" in (await reader.read()).decode()
    except ConnectionError:
        return False
    finally:
        writer.close()
