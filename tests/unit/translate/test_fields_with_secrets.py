"""Every field of the API that leads to a Secret, or holds a secret itself, found by walking the models: a row here says
what becomes of it at the Gateway of another namespace. A new field has no row, and fails."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import cache

import pytest
from pydantic import BaseModel

from gatewright.api.backend.auth import SECRET_ENTRIES
from gatewright.api.checks import unsupported
from gatewright.api.decode import documents
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.model import model_in
from gatewright.api.schema.references import LocalObjectReference, ObjectReference
from tests.fakes.certificates import Authority
from tests.unit.translate.golden import World
from tests.unit.translate.tenants import (
    BACKEND_REF,
    KEY,
    OURS,
    PROVIDER,
    ROUTES,
    SERVER,
    SERVICE_REF,
    STATIC,
    TLS,
    backend,
    gateway,
    grant,
    has_key,
    policy,
    route,
    secret,
    world,
)

SECRET_ITSELF = "Secret"
"""The kind that is named; its own fields are no references."""


def fields(model: type[BaseModel], path: str = "", above: frozenset[type[BaseModel]] = frozenset()) -> Iterator[str]:
    """Paths of fields that name a Secret or ConfigMap, or any object of a group and kind (in which a secret could be),
    and of texts that are kept out of dumps, as secrets are."""
    for attribute, field in model.model_fields.items():
        name = field.alias or attribute
        inside = model_in(field.annotation)
        many = "[]" if "tuple[" in str(field.annotation) else ""
        here = f"{path}.{name}{many}".lstrip(".")
        if inside is None:
            if not field.repr:
                yield here
        elif _names_a_secret(inside) or "secret" in name.lower():
            yield here
        elif inside not in above:
            yield from fields(inside, here, above | {inside})


def _names_a_secret(model: type[BaseModel]) -> bool:
    free = (LocalObjectReference, ObjectReference)
    return issubclass(model, free) or any(word in model.__name__ for word in ("Secret", "ConfigMap"))


def works(kind: str, path: str) -> bool:
    """Whether the setting works: others are refused by name, so nothing of them goes anywhere."""
    steps = unsupported.tree(kind, KINDS[kind].model)
    for name in path.replace("[]", "").split("."):
        step = next((each for each in steps if each.name == name), None)
        if step is None:
            return True
        if step.refused:
            return False
        steps = step.below
    return True


@cache
def working() -> tuple[str, ...]:
    kinds = {kind: info.model for kind, info in KINDS.items() if kind != SECRET_ITSELF}
    return tuple(f"{kind}.{path}" for kind, model in kinds.items() for path in fields(model) if works(kind, path))


BY_ROUTE = (grant("HTTPRoute", "GatewayBackend", to_group=OURS), route("b", BACKEND_REF % "a"))
TO_SECRET = grant("HTTPRoute", "Secret", "client")

CREDENTIALS = {
    "secretRef": "{secretRef: {name: client}}",
    "aws.secretRef": "{aws: {secretRef: {name: client}}}",
    "azure.secretRef": "{azure: {secretRef: {name: client}}}",
    "gcp.secretRef": "{gcp: {secretRef: {name: client}}}",
}
"""Fields of `backend.auth` that name a Secret."""

GUARDS = {
    "promptGuard.request[].openAIModeration": "{ai: {promptGuard: {request: [{openAIModeration: {policies: %s}}]}}}",
    **{
        f"promptGuard.{name}[].{guard}": (
            f"{{ai: {{promptGuard: {{{name}: [{{{guard}: {{{least}, policies: %s}}}}]}}}}}}"
        )
        for name in ("request", "response")
        for guard, least in (
            ("bedrockGuardrails", "identifier: i, version: '1', region: us-east-1"),
            ("googleModelArmor", "templateId: t, projectId: p"),
        )
    },
}
"""Servers that guards of `backend.ai` bring, which have policies of their own."""
PLAIN = "{ai: {provider: {openai: {}, host: 203.0.113.1}}}"
MODELS = PLAIN[:-1] + f", policies: {TLS}}}"
OF_GUARDS = {
    f"{place}.ai.{guard}.policies": (made.replace(TLS, text % TLS), others)
    for place, (made, others) in {
        "GatewayPolicy.spec.backend": (
            policy("GatewayBackend", "tools", group=OURS),
            (backend("a", PLAIN), *BY_ROUTE),
        ),
        "GatewayBackend.spec.policies": (backend("a", MODELS), BY_ROUTE),
        "GatewayBackend.spec.ai.groups[].providers[].policies": (backend("a", PROVIDER), BY_ROUTE),
    }.items()
    for guard, text in GUARDS.items()
}
"""Where these stand, with the Secret of a certificate, and who leads to them."""

WITH_KEYS = {
    **{
        f"{place}.auth.key": (made.replace(TLS, "{auth: {key: %s}}"), *others)
        for place, (made, others) in OF_GUARDS.items()
    },
    "GatewayPolicy.spec.backend.auth.key": (
        policy().replace(TLS, "{auth: {key: %s}}"),
        grant("HTTPRoute", "Service"),
        route("b", SERVICE_REF),
    ),
    "GatewayBackend.spec.policies.auth.key": (backend("a", STATIC.replace(TLS, "{auth: {key: %s}}")), *BY_ROUTE),
    "GatewayBackend.spec.mcp.targets[].static.policies.auth.key": (
        backend("a", SERVER.replace(TLS, "{auth: {key: %s}}")),
        *BY_ROUTE,
    ),
    "GatewayBackend.spec.ai.groups[].providers[].policies.auth.key": (
        backend("a", PROVIDER.replace(TLS, "{auth: {key: %s}}")),
        *BY_ROUTE,
    ),
}
"""What holds a credential itself, and who leads to it."""


def brought(text: str) -> str:
    """With all entries that any of these must have."""
    names = (entry for entries in SECRET_ENTRIES.values() for entry in entries)
    return text + "---" + secret(**{"tls.crt": b"-", "tls.key": KEY, **dict.fromkeys(names, KEY)})


BROUGHT = {
    **{f"{place}.tls.mtlsCertificateRef[]": (made, *others) for place, (made, others) in OF_GUARDS.items()},
    **{
        f"{place}.auth.{path}": (brought(made.replace(TLS, f"{{auth: {setting}}}")), *others)
        for place, (made, others) in OF_GUARDS.items()
        for path, setting in CREDENTIALS.items()
    },
    "GatewayPolicy.spec.backend.tls.mtlsCertificateRef[]": (
        policy(),
        grant("HTTPRoute", "Service"),
        route("b", SERVICE_REF),
    ),
    "GatewayBackend.spec.policies.tls.mtlsCertificateRef[]": (backend("a", STATIC), *BY_ROUTE),
    "GatewayBackend.spec.mcp.targets[].static.policies.tls.mtlsCertificateRef[]": (backend("a", SERVER), *BY_ROUTE),
    "GatewayBackend.spec.ai.groups[].providers[].policies.tls.mtlsCertificateRef[]": (
        backend("a", PROVIDER),
        *BY_ROUTE,
    ),
    **{
        f"{place}.{path}": (brought(made.replace(TLS, f"{{auth: {setting}}}")), *others)
        for place, (made, others) in {
            "GatewayPolicy.spec.backend.auth": (policy(), (grant("HTTPRoute", "Service"), route("b", SERVICE_REF))),
            "GatewayBackend.spec.policies.auth": (backend("a", STATIC), BY_ROUTE),
            "GatewayBackend.spec.mcp.targets[].static.policies.auth": (backend("a", SERVER), BY_ROUTE),
            "GatewayBackend.spec.ai.groups[].providers[].policies.auth": (backend("a", PROVIDER), BY_ROUTE),
        }.items()
        for path, setting in CREDENTIALS.items()
    },
}
"""Brought along by what another namespace may refer to: they stay unless a grant names the Secret."""

CERTIFICATES = "tls: {certificateRefs: [{name: client, namespace: a}]}"
NAMED = {
    "Gateway.spec.listeners[].tls.certificateRefs[]": (
        "Gateway",
        gateway("b").replace("protocol: HTTP, port: 80", f"protocol: HTTPS, port: 443, {CERTIFICATES}"),
    ),
    "Gateway.spec.tls.backend.clientCertificateRef": (
        "Gateway",
        gateway("b") + "  tls: {backend: {clientCertificateRef: {name: client, namespace: a}}}\n",
    ),
    "ListenerSet.spec.listeners[].tls.certificateRefs[]": (
        "ListenerSet",
        gateway("b").replace("listeners:", "allowedListeners: {namespaces: {from: All}}\n  listeners:")
        + f"""---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {{name: more, namespace: b}}
spec:
  parentRef: {{name: gw}}
  listeners: [{{name: more, protocol: HTTPS, port: 8443, {CERTIFICATES}}}]
""",
    ),
}
"""Named across namespaces by the object itself: its kind needs the grant."""

ATTACHED = {
    "GatewayPolicy.spec.traffic.jwtAuthentication.providers[].sharedSecretRef": (
        "jwtAuthentication: {providers: [{issuer: me, sharedSecretRef: {name: client}}]}"
    ),
    "GatewayPolicy.spec.traffic.basicAuthentication.users[]": "basicAuthentication: {users: ['u:%s']}",
    "GatewayPolicy.spec.traffic.basicAuthentication.secretRef": "basicAuthentication: {secretRef: {name: client}}",
    "GatewayPolicy.spec.traffic.apiKeyAuthentication.secretRef": "apiKeyAuthentication: {secretRef: {name: client}}",
    "GatewayPolicy.spec.traffic.apiKeyAuthentication.secretSelector": (
        "apiKeyAuthentication: {secretSelector: {matchLabels: {keys: all}}}"
    ),
}
"""Of `traffic`, which attaches to Gateways, listeners and routes of the policy's own namespace, never to what others
lead to: whoever attached these chose."""

PUBLIC = {
    *(f"{place}.tls.caCertificateRefs[]" for place in OF_GUARDS),
    "Gateway.spec.tls.frontend.default.validation.caCertificateRefs[]",
    "Gateway.spec.tls.frontend.perPort[].tls.validation.caCertificateRefs[]",
    "BackendTLSPolicy.spec.validation.caCertificateRefs[]",
    "GatewayBackend.spec.mcp.targets[].static.policies.tls.caCertificateRefs[]",
    "GatewayBackend.spec.ai.groups[].providers[].policies.tls.caCertificateRefs[]",
    "GatewayBackend.spec.policies.tls.caCertificateRefs[]",
    "GatewayPolicy.spec.backend.tls.caCertificateRefs[]",
}
"""Certificates of authorities in ConfigMaps, which are public. One with a private key is refused
(`test_a_bundle_with_a_private_key_goes_nowhere`)."""

NO_SECRET = {
    "Gateway.spec.infrastructure.parametersRef",  # GatewayParameters
    "BackendTLSPolicy.spec.targetRefs[]",  # Services and GatewayBackends
}


def test_each_field_that_works_has_a_row() -> None:
    rows = [*BROUGHT, *WITH_KEYS, *NAMED, *ATTACHED, *PUBLIC, *NO_SECRET]
    assert sorted(rows) == sorted(working())


@pytest.mark.parametrize("path", BROUGHT)
def test_what_others_lead_to_brings_no_secret_without_a_grant_for_it(path: str) -> None:
    made = world(*BROUGHT[path])
    assert not has_key(made)
    made.put(TO_SECRET)
    assert has_key(made)


@pytest.mark.parametrize("path", WITH_KEYS)
def test_a_credential_that_an_object_holds_itself_stays_as_one_in_a_secret_does(path: str) -> None:
    text, *others = WITH_KEYS[path]
    value = b"held-by-the-object-itself"
    made = world(text.replace("%s", value.decode()), *others)
    assert not _has(made, value)
    made.put(TO_SECRET)
    assert not _has(made, value), "a grant for a Secret of some name"
    made.put(grant("HTTPRoute", "Secret"))
    assert _has(made, value)


@cache
def pair() -> tuple[bytes, bytes]:
    issued = Authority().issue("a.example")
    return issued.chain, issued.key


@pytest.mark.parametrize("path", NAMED)
def test_who_names_a_secret_of_another_namespace_needs_a_grant_for_it(path: str) -> None:
    kind, text = NAMED[path]
    chain, key = pair()
    made = world(secret(**{"tls.crt": chain, "tls.key": key}), text, route("b", "{name: none, port: 80}"))
    assert not _has(made, key)
    made.put(grant(kind, "Secret", "client"))
    assert _has(made, key)


def _has(made: World, value: bytes) -> bool:
    return any(value in data for (owner, _, _), data in made.resources.items() if owner == "b/gw")


HASH = "{SHA}" + base64.b64encode(b"0123456789abcdefghij").decode()


@pytest.mark.parametrize("path", ATTACHED)
def test_a_policy_on_what_was_attached_goes_there_and_attaches_to_nothing_else(path: str) -> None:
    setting = ATTACHED[path].replace("%s", HASH)
    value = HASH.encode() if "%s" in ATTACHED[path] else b"x" * 40
    text = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: p, namespace: a}
spec:
  targetRefs: [{group: "%s", kind: %s, name: own}]
  traffic: {%s}
"""
    entries = secret(**{"secret": b"x" * 40, ".htaccess": b"x" * 40})
    on_route = text % (ROUTES, "HTTPRoute", setting)
    assert not _has(world(entries, on_route, route("a", SERVICE_REF, at="a", name="own")), value)
    assert _has(world(entries, on_route, route("a", SERVICE_REF, name="own")), value)
    for group, kind in (("", "Service"), (OURS, "GatewayBackend")):
        (decoded,) = documents.decode(text % (group, kind, setting), "p.yaml")
        assert decoded.verdict == "invalid", "others lead to it: a test of what it brings along is missing"


def test_a_bundle_with_a_private_key_goes_nowhere() -> None:
    chain, key = pair()
    bundle = "".join(f"    {line}\n" for line in (chain + key).decode().splitlines())
    text = f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: ca, namespace: a}}
data:
  ca.crt: |
{bundle}"""
    asks = policy().replace("mtlsCertificateRef: [{name: client}]", "caCertificateRefs: [{name: ca}]")
    made = world(text, asks, grant("HTTPRoute", "Service"), route("b", SERVICE_REF))
    line = key.splitlines()[1]
    assert not any(line in data for data in made.resources.values())
    assert "ConfigMap a/ca has an entry ca.crt that has a private key" in "".join(
        made.conditions("GatewayPolicy", "tls", namespace="a")
    )
