"""GatewayParameters (spec 1): the envelope. None of its settings is acted upon yet (unsupported)."""

from __future__ import annotations

from gatewright.api.fields import Json
from gatewright.api.metadata import KubeObject
from gatewright.api.model import Model
from gatewright.api.status import ConditionsStatus


class GatewayParametersSpec(Model):
    """GatewayParameters.spec: how the data plane of a Gateway is provisioned."""

    logging: Json = None
    raw_config: Json = None
    image: Json = None
    env: Json = None
    resources: Json = None
    shutdown: Json = None
    istio: Json = None
    deployment: Json = None
    service: Json = None
    service_account: Json = None
    pod_disruption_budget: Json = None
    horizontal_pod_autoscaler: Json = None


class GatewayParameters(KubeObject):
    """Provisioning of Gateways."""

    spec: GatewayParametersSpec
    status: ConditionsStatus | None = None
