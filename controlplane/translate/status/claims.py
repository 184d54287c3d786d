"""Whose a Gateway is, as its status says it: pure.

A Gateway has no field that names its controller, and its class may be gone when a controller starts. So a condition of
its written status says which class it had when Gatewright managed it. While there is no such class, a Gateway that
names it goes on; it ends with another `gatewayClassName`, or when the class comes back with another `controllerName`.

A source without statuses has nothing to say it in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from controlplane.translate.conditions import Condition
from gatewright.api.schema.names import CONTROLLER_NAME, GROUP

TYPE: Final = f"{GROUP}/Managed"
"""Of a condition that no other controller writes: Gateway API leaves types with a domain of their own to
implementations."""


def condition(class_name: str) -> Condition:
    """What is said of a Gateway of a managed class."""
    return Condition(TYPE, True, "Managed", f"by {CONTROLLER_NAME}, for GatewayClass {class_name}")


def claimed(status: Mapping[str, Any] | None) -> str | None:  # Any: JSON
    """What the written status of a Gateway says: the message of `condition`, or None where it says nothing."""
    conditions = (status or {}).get("conditions")
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, Mapping) and (each.get("type"), each.get("status")) == (TYPE, "True"):
            return str(each.get("message"))
    return None


def is_claimed(class_name: str, message: str | None) -> bool:
    """Whether it says that a Gateway of this class was managed."""
    return message == condition(class_name).message
