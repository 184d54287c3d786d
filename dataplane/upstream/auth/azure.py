"""Tokens of Microsoft Entra, for services of Azure: of a client with a secret, of a workload, of an identity that Azure
manages. They act on nothing but what they are given.

Variables have the names of Azure's own SDKs.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

from dataplane.upstream.auth.asking import Headers, Question, World, answered, form, object_of, seconds_of, text_of
from dataplane.upstream.auth.tokens import Fetched, Unobtainable

AUDIENCE: Final = "https://cognitiveservices.azure.com"
"""Whom tokens are for: Azure OpenAI and the other services of Azure AI, but for"""
FOUNDRY: Final = "https://ai.azure.com"
"""projects of Azure AI Foundry, whose hosts end in"""
_OF_FOUNDRY: Final = ".services.ai.azure.com"
_AUTHORITY: Final = "https://login.microsoftonline.com"
_METADATA: Final = "http://169.254.169.254"
_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


def audience_of(host: str) -> str:
    return FOUNDRY if host.endswith(_OF_FOUNDRY) else AUDIENCE


class Client(NamedTuple):
    """A client and its secret."""

    client: str
    tenant: str
    secret: str

    def __repr__(self) -> str:
        return f"Client({self.client})"


class ManagedIdentity(NamedTuple):
    """The first that is not "" counts; all "": that of the system."""

    client: str = ""
    object: str = ""
    resource: str = ""


SYSTEM: Final = ManagedIdentity()


async def of_client(world: World, client: Client, audience: str = AUDIENCE) -> Fetched[bytes]:
    """Raises `Unobtainable`, as all of these."""
    return await _granted(world, client.tenant, client.client, {"client_secret": client.secret}, audience)


async def of_managed(world: World, identity: ManagedIdentity, audience: str = AUDIENCE) -> Fetched[bytes]:
    known = world.environment
    url, header = known.get("IDENTITY_ENDPOINT"), known.get("IDENTITY_HEADER")
    if url and header:  # App Service, Container Apps
        named = _named(identity, ("client_id", "principal_id", "mi_res_id"))
        return await _managed(world, url, "2019-08-01", audience, named, (("x-identity-header", header),))
    base = (known.get("AZURE_POD_IDENTITY_AUTHORITY_HOST") or _METADATA).rstrip("/")
    named = _named(identity, ("client_id", "object_id", "msi_res_id"))
    url = f"{base}/metadata/identity/oauth2/token"
    return await _managed(world, url, "2018-02-01", audience, named, (("metadata", "true"),))


async def ambient(world: World, audience: str = AUDIENCE) -> Fetched[bytes]:
    """What the environment names: a client with a secret, a workload, else the identity of the system."""
    known = world.environment
    client, tenant = known.get("AZURE_CLIENT_ID", ""), known.get("AZURE_TENANT_ID", "")
    secret, file = known.get("AZURE_CLIENT_SECRET"), known.get("AZURE_FEDERATED_TOKEN_FILE")
    if client and tenant and secret:
        return await of_client(world, Client(client, tenant, secret), audience)
    if client and tenant and file:
        assertion = (await world.read(file)).decode("utf-8", "replace").strip()
        proof = {"client_assertion_type": _ASSERTION, "client_assertion": assertion}
        return await _granted(world, tenant, client, proof, audience)
    return await of_managed(world, ManagedIdentity(client), audience)


async def _granted(world: World, tenant: str, client: str, proof: dict[str, str], audience: str) -> Fetched[bytes]:
    """By the grant of client credentials (RFC 6749 4.4)."""
    authority = (world.environment.get("AZURE_AUTHORITY_HOST") or _AUTHORITY).rstrip("/")
    if "://" not in authority:
        authority = f"https://{authority}"
    fields = {"grant_type": "client_credentials", "client_id": client, "scope": f"{audience}/.default", **proof}
    return await _token(world, form(f"{authority}/{quote(tenant, safe='')}/oauth2/v2.0/token", fields))


def _named(identity: ManagedIdentity, names: tuple[str, str, str]) -> dict[str, str]:
    """The parameter that names it."""
    return dict([(name, value) for name, value in zip(names, identity, strict=True) if value][:1])


async def _managed(
    world: World, url: str, version: str, audience: str, named: dict[str, str], headers: Headers
) -> Fetched[bytes]:
    query = urlencode({"api-version": version, "resource": audience, **named})
    return await _token(world, Question("GET", f"{url}?{query}", headers))


async def _token(world: World, question: Question) -> Fetched[bytes]:
    answer = await answered(world.ask, question)
    found = object_of(answer, question.host)
    token = text_of(found, "access_token", question.host)
    if "expires_in" in found or "expires_on" not in found:
        return Fetched(token, seconds_of(found, "expires_in"))
    ends = seconds_of(found, "expires_on")  # of App Service: seconds since the epoch, by Azure's clock
    moment = world.wall() if answer.moment is None else answer.moment
    if ends < moment / 2:
        raise Unobtainable(f"{question.host} answered without a usable expires_on")
    return Fetched(token, ends - moment)
