"""Which releases of Gateway API the definitions that we are shown come from (GatewayClass, condition SupportedVersion).

A cluster has definitions of every kind; a folder has those that somebody put there, mostly none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from controlplane.translate.conditions import Condition, joined
from gatewright.api.objects.custom_resource_definition import CustomResourceDefinition
from gatewright.api.schema.names import GATEWAY_API_GROUP

ANNOTATION: Final = "gateway.networking.k8s.io/bundle-version"

GROUPS: Final = (GATEWAY_API_GROUP, "gateway.networking.x-k8s.io")

NEWEST: Final = (1, 7)
"""The release whose fields the models have. What older ones of v1 have is part of it."""

_RELEASE: Final = re.compile(r"v(\d{1,9})\.(\d{1,9})\.\d{1,9}(?:-[0-9A-Za-z.-]+)?")


def bundle_version(definition: CustomResourceDefinition) -> str | None:
    """The release that a definition comes from, "" where it does not say; None of kinds that are not Gateway API's."""
    if definition.spec.group not in GROUPS:
        return None
    return definition.metadata.annotations.get(ANNOTATION, "")


def supported_version(definitions: Iterable[tuple[str, str]]) -> Condition:
    """`definitions`: names of Gateway API's, with their releases. Others than known ones are served as far as they are
    understood, so `Accepted` does not depend on this."""
    found = sorted(definitions)
    bad = [f"{name} {_shown(version)}" for name, version in found if not _is_known(version)]
    known = f"v{NEWEST[0]}.0 to v{NEWEST[0]}.{NEWEST[1]} are known"
    if bad:
        return Condition("SupportedVersion", False, "UnsupportedVersion", f"{joined(bad)}; {known}")
    message = "" if found else f"no definitions of Gateway API are here; {known}"
    return Condition("SupportedVersion", True, "SupportedVersion", message)


def _is_known(version: str) -> bool:
    found = _RELEASE.fullmatch(version)
    return found is not None and int(found[1]) == NEWEST[0] and int(found[2]) <= NEWEST[1]


def _shown(version: str) -> str:
    return f"is of release {version[:64]}" if version else "does not say its release"
