"""What the SDKs of clouds ask servers of tokens, in their own environment (`cloud-python`): no server is there, their
transports are ours. Prints JSON: for each way to a token the requests that its SDK made."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import google.auth.compute_engine
import google.oauth2.credentials
import google.oauth2.service_account
from azure.core.pipeline.transport import HttpTransport
from azure.identity import ClientSecretCredential, ManagedIdentityCredential, WorkloadIdentityCredential
from google.auth.transport import Request, Response

AUTHORITY = "https://login.microsoftonline.com"
SCOPE = "https://cognitiveservices.azure.com/.default"
TOKEN = {"access_token": "its-token", "expires_in": 3600, "refresh_in": 1800, "token_type": "Bearer"}


def noted(method: str, url: str, headers: Any, body: Any) -> dict[str, Any]:
    text = body.decode() if isinstance(body, bytes) else body or ""
    return {
        "method": method,
        "url": url,
        "headers": {name.lower(): value for name, value in headers.items()},
        "body": text,
    }


class _Answer:
    """As azure.core reads one."""

    def __init__(self, request: Any, body: Any) -> None:
        self.request, self.status_code, self.reason = request, 200, "OK"
        self.headers = {"Content-Type": "application/json"}
        self.content_type = "application/json"
        self._text = json.dumps(body)

    def text(self, encoding: str | None = None) -> str:
        return self._text

    def body(self) -> bytes:
        return self._text.encode()

    def raise_for_status(self) -> None:
        pass


class Azure(HttpTransport):  # type: ignore[misc, type-arg]  # of another environment
    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def send(self, request: Any, **_: Any) -> Any:
        if ".well-known" in request.url:
            return _Answer(request, {
                "token_endpoint": f"{AUTHORITY}/t/oauth2/v2.0/token",
                "authorization_endpoint": f"{AUTHORITY}/t/oauth2/v2.0/authorize",
                "issuer": f"{AUTHORITY}/t/v2.0",
            })  # fmt: skip
        data = request.data if request.data is not None else request.body
        if isinstance(data, dict):
            from urllib.parse import urlencode

            data = urlencode(data)
        self.asked.append(noted(request.method, request.url, request.headers, data))
        return _Answer(request, {**TOKEN, "expires_on": int(time.time()) + 3600, "resource": "r"})

    def open(self) -> None: ...

    def close(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


class _GoogleAnswer(Response):  # type: ignore[misc]
    def __init__(self, content_type: str, text: str) -> None:
        self._headers = {"content-type": content_type, "metadata-flavor": "Google"}
        self._data = text.encode()

    @property
    def status(self) -> int:
        return 200

    @property
    def headers(self) -> dict[str, str]:
        return self._headers

    @property
    def data(self) -> bytes:
        return self._data


class Google(Request):  # type: ignore[misc]
    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def __call__(self, url: str, method: str = "GET", body: Any = None, headers: Any = None, **_: Any) -> Any:
        self.asked.append(noted(method, url, headers or {}, body))

        if "identity?" in url:
            return _GoogleAnswer("text/plain", ID_TOKEN)
        answer = {**TOKEN, "id_token": ID_TOKEN, "aliases": [], "email": "a@b", "scopes": []}
        return _GoogleAnswer("application/json", json.dumps(answer))


ID_TOKEN = "eyJhbGciOiJub25lIn0.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln"


def of_azure(make: Any) -> list[dict[str, Any]]:
    transport = Azure()
    make(transport=transport).get_token(SCOPE)
    return transport.asked


def of_google(credentials: Any) -> list[dict[str, Any]]:
    transport = Google()
    credentials.refresh(transport)
    return transport.asked


def main() -> None:
    given = json.loads(sys.argv[1])
    account = given["account"]
    known = {"authority": AUTHORITY, "disable_instance_discovery": True}
    scopes = ["https://www.googleapis.com/auth/cloud-platform"]
    service = google.oauth2.service_account
    found = {
        "azure client": of_azure(lambda **more: ClientSecretCredential("t", "c", "hush", **known, **more)),
        "azure workload": of_azure(
            lambda **more: WorkloadIdentityCredential(
                tenant_id="t", client_id="c", token_file_path=given["token"], **known, **more
            )
        ),
        "google account": of_google(service.Credentials.from_service_account_info(account, scopes=scopes)),
        "google account, ID token": of_google(
            service.IDTokenCredentials.from_service_account_info(account, target_audience="https://run.example")
        ),
        "google user": of_google(google.oauth2.credentials.Credentials.from_authorized_user_info(given["user"])),
        "google metadata": of_google(google.auth.compute_engine.Credentials(scopes=scopes)),
        "google metadata, ID token": of_google(
            google.auth.compute_engine.IDTokenCredentials(
                Google(), "https://run.example", use_metadata_identity_endpoint=True
            )
        ),
    }
    identities = {"system": {}, "client": {"client_id": "c"}, "object": {"identity_config": {"object_id": "o"}},
                  "resource": {"identity_config": {"resource_id": "r"}}}  # fmt: skip
    for name, chosen in identities.items():
        found[f"azure identity, {name}"] = of_azure(
            lambda chosen=chosen, **more: ManagedIdentityCredential(**chosen, **more)
        )
    os.environ.update(IDENTITY_ENDPOINT="http://127.0.0.1:41000/msi/token", IDENTITY_HEADER="hush")
    for name, chosen in identities.items():
        found[f"azure app service, {name}"] = of_azure(
            lambda chosen=chosen, **more: ManagedIdentityCredential(**chosen, **more)
        )
    print(json.dumps(found))


main()
