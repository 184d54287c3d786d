"""Of a BackendTLSPolicy that is not valid: what it names, so that nothing goes there in plaintext.

Called by decoding. Without this a policy with a mistake would leave its backends open to what its author forbade.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pydantic import ValidationError

from gatewright.api.decode.unread import summary
from gatewright.api.objects.backend_tls_policy import BackendTLSPolicy, TLSTargetReference
from gatewright.api.text.problem import Problem

_ANY: Final = {
    "targetRefs": [{"group": "", "kind": "Service", "name": "any"}],
    "validation": {"hostname": "unread.invalid", "wellKnownCACertificates": "System"},
}
"""A spec that is valid, in place of one that is not."""


def unread_tls(document: dict[str, Any], problems: Iterable[Problem]) -> BackendTLSPolicy | None:
    """A policy with those targets of `document` that can be read; None when there are none."""
    spec = document.get("spec")
    written = spec.get("targetRefs") if isinstance(spec, dict) else None
    found = [_target(each) for each in written] if isinstance(written, list) else []
    targets = tuple(each for each in found if each is not None)
    known = {name: part for name, part in document.items() if name in ("apiVersion", "kind", "metadata")}
    if not targets:
        return None
    try:
        policy = BackendTLSPolicy.model_validate({**known, "spec": _ANY})
    except ValidationError:
        return None
    policy = policy.model_copy(update={"spec": policy.spec.model_copy(update={"target_refs": targets})})
    policy._unread = summary(problems)
    return policy


def _target(value: Any) -> TLSTargetReference | None:
    """A section that cannot be read makes the whole object the target: what was meant is a part of it."""
    try:
        return TLSTargetReference.model_validate(value)
    except ValidationError:
        without = {name: part for name, part in value.items() if name in _NAMED} if isinstance(value, dict) else value
    try:
        return TLSTargetReference.model_validate(without)
    except ValidationError:
        return None


_NAMED: Final = ("group", "kind", "name")
