"""How MCP clients find the authorization server (`jwtAuthentication.mcp`): metadata, challenges, registrations.

Part of the JWT step. It answers the well-known paths without a token, and nothing else; what it has to ask the identity
provider for it remembers for some minutes, and asks for once at a time. Documents are made by `oauth_metadata`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain.buffering import buffering
from dataplane.chain.calls import CallFailed, CallRequest
from dataplane.chain.filter import Env, Refused, RequestHook
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.credentials import oauth_metadata
from dataplane.credentials.discovery import Unusable
from dataplane.credentials.oauth_metadata import Settings, Site
from dataplane.http.well_known import PUBLISHED, REGISTRATION, RESOURCE, SERVER
from dataplane.link.pools import REGISTRATIONS, Places, Shares, key_of
from gatewright.wire.v1 import authentication_pb2

if TYPE_CHECKING:
    from dataplane.exchange import Exchange

SECONDS: Final = 10.0
"""Decisions, Callouts: JWKS; for metadata and registrations alike."""
FRESH: Final = 300.0
"""Seconds for which metadata counts."""
PAUSE: Final = 5.0
"""Seconds after a failure before the next request for it."""
MOST_REGISTRATIONS: Final = 8
"""Registrations that a worker passes on at the same time for a policy: anybody may send them, so that a client has its
share (`link/pools`)."""

CORS: Final = (
    b"access-control-allow-origin: *\r\naccess-control-allow-methods: GET, POST, OPTIONS\r\n"
    b"access-control-allow-headers: content-type, mcp-protocol-version\r\n"
)
"""Clients in browsers ask from anywhere, and what they get is public."""

Answer = Reply | Awaitable[Reply | None] | None
TOO_LARGE: Final = made("BodyTooLarge", "a registration")
_DENIED: Final = json.dumps({"error": "unauthorized", "error_description": "JWT token required"}).encode()


def settings_of(config: authentication_pb2.JwtAuthentication, any_mode: bool = False) -> Settings:
    """`any_mode`: clients may come without a token, and find the metadata all the same. Raises `Refused`."""
    (provider,) = config.providers if len(config.providers) == 1 else (None,)
    if provider is None:
        raise Refused("mcp: needs exactly one provider")
    if not any_mode and config.mode not in (
        authentication_pb2.AUTHENTICATION_MODE_UNSPECIFIED,
        authentication_pb2.AUTHENTICATION_MODE_STRICT,
    ):
        raise Refused("mcp: needs mode Strict")
    if config.mcp.provider not in oauth_metadata.PROVIDERS:
        raise Refused(f"mcp.provider: {config.mcp.provider} is not known to this proxy")
    try:
        overrides = json.loads(config.mcp.resource_metadata or "{}")
    except (ValueError, RecursionError):
        raise Refused("mcp.resourceMetadata: not JSON") from None
    if not isinstance(overrides, dict):
        raise Refused("mcp.resourceMetadata: no object")
    return Settings(provider.issuer, tuple(provider.audiences), config.mcp.provider, config.mcp.client_id, overrides)


class Discovery:
    """The discovery of one policy."""

    __slots__ = ("_backend", "_env", "_found", "_registering", "_settings", "_until", "_waiting")

    def __init__(self, config: authentication_pb2.JwtAuthentication, env: Env, any_mode: bool = False) -> None:
        """Raises `Refused`."""
        self._settings = settings_of(config, any_mode)
        jwks = config.providers[0].jwks
        self._backend = jwks.remote.backend or jwks.discovery.backend
        """The backend that has the provider's metadata; "": the policy holds the keys and names no backend."""
        self._env = env
        self._found: dict[str, Any] | str = ""
        """The provider's metadata; or why there is none."""
        self._until = 0.0
        self._waiting: list[Any] = []
        """Futures of who waits for an answer that is under way."""
        self._registering = Places(MOST_REGISTRATIONS, Shares(REGISTRATIONS, env.full))

    @property
    def takes_registrations(self) -> bool:
        """There is an id for clients, or somebody who registers them."""
        return bool(self._settings.client_id or self._backend)

    def around(self, hook: RequestHook) -> RequestHook:
        """The step `hook` with discovery before it, and challenges that lead there."""
        register: RequestHook | None = None
        if self.takes_registrations:  # else they need a token as all other requests
            register = buffering(self._register, oauth_metadata.MAX_REGISTRATION, TOO_LARGE)

        def run(x: Exchange) -> Answer:
            answer = self.answer(x, x.path, register)
            if answer is not None:
                return answer
            outcome = hook(x)
            if outcome is None:
                return None
            return self.led(x, outcome) if isinstance(outcome, Reply) else self._led_later(x, outcome)

        return run

    def answer(self, x: Exchange, path: bytes, register: RequestHook | None) -> Answer:
        """None: not a path of this step. `register`: what answers a registration; None: registrations are not taken."""
        answer = self._answer(x, path, register)
        if answer is not None:
            x.leave(PUBLISHED, True)
        return answer

    def _answer(self, x: Exchange, path: bytes, register: RequestHook | None) -> Answer:
        if not path.startswith(b"/.well-known/oauth-") or x.readings:  # what an origin may read otherwise is none
            return None
        for prefix, give in ((RESOURCE, self._resource), (SERVER, self._server)):
            start = prefix.encode()
            if path != start and not path.startswith(start + b"/"):
                continue
            rest = path[len(start) :]
            is_registration = prefix == SERVER and rest.endswith(REGISTRATION.encode())
            if x.method == b"OPTIONS":
                return Reply(204, "", headers=CORS)
            if is_registration:
                return register(x) if x.method == b"POST" and register is not None else None
            site = _site(x, rest)
            if x.method not in (b"GET", b"HEAD") or site is None:
                return None
            return give(site)
        return None

    # --- metadata

    def _resource(self, site: Site) -> Reply:
        return _json(200, oauth_metadata.resource(self._settings, site))

    def _server(self, site: Site) -> Answer:
        known = self._known()
        return self._server_of(known, site) if known is not None else self._server_later(site)

    async def _server_later(self, site: Site) -> Reply | None:
        return self._server_of(await self._fetched(), site)

    def _server_of(self, found: dict[str, Any] | str, site: Site) -> Reply:
        if isinstance(found, str):
            return made("OAuthMetadataUnavailable", f"{self._env.origin}: {found}", CORS)
        return _json(200, oauth_metadata.server(found, self._settings, site))

    def _known(self) -> dict[str, Any] | str | None:
        """What is known of the provider; None: it has to be asked."""
        if not self._backend:
            return "the policy names no server that could be asked: its keys are inline"
        return self._found if self._env.clock() < self._until else None

    async def _fetched(self) -> dict[str, Any] | str:
        """Ask, or wait for the answer to the same question. It runs beside the requests that wait: one that is given up
        spoils nothing."""
        known = self._known()
        if known is not None:
            return known
        if self._env.spawn is None:
            await self._fetch()
            return self._found
        future = self._env.make_future()
        self._waiting.append(future)
        if len(self._waiting) == 1:
            self._env.spawn(self._fetch())
        await future
        return self._found

    async def _fetch(self) -> None:
        self._found = "asking was broken off"
        try:
            self._found = await self._asked()
        finally:
            self._until = self._env.clock() + (PAUSE if isinstance(self._found, str) else FRESH)
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    async def _asked(self) -> dict[str, Any] | str:
        assert self._env.calls is not None  # keys are fetched through them too
        try:
            authority, path = oauth_metadata.source(self._settings)
            request = CallRequest(b"GET", path, authority, b"accept: application/json\r\n")
            answer = await self._env.calls.http(self._backend, request, SECONDS, oauth_metadata.MAX_DOCUMENT)
            if answer.status != 200:
                return f"the identity provider answered {answer.status}"
            return oauth_metadata.read(answer.body, self._settings)
        except (CallFailed, Unusable) as error:
            return str(error)

    # --- registrations

    def _register(self, x: Exchange) -> Answer:
        return self.registered(x.body or b"", x)

    def registered(self, body: bytes, x: Exchange) -> Answer:
        """None: clients are not registered here."""
        if len(body) > oauth_metadata.MAX_REGISTRATION:
            return TOO_LARGE
        if self._settings.client_id:
            document = oauth_metadata.registered(body, self._settings.client_id)
            if document is None:
                return _json(400, {"error": "invalid_client_metadata"})
            return _json(201, document)
        if not self._backend:
            return None
        if not self._registering.fits(key_of(x.peer)):
            return made("AuthenticationBusy", f"{self._env.origin}: registrations of clients", CORS)
        return self._counted(body, x)

    async def _counted(self, body: bytes, x: Exchange) -> Reply:
        source = key_of(x.peer)
        self._registering.hold(source)  # while it waits for metadata, too: others wait beside it
        try:
            return await self._passed_on(body, x)
        finally:
            self._registering.free(source)

    async def _passed_on(self, body: bytes, x: Exchange) -> Reply:
        assert self._env.calls is not None  # as above
        found = await self._fetched()
        if isinstance(found, str):
            return made("OAuthMetadataUnavailable", f"{self._env.origin}: {found}", CORS)
        try:
            authority, _ = oauth_metadata.source(self._settings)
            target = oauth_metadata.registration_target(found, self._settings)
            headers = b"content-type: application/json\r\naccept: application/json\r\n"
            request = CallRequest(b"POST", target, authority, headers, body)
            answer = await self._env.calls.http(self._backend, request, SECONDS, oauth_metadata.MAX_DOCUMENT, x)
        except (CallFailed, Unusable) as error:
            return made("OAuthMetadataUnavailable", f"{self._env.origin}: {error}", CORS)
        if not 200 <= answer.status < 500:
            return made("OAuthMetadataUnavailable", f"{self._env.origin}: the provider answered {answer.status}", CORS)
        return Reply(answer.status, "", answer.body, CORS, b"application/json")

    # --- challenges

    def led(self, x: Exchange, reply: Reply) -> Reply:
        """A refusal that says where the metadata is (RFC 9728 5.1)."""
        site = _site(x, x.asked_target.partition(b"?")[0])
        if reply.status != 401 or site is None:
            return reply
        pointer = oauth_metadata.pointer(self._settings, site)
        start, _, rest = reply.headers.partition(b"\r\n")
        joint = b", " if b"=" in start else b" "
        return replace(
            reply, headers=start + joint + pointer + b"\r\n" + rest, body=_DENIED, content_type=b"application/json"
        )

    async def _led_later(self, x: Exchange, outcome: Awaitable[Reply | None]) -> Reply | None:
        reply = await outcome
        return None if reply is None else self.led(x, reply)


def _site(x: Exchange, path: bytes) -> Site | None:
    """Where the client asked, as it says itself, or as proxies before us do that may."""
    head = x.request
    scheme = head.get(b"x-forwarded-proto") or x.scheme
    scheme = b"https" if scheme.strip().lower() == b"https" else b"http"
    return oauth_metadata.site(scheme, head.get(b"x-forwarded-host") or x.authority, path)


def _json(status: int, document: dict[str, Any]) -> Reply:
    return Reply(status, "", json.dumps(document).encode(), CORS, b"application/json")
