"""Secrets that a standalone file names, or holds itself, are shown nowhere."""

from __future__ import annotations

import pytest

from gatewright.api.schema.model import Model
from gatewright.api.standalone import secrets as file_secrets

PLACES: list[tuple[type[Model], str]] = [
    (file_secrets.Content, "value"),
    (file_secrets.UsersSecret, "secret_ref"),
    (file_secrets.KeysSecret, "secret_ref"),
    (file_secrets.CredentialSecret, "secret_ref"),
    (file_secrets.GcpSecret, "secret_ref"),
    (file_secrets.AwsSecret, "secret_ref"),
    (file_secrets.AzureSecret, "secret_ref"),
    (file_secrets.BackendCertificates, "mtls_certificate_ref"),
    (file_secrets.ListenerCertificates, "certificate_refs"),
]


@pytest.mark.parametrize(("model", "field"), PLACES, ids=lambda each: getattr(each, "__name__", each))
def test_no_secret_is_shown(model: type[Model], field: str) -> None:
    made = model.model_construct(**{field: "hunter2"})
    assert getattr(made, field) == "hunter2"
    assert "hunter2" not in repr(made) and "hunter2" not in str(made)
