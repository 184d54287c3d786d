"""The list of settings that wait: each is a field of a model, is refused by name, and the list only shrinks."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from pydantic import BaseModel

from gatewright.api.kinds import KINDS
from gatewright.api.model import Model
from gatewright.api.standalone_file import StandaloneFile
from gatewright.api.unsupported import FIELDS, LISTENER_PROTOCOLS, unsupported_fields

# How many settings wait. Whoever makes one work lowers the number; nothing raises it but a new setting of the spec.
WAITING = 75
NOT_SERVED = {"GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute", "ListenerSet", "BackendTLSPolicy", "InferencePool"}

ROWS = [(kind, path) for kind, paths in FIELDS.items() for path in paths]


def model_of(kind: str) -> type[BaseModel]:
    return StandaloneFile if kind == "Standalone" else KINDS[kind].model


class Anything(Model):
    """A stand-in for a part of an object: any attribute is set."""

    def __init__(self, **fields: Any) -> None:
        super().__init__()
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> Any:
        return None


def holding(path: str) -> Any:
    """An object in which exactly the field at `path` is set."""
    value: Any = object()
    for name in reversed(path.split(".")):
        attribute = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name.removesuffix("[]"))
        value = Anything(**{attribute: (value,) if name.endswith("[]") else value})
    return value


def test_the_list_only_shrinks() -> None:
    assert len(ROWS) == len(set(ROWS)) == WAITING
    assert {kind for kind, info in KINDS.items() if not info.served} == NOT_SERVED
    assert set(LISTENER_PROTOCOLS) == {"HTTPS", "TLS", "TCP", "UDP"}


@pytest.mark.parametrize(("kind", "path"), ROWS)
def test_row_names_a_field_of_the_model(kind: str, path: str) -> None:
    annotation: Any = model_of(kind)
    for name in path.split("."):
        fields = {field.alias: field for field in models_in(annotation).model_fields.values()}
        assert name.removesuffix("[]") in fields, path
        annotation = fields[name.removesuffix("[]")].annotation


@pytest.mark.parametrize(("kind", "path"), ROWS)
def test_row_is_refused_by_name_when_set(kind: str, path: str) -> None:
    (found,) = unsupported_fields(kind, holding(path))
    names = [part for part in found.path if isinstance(part, str)]
    assert names == [part.removesuffix("[]") for part in path.split(".")]
    assert found.message.startswith("not supported yet: ")


def models_in(annotation: Any) -> type[BaseModel]:
    """The model class somewhere inside an annotation."""
    model = first_model(annotation)
    assert model is not None
    return model


def first_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for argument in get_args(annotation) if (model := first_model(argument))), None)
