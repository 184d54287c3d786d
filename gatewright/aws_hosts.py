"""Hosts of AWS: which service and region one names. For the proxy, which signs requests to them, and for those who
check before whether it can."""

from __future__ import annotations

import re
from typing import Final

GLOBAL_REGION: Final = "us-east-1"
"""Of services that have one endpoint for all regions."""

is_region: Final = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d+").fullmatch

_SERVICES: Final = {
    "bedrock-runtime": "bedrock",
    "bedrock-agent-runtime": "bedrock",
    "bedrock-agent": "bedrock",
    "lambda-url": "lambda",
}
"""What names in hosts are signed for, where it is another name."""
_SUFFIXES: Final = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".on.aws")


def host_of(name: str, region: str) -> str:
    """Of a service of a region."""
    return f"{name}.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"


def place_of(host: str) -> tuple[str, str]:
    """Service and region that a host of AWS names; "" for what it does not, or a host that is none."""
    suffix = next((each for each in _SUFFIXES if host.endswith(each)), None)
    if suffix is None:
        return "", ""
    labels = host.removesuffix(suffix).split(".")
    at = next((index for index, label in enumerate(labels) if is_region(label)), None)
    if at is None:  # a global endpoint: sts.amazonaws.com
        return _SERVICES.get(labels[-1], labels[-1]), GLOBAL_REGION
    service = labels[at - 1] if at else labels[-1] if len(labels) > 1 else ""
    return _SERVICES.get(service, service), labels[at]


AGENT_RUNTIMES: Final = "bedrock-agentcore"
"""What requests to runtimes of Amazon Bedrock AgentCore are signed for; their hosts begin with it."""

_runtime: Final = re.compile(
    r"arn:aws[a-z-]*:bedrock-agentcore:([a-z0-9-]{1,63}):[0-9]{12}:runtime/[A-Za-z0-9_-]{1,100}"
)


def region_of_runtime(arn: str) -> str | None:
    """Of the resource name of a runtime; None: it is none."""
    found = _runtime.fullmatch(arn)
    return None if found is None or not is_region(found[1]) else found[1]


NO_RUNTIME: Final = "is no arn:aws:bedrock-agentcore:<region>:<account>:runtime/<id>"
"""What is wrong where a resource name of a runtime is expected."""
