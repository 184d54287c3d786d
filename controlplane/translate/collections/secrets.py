"""Secrets: only those that policies and listeners read, each computed once and sent to the Gateways of these."""

from __future__ import annotations

from controlplane.derive import Context, Graph
from controlplane.translate.backend import secrets
from controlplane.translate.collections.gateways import Gateways
from controlplane.translate.collections.inputs import Inputs
from controlplane.translate.collections.policies import Policies
from controlplane.translate.keys import (
    RESOURCE_TYPE,
    ObjectKey,
    ResourceKey,
    SecretUse,
    certificate_resource,
    secret_resource,
)
from gatewright.api.checks.certificates import AUTHORITIES, CERTIFICATE, KEY, STAPLE


class UsedSecrets:
    """Secrets with their values."""

    def __init__(self, graph: Graph, inputs: Inputs, gateways: Gateways, policies: Policies) -> None:
        self._secrets = inputs.secrets
        used = graph.groups("used secrets", policies.secret_uses.index("secret", lambda use, _: [use.secret]))
        self.messages = graph.map("secret messages", used, self._message)
        named = graph.groups(
            "named certificates", gateways.certificate_uses.index("secret", lambda use, _: [use.secret])
        )
        self._certificates = graph.map("certificate messages", named, self._certificate)
        self.resources = (
            graph.derive("secret resources", policies.secret_uses, self._resources),
            graph.derive("certificate resources", gateways.certificate_uses, self._certificate_resources),
        )

    def _message(self, context: Context, key: ObjectKey, _: bool) -> bytes | None:
        secret = context.fetch(self._secrets, key)
        return secrets.resource(key, secret.values()) if secret is not None else None

    def _resources(self, context: Context, use: SecretUse, _: bool) -> dict[ResourceKey, bytes]:
        data = context.fetch(self.messages, use.secret)
        return {ResourceKey(use.gateway, RESOURCE_TYPE, secret_resource(use.secret)): data} if data is not None else {}

    def _certificate(self, context: Context, key: ObjectKey, _: bool) -> bytes | None:
        secret = context.fetch(self._secrets, key)
        if secret is None:
            return None
        values = secret.values()
        wanted = (CERTIFICATE, KEY, STAPLE, AUTHORITIES) if STAPLE in values else (CERTIFICATE, KEY)
        pair: dict[str, bytes] = {name: values[name] for name in wanted if name in values}
        return secrets.resource(key, pair, certificate_resource(key))

    def _certificate_resources(self, context: Context, use: SecretUse, _: bool) -> dict[ResourceKey, bytes]:
        data = context.fetch(self._certificates, use.secret)
        name = certificate_resource(use.secret)
        return {ResourceKey(use.gateway, RESOURCE_TYPE, name): data} if data is not None else {}
