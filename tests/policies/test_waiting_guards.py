"""Security policies of backends that do not work yet: what stands for them refuses, whoever sets the field itself."""

from __future__ import annotations

from typing import Final

import pytest

from gatewright.attach.policies import POLICIES
from tests.fakes.both_planes import BothPlanes
from tests.fakes.web_objects import OBJECTS, route

POLICY: Final = """---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {{name: {name}}}
spec:
  targetRefs: [{target}]
  backend: {settings}
"""
GATEWAY: Final = "{group: gateway.networking.k8s.io, kind: Gateway, name: web}"
SERVICE: Final = "{group: '', kind: Service, name: origin}"
TLS: Final = "{tls: {insecureSkipVerify: All}}"
SETTINGS: Final = {
    "backend_auth": "{auth: {key: k}}",
    "backend_ext_auth": "{extAuth: {backendRef: {name: origin, port: 80}, http: {}}}",
}
WEB: Final = OBJECTS.format(port=80, upstream=9000) + route("all", "/")


@pytest.mark.parametrize("name", [row.name for row in POLICIES if row.refuses_as])
@pytest.mark.parametrize(
    ("target", "others"), [(GATEWAY, ""), (GATEWAY, GATEWAY), (SERVICE, ""), (SERVICE, SERVICE), (SERVICE, GATEWAY)]
)
def test_another_policy_of_the_field_that_refuses_does_not_open_it(name: str, target: str, others: str) -> None:
    """`aa` is the first by name. A Service's own TLS still wins over what stands for a Gateway's policy."""
    policies = POLICY.format(name="zz", target=target, settings=SETTINGS[name])
    policies += POLICY.format(name="aa", target=others, settings=TLS) if others else ""
    proxy = BothPlanes("")
    proxy.save(WEB)
    assert proxy.ask()[0] == 200
    proxy.save(WEB + policies)
    assert proxy.ask()[0] == 500
