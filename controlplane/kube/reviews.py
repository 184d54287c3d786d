"""Asks the API server whose token something is (authentication.k8s.io/v1 TokenReview)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from controlplane.kube.access import ApiError
from controlplane.xds.trust.service_accounts import Reviewed

PATH: Final = "/apis/authentication.k8s.io/v1/tokenreviews"


class Requests(Protocol):
    """`access.Access`."""

    async def request(self, method: str, path: str, body: object = None) -> dict[str, Any]: ...


class TokenReviews:
    """As `service_accounts.Reviews` has it."""

    def __init__(self, access: Callable[[], Requests]) -> None:
        self.accepted = self.refused = self.failures = 0
        """Questions, by what came of them."""
        self._access = access

    async def review(self, token: str, audience: str) -> Reviewed:
        """Raises OSError."""
        try:
            username = await self._username(token, audience)
        except (OSError, TimeoutError):
            self.failures += 1
            raise
        self.accepted += bool(username)
        self.refused += not username
        return Reviewed(username)

    async def _username(self, token: str, audience: str) -> str:
        """A server that does not say for which audience it answered has not checked it."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [audience]},
        }
        try:
            answer = await self._access().request("POST", PATH, body)
        except ApiError as error:
            raise OSError(f"TokenReview: {error.status} {error.reason}") from None  # its text might have the token
        status = answer.get("status") or {}
        if status.get("authenticated") is not True or audience not in (status.get("audiences") or ()):
            return ""
        return str((status.get("user") or {}).get("username") or "")
