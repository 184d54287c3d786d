"""Providers of tokens, and which of them answers for a token: several may have one issuer.

Used by the JWT filter. Of the issuer's providers those count whose key the token names (`kid`), else those with a key
that can check it; of these those whose audiences it is for. A token is valid when one of them accepts it all by itself,
with its own key and its own audiences: no two providers are ever mixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from dataplane.credentials import jwt
from dataplane.credentials.jwks import MOST_WORK, KeySet
from dataplane.credentials.key_sources import InlineKeys, RemoteKeys
from dataplane.credentials.shared_secret import ALGORITHM

KEYS_UNAVAILABLE: Final = "the keys of the issuer could not be fetched"

Source = InlineKeys | RemoteKeys


class Provider:
    """An issuer, as far as tokens are checked against it. `has_secret`: it shares a secret, and has no public keys."""

    __slots__ = ("audiences", "has_secret", "source")

    def __init__(self, audiences: Iterable[str], source: Source, has_secret: bool = False) -> None:
        self.audiences, self.source, self.has_secret = frozenset(audiences), source, has_secret


@dataclass(frozen=True, slots=True)
class Accepted:
    """The token is valid: whose keys it was checked with, and which."""

    source: Source
    keys: KeySet


@dataclass(frozen=True, slots=True)
class Awaited:
    """The answer waits until these were fetched; asked again then, it does not wait."""

    sources: tuple[RemoteKeys, ...]


class _Candidate(NamedTuple):
    provider: Provider
    keys: KeySet


def judge(token: jwt.Token, providers: Sequence[Provider], now: float, may_wait: bool) -> Accepted | Awaited | str:
    """Whether one of the issuer's providers accepts the token; else the cause. `now`: seconds since the epoch."""
    concerned = [each for each in providers if each.has_secret == (token.algorithm == ALGORITHM)]
    keys = [each.source.current() if may_wait else each.source.keys for each in concerned]
    there = [_Candidate(each, its) for each, its in zip(concerned, keys, strict=True) if its is not None]
    lacking = [each.source for each, its in zip(concerned, keys, strict=True) if its is None]
    named = [each for each in there if token.kid is not None and each.keys.names(token.kid)]
    named = [each for each in named if _fits(token, each)]
    verdict = _tried(token, named, now)
    if isinstance(verdict, Accepted):
        return verdict
    if may_wait and (sources := _fetchable(lacking, unknown=False)):
        return Awaited(sources)
    if not named:
        verdict = _tried(token, [each for each in there if _fits(token, each)], now)
        if isinstance(verdict, Accepted):
            return verdict
        # Perhaps it names a key that is newer than those known here.
        others = [each.provider.source for each in there if not _fits(token, each)]
        if may_wait and (sources := _fetchable(others, unknown=True)):
            return Awaited(sources)
    return KEYS_UNAVAILABLE if lacking else verdict


def _fits(token: jwt.Token, candidate: _Candidate) -> bool:
    return bool(candidate.keys.fitting(token.kid, token.algorithm))


def _tried(token: jwt.Token, candidates: Sequence[_Candidate], now: float) -> Accepted | str:
    """The first candidate that accepts the token, those for its audience before all; else the cause that says most."""
    cause, work = jwt.UNKNOWN_KEY, 0
    for provider, keys in _of_its_audience(token, candidates):
        work += keys.work(token.kid, token.algorithm)
        if work > MOST_WORK and cause != jwt.UNKNOWN_KEY:
            break  # as with many keys of one name
        signature = jwt.wrong_signature(token, keys)
        wrong = signature or jwt.wrong_claims(token.claims, provider.audiences, now)
        if not wrong:
            return Accepted(provider.source, keys)
        cause = cause if signature and cause != jwt.UNKNOWN_KEY else wrong
    return cause


def _of_its_audience(token: jwt.Token, candidates: Sequence[_Candidate]) -> Sequence[_Candidate]:
    """All of them when the token is for none: its signature then says why, as with a single provider."""
    return [each for each in candidates if jwt.is_for(token.claims, each.provider.audiences)] or candidates


def _fetchable(sources: Iterable[Source], unknown: bool) -> tuple[RemoteKeys, ...]:
    return tuple(each for each in _remote(sources) if each.may_fetch(unknown))


def _remote(sources: Iterable[Source]) -> Iterator[RemoteKeys]:
    return (each for each in sources if isinstance(each, RemoteKeys))
