"""Servers that guards of prompts ask: where they are, and which credentials they are asked with unless policies say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from gatewright import aws_hosts
from gatewright.wire.v1 import backend_policy_pb2

WHERE: Final = ("ai", "promptGuard")
"""Below policies of backends, as users write it."""


class GuardServer(NamedTuple):
    """One kind of guard. `field`: of the message and the model, `written` as users have it."""

    field: str
    written: str
    host: Callable[[Any], str]  # Any: the model of the kind
    auth: backend_policy_pb2.BackendAuth | None = None
    """None: no credentials."""


SERVERS: Final = (
    GuardServer("openai_moderation", "openAIModeration", lambda model: "api.openai.com"),
    GuardServer(
        "bedrock_guardrails",
        "bedrockGuardrails",
        lambda model: aws_hosts.host_of("bedrock-runtime", model.region),
        backend_policy_pb2.BackendAuth(aws=backend_policy_pb2.AwsAuth()),
    ),
    GuardServer(
        "google_model_armor",
        "googleModelArmor",
        lambda model: f"modelarmor.{model.location}.rep.googleapis.com",
        backend_policy_pb2.BackendAuth(gcp=backend_policy_pb2.GcpAuth()),
    ),
)
"""Clouds without `auth`: the default chain of AWS, application default credentials of Google."""
