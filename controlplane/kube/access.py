"""How the API server is reached, and what it answers: requests, and streams of lines. The only file that knows
kubernetes-asyncio.

The library finds the configuration (a kubeconfig file with its plugins, or the pod's own service account) and carries
requests. Objects stay as the API server wrote them: its classes for them are not used.

Credentials end. The library reads a pod's token again every minute, and nothing else: what a plugin or a file gave is
asked for anew here when the API server answers 401.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp

from controlplane.settings import Cluster

log = logging.getLogger("controlplane.kube")

Json = dict[str, Any]  # Any: JSON

POD_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
DEFAULT_NAMESPACE: Final = "default"
"""As kubectl has it where a context names none."""
TIMEOUT: Final = 30.0
"""Seconds for one answer."""
SILENCE: Final = 90.0
"""Seconds without a byte after which a watch is begun anew: the API server sends a bookmark about every minute."""
RENEWED: Final = 10.0
"""Seconds between two tries to get other credentials: a plugin is a program that somebody waits for."""
LONGEST_LINE: Final = 16 * 1024 * 1024
"""Bytes of one event. The store takes objects of 1.5 MiB."""
LONGEST_ANSWER: Final = 64 * 1024 * 1024
"""Bytes of one page of a list."""
TOO_LARGE: Final = "TooLarge"
"""The reason of `ApiError` for more than that."""
JSON_PATCH: Final = "application/json-patch+json"
APPLY: Final = "application/apply-patch+yaml"
_TOKEN, _HEADER = "BearerToken", "authorization"
"""As the library calls the setting that holds tokens, and the header that it writes it into."""
_AUTH: Final = [_TOKEN]
_HINT: Final = "name a kubeconfig file with --kubeconfig, or run in a pod with a service account"


class NoCluster(Exception):
    """There is no configuration that says how to reach an API server; the text says what was looked at."""


class ApiError(Exception):
    """The API server refused a request. `message` is its own text."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason or 'error'}: {message}"[:1024])
        self.status = status
        self.reason = reason


class Found(NamedTuple):
    """What configuration comes to: the library's own, and the namespace that it names."""

    configuration: Any  # Any: the library has no types
    namespace: str


class Access:
    """A connection to one API server. Made by `opened`."""

    def __init__(self, client: Any, namespace: str, look: Callable[[], Awaitable[Found]]) -> None:
        """`client` is the library's. `look` finds the configuration anew; raises NoCluster."""
        self._client = client
        self.namespace = namespace
        self.host: str = client.configuration.host
        self._look = look
        self._renewing = asyncio.Lock()
        self._renewed_at = float("-inf")

    async def read(self, path: str, **query: str | int) -> bytes:
        """An answer as it came. Raises ApiError, OSError, TimeoutError."""
        status, raw = await self._asked("GET", path, None, "application/json", query)
        if status >= HTTPStatus.BAD_REQUEST:
            _checked(status, raw)
        return raw

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        content: str = "application/json",
        query: Mapping[str, Any] | None = None,
    ) -> Json:
        """One request; the answer is an object. Raises ApiError, OSError, TimeoutError."""
        return _checked(*await self._asked(method, path, body, content, query or {}))

    async def lines(self, path: str, **query: str | int) -> AsyncIterator[list[bytes]]:
        """The lines of an answer that goes on, as many at a time as have come. Raises ApiError, OSError, TimeoutError;
        ValueError for a line that is longer than any event."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT, sock_read=SILENCE)
        answer = await self._send("GET", path, None, "application/json", query, limits)
        try:
            if answer.status >= HTTPStatus.BAD_REQUEST:
                _checked(answer.status, await _read(answer))
            rest = b""
            async for chunk in answer.content.iter_any():
                *whole, rest = (rest + chunk).split(b"\n")
                if len(rest) > LONGEST_LINE:
                    raise ValueError(f"an event of more than {LONGEST_LINE} bytes")
                if whole:
                    yield whole
                del chunk, whole  # objects once more, until the next ones come
        except aiohttp.SocketTimeoutError:
            return  # silence: the connection may be gone without a word, so that the watch is begun anew
        except aiohttp.ClientError as error:  # the server ended in the middle of an answer
            raise OSError(str(error) or type(error).__name__) from error
        finally:
            answer.close()

    async def _asked(
        self, method: str, path: str, body: object, content: str, query: Mapping[str, Any]
    ) -> tuple[int, bytes]:
        async with asyncio.timeout(TIMEOUT):
            answer = await self._send(method, path, body, content, query, aiohttp.ClientTimeout(total=TIMEOUT))
            try:
                return answer.status, await _read(answer)
            except aiohttp.ClientError as error:
                raise OSError(str(error) or type(error).__name__) from error
            finally:
                answer.release()

    async def _send(
        self,
        method: str,
        path: str,
        body: object,
        content: str,
        query: Mapping[str, Any],
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """With other credentials once more, where those that we have are refused."""
        client, headers = self._client, {"Accept": "application/json", "Content-Type": content}
        request = partial(
            _sent, method=method, url=self.host + path, query=sorted(query.items()), body=body, limits=limits
        )
        answer = await request(client, headers)
        if answer.status == HTTPStatus.UNAUTHORIZED and await self._renew(client, headers.pop(_HEADER, "")):
            answer.release()
            answer = await request(self._client, headers)
        return answer

    async def _renew(self, client: Any, refused: str) -> bool:  # Any: the library's client
        """Whether there are other credentials than the token that was refused, or than the certificate ("")."""
        async with self._renewing:
            if self._client is not client or client.configuration.api_key.get(_TOKEN, "") != refused:
                return True  # while this one waited
            now = asyncio.get_running_loop().time()
            if now - self._renewed_at < RENEWED:
                return False
            self._renewed_at = now
            try:
                async with asyncio.timeout(TIMEOUT):
                    found, _ = await self._look()
            except (NoCluster, TimeoutError) as error:
                log.warning("credentials are refused, and there are no others: %s", error or "no answer")
                return False
            return await self._use(found, refused)

    async def _use(self, found: Any, refused: str) -> bool:  # Any: the library's configuration
        """A token replaces the one before; a certificate needs other connections."""
        if found.cert_file:
            old, self._client = self._client, type(self._client)(found)
            await old.close()
            return True
        configuration = self._client.configuration
        configuration.api_key, configuration.refresh_api_key_hook = found.api_key, found.refresh_api_key_hook
        return bool(found.api_key.get(_TOKEN, "") != refused)

    async def close(self) -> None:
        await self._client.close()


async def _sent(
    client: Any,  # Any: the library's
    headers: dict[str, str],
    *,
    method: str,
    url: str,
    query: Sequence[tuple[str, Any]],
    body: object,
    limits: aiohttp.ClientTimeout,
) -> aiohttp.ClientResponse:
    """`headers` get the token. Raises OSError, TimeoutError."""
    await client.update_params_for_auth(headers, [], _AUTH)
    try:
        answer: aiohttp.ClientResponse = await client.rest_client.request(
            method,
            url,
            query_params=query,
            headers=headers,
            body=body,
            _preload_content=False,
            _request_timeout=limits,
        )
    except aiohttp.ClientError as error:
        raise OSError(str(error) or type(error).__name__) from error
    return answer


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    """All of an answer. Raises ApiError for one larger than any list of Gatewright's kinds."""
    pieces, size = [], 0
    async for chunk in answer.content.iter_any():
        pieces.append(chunk)
        size += len(chunk)
        if size > LONGEST_ANSWER:
            answer.close()
            raise ApiError(answer.status, TOO_LARGE, f"the answer has more than {LONGEST_ANSWER} bytes")
    return b"".join(pieces)


async def opened(cluster: Cluster) -> Access:
    """Raises NoCluster."""
    # Here: the library takes 70 MB and a second or two, which a controller that reads a folder does not need.
    from kubernetes_asyncio.client import ApiClient

    found = await _configured(cluster)
    return Access(ApiClient(found.configuration), found.namespace, lambda: _configured(cluster))


async def _configured(cluster: Cluster) -> Found:
    """Raises NoCluster."""
    from kubernetes_asyncio import client, config

    configuration = client.Configuration()
    namespace = cluster.namespace
    try:
        if cluster.kubeconfig is None and cluster.context is None and POD_NAMESPACE.exists():
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
            namespace = namespace or POD_NAMESPACE.read_text().strip()
        else:
            file = None if cluster.kubeconfig is None else str(cluster.kubeconfig)
            await config.load_kube_config(file, cluster.context, configuration)
            namespace = namespace or _namespace_of(config, file, cluster.context)
    except (config.ConfigException, OSError) as error:
        raise NoCluster(f"{cluster}: {error}; {_HINT}") from error
    return Found(configuration, namespace or DEFAULT_NAMESPACE)


def _namespace_of(config: Any, file: str | None, context: str | None) -> str:
    contexts, active = config.list_kube_config_contexts(file)
    chosen = next((each for each in contexts if each["name"] == context), active)
    return str((chosen or {}).get("context", {}).get("namespace", ""))


def _checked(status: int, raw: bytes) -> Json:
    try:
        value = json.loads(raw)
    except ValueError:
        value = None
    found: Json = value if isinstance(value, dict) else {}
    if status >= HTTPStatus.BAD_REQUEST:
        message = found.get("message") or raw[:256].decode("utf-8", "replace")
        raise ApiError(status, str(found.get("reason") or ""), str(message))
    if value is None:
        raise ApiError(status, "NotJson", "the answer is no JSON object")
    return found
