"""The filter of the picker of a pool, a step of its backend."""

from __future__ import annotations

from typing import Final

from dataplane.chain.filter import Env, Filter, Refused
from gatewright.wire.v1 import traffic_pb2

NAME: Final = "endpoint_picker"


def build(config: traffic_pb2.EndpointPicker, env: Env) -> Filter:
    """Raises `Refused`."""
    if not config.backend:
        raise Refused("endpointPickerRef: there is no picker")
    from dataplane.filters.steps.endpoint_picker.picker import Picker  # its messages are loaded with the first pool

    picker = Picker(NAME, config, env)
    return Filter(
        NAME, request=picker.request, response=picker.response, end=picker.end, makes_stages=True, takes_body=True
    )
