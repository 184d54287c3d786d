"""`traffic.extProc`: a gRPC server that sees and changes requests and responses."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gatewright.api.schema.cel_field import RequestExpression
from gatewright.api.schema.fields import Boolean
from gatewright.api.schema.model import Model, RuledModel
from gatewright.api.schema.references import PolicyBackendReference
from gatewright.api.traffic.conditional import ITEMS, ConditionalItem, OrConditional, rules_of_conditional

BodyMode = Literal["None", "Buffered", "BufferedPartial", "FullDuplexStreamed"]
SendMode = Literal["Send", "Skip"]


class ProcessingOptions(Model):
    """Which parts of an exchange the processor sees."""

    request_body_mode: BodyMode = "FullDuplexStreamed"
    """How the request's body is sent. `Buffered` fails over 8KB, `BufferedPartial` sends the first 8KB."""
    response_body_mode: BodyMode = "FullDuplexStreamed"
    """How the response's body is sent. `Buffered` fails over 8KB, `BufferedPartial` sends the first 8KB."""
    request_header_mode: SendMode = "Send"
    """Whether the request's headers are sent."""
    response_header_mode: SendMode = "Send"
    """Whether the response's headers are sent."""
    request_trailer_mode: SendMode = "Send"
    """Whether the request's trailers are sent."""
    response_trailer_mode: SendMode = "Send"
    """Whether the response's trailers are sent."""
    allow_mode_override: Boolean = False
    """Whether the processor's answer to headers may change the modes of later phases of the same exchange."""


class _ExtProcFields(RuledModel):
    backend_ref: PolicyBackendReference | None = None
    """The processor: a Service or GatewayBackend."""
    processing_options: ProcessingOptions | None = None
    """Which parts of an exchange the processor sees."""
    request_attributes: Annotated[dict[str, RequestExpression], Field(max_length=64)] | None = None
    """Sent as attributes with the first message. Gatewright extension."""


class ExtProc(_ExtProcFields):
    """External processing."""

    backend_ref: PolicyBackendReference


class ConditionalExtProc(ConditionalItem):
    """An item of `extProc.conditional`."""

    policy: ExtProc
    """What to do then."""


class ExtProcOrConditional(OrConditional, _ExtProcFields):
    """`traffic.extProc`."""

    conditional: Annotated[tuple[ConditionalExtProc, ...], ITEMS] | None = None
    """Processors of which the first whose condition is true is used. Excludes all other fields."""

    cel_rules = rules_of_conditional(_ExtProcFields, "backendRef")
