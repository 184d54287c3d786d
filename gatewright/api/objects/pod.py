"""Pod, core/v1: what it is selected by, where it is, whether it is ready, and as whom it runs."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from pydantic import ConfigDict, Field

from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Model

_TOLERANT: Final = ConfigDict(
    frozen=True, extra="ignore", alias_generator=to_camel, hide_input_in_errors=True, defer_build=True
)
READY: Final = "Ready"
"""The condition of a Pod that may be sent to."""


class PodCondition(Model):
    """core/v1 PodCondition."""

    model_config = _TOLERANT

    type: str
    status: str


class PodState(Model):
    """core/v1 PodStatus."""

    model_config = _TOLERANT

    pod_ip: str = Field(default="", alias="podIP")
    conditions: Annotated[tuple[PodCondition, ...], Field(max_length=1000)] = ()


class PodSpec(Model):
    """core/v1 PodSpec: as whom it runs."""

    model_config = _TOLERANT

    service_account_name: str = ""


class Pod(KubeObject):
    """A Pod. Its status says where it is: it is no verdict of this controller."""

    tolerant: ClassVar[bool] = True
    reads_status: ClassVar[bool] = True

    spec: PodSpec = PodSpec()
    state: PodState = Field(default=PodState(), alias="status")

    @property
    def is_ready(self) -> bool:
        """Whether requests may be sent to it: as pickers judge it, who is about to go is not."""
        ready = any(each.type == READY and each.status == "True" for each in self.state.conditions)
        return ready and self.metadata.deletion_timestamp is None
