"""What checks the tokens of clients, for `traffic.jwtAuthentication` and the deprecated `backend.mcp.authentication`.

A token that was verified before is recognised by what the client sent, byte for byte, and costs one look-up. Keys are
fetched through `Env.calls`; a check waits only for keys that it does not have yet.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from dataplane.chain.filter import Env, Refused, RequestHook
from dataplane.chain.reply import Reply
from dataplane.credentials import issuer_keys, locations, refusals
from dataplane.credentials.key_sources import RemoteKeys
from dataplane.credentials.known_tokens import KnownTokens
from gatewright.cel.values import Redacted
from gatewright.wire.v1 import authentication_pb2

if TYPE_CHECKING:
    from dataplane.credentials.providers import Provider
    from dataplane.exchange import Exchange


def of(
    config: authentication_pb2.JwtAuthentication,
    place: locations.Location,
    env: Env,
    begin: Callable[[RemoteKeys], None] | None = None,
    any_issuer: bool = False,
) -> Authentication:
    """`begin` gets keys that have to be fetched. `any_issuer`: a provider without an issuer is one of all tokens that
    its keys sign. Raises `Refused`: no providers, inline keys without a usable one, remote keys without a way to fetch
    them, a Secret that is not there or too short."""
    from dataplane.credentials.providers import Provider

    providers: dict[str, list[Provider]] = {}
    for index, provider in enumerate(config.providers):
        source = issuer_keys.source(provider, f"providers[{index}]", env)
        if begin is not None and isinstance(source, RemoteKeys):
            begin(source)
        made = Provider(provider.audiences, source, has_secret=bool(provider.secret))
        providers.setdefault(provider.issuer, []).append(made)
    if not providers:
        raise Refused("providers: none")
    anybody = providers.pop("", None) if any_issuer else None
    return Authentication(providers, place, config.mode, env, anybody)


class Authentication:
    """The step of one policy."""

    __slots__ = ("_absent", "_anybody", "_known", "_place", "_providers", "_replies", "_wall")

    def __init__(
        self,
        providers: dict[str, list[Provider]],
        place: locations.Location,
        mode: int,
        env: Env,
        anybody: list[Provider] | None = None,
    ) -> None:
        from dataplane.credentials import jwt
        from dataplane.credentials import providers as judges

        scheme = place.scheme or b"Bearer"
        self._providers, self._place, self._wall = providers, place, env.wall_clock
        self._anybody = anybody
        """Those of issuers that are none of `_providers`."""
        self._known = KnownTokens()
        self._absent = refusals.absence(mode, "JwtMissing", scheme, env.origin)
        causes = (*jwt.CAUSES, refusals.SEVERAL)
        self._replies = {
            **refusals.refusals(mode, "JwtInvalid", scheme + b' error="invalid_token"', env.origin, causes),
            **refusals.refusals(mode, "JwtKeysUnavailable", scheme, env.origin, (judges.KEYS_UNAVAILABLE,)),
        }

    def hook(self) -> RequestHook:
        return self._in_header(self._place.needle) if self._place.needle else self._anywhere()

    def _anywhere(self) -> RequestHook:
        find, remove, wall_clock, known = self._place.find, self._place.remove, self._wall, self._known.entries
        absent, unknown = self._absent, self._unknown

        def authenticate(x: Exchange) -> Reply | Awaitable[Reply | None] | None:
            found = find(x)
            if found is None:
                return absent
            entry = known.get(found[0])
            if entry is not None:
                until, source, keys, claims = entry
                if source.keys is keys and wall_clock() < until:
                    remove(x, found)
                    x.leave("jwt", claims)
                    return None
            return unknown(x, found)

        return authenticate

    def _in_header(self, needle: bytes) -> RequestHook:
        """The same with `locations.in_header` written out: every request of most gateways comes by here."""
        wall_clock, known, absent, unknown = self._wall, self._known.entries, self._absent, self._unknown
        length = len(needle)

        def authenticate(x: Exchange) -> Reply | Awaitable[Reply | None] | None:
            head = x.request
            low = head.low
            start = low.find(needle)
            if start < 0:
                return absent
            end = low.find(b"\r", start + length)
            if low.find(needle, end) != -1:
                return unknown(x, locations.AMBIGUOUS)
            block = head.block
            sent = block[start + length : end]
            entry = known.get(sent)
            if entry is not None:
                until, source, keys, claims = entry
                if source.keys is keys and wall_clock() < until:
                    head.block = block[:start] + block[end:]
                    head.low = low[:start] + low[end:]
                    x.leave("jwt", claims)
                    return None
            return unknown(x, (sent, start, end))

        return authenticate

    def _unknown(self, x: Exchange, found: locations.Found) -> Reply | Awaitable[Reply | None] | None:
        """A credential that was not verified yet, or whose time is over."""
        if found is locations.AMBIGUOUS:
            return self._replies[refusals.SEVERAL]
        token = self._place.read(found[0])
        if token is None:
            return self._absent
        self._known.forget(found[0])
        outcome = self._verified(found[0], token, may_wait=True)
        if isinstance(outcome, tuple):
            return self._later(x, found, token, outcome)
        return self._verdict(x, found, outcome)

    async def _later(
        self, x: Exchange, found: locations.Found, token: bytes, sources: tuple[RemoteKeys, ...]
    ) -> Reply | None:
        for each in [source.fetching() for source in sources]:  # begun together
            await each
        outcome = self._verified(found[0], token, may_wait=False)
        assert not isinstance(outcome, tuple)  # it may not
        return self._verdict(x, found, outcome)

    def _verdict(self, x: Exchange, found: locations.Found, outcome: dict[str, Any] | str) -> Reply | None:
        if isinstance(outcome, str):
            return self._replies[outcome]
        self._place.remove(x, found)
        x.leave("jwt", outcome)
        return None

    def _verified(self, sent: bytes, token: bytes, may_wait: bool) -> dict[str, Any] | str | tuple[RemoteKeys, ...]:
        """Claims; or why it is refused; or the keys that have to be fetched first."""
        from dataplane.credentials import jwt, providers

        read = jwt.read(token)
        if isinstance(read, str):
            return read
        issuer = read.claims.get("iss")
        known = self._providers.get(issuer, self._anybody) if isinstance(issuer, str) else self._anybody
        if known is None:
            return jwt.ISSUER
        now = self._wall()
        verdict = providers.judge(read, known, now, may_wait)
        if isinstance(verdict, str):
            return verdict
        if isinstance(verdict, providers.Awaited):
            return verdict.sources
        claims = {**read.claims, "rawToken": Redacted(token.decode())}
        until = min(read.claims["exp"] + jwt.LEEWAY, now + verdict.source.fresh_for())
        self._known.remember(sent, (until, verdict.source, verdict.keys, claims))
        return claims
