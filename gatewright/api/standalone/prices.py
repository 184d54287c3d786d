"""`config.prices` of the standalone file: what models of LLM providers cost, in the file itself or in another one.

Part of config, and of resources, which makes the wire's Prices of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError

from gatewright.api.checks.errors import findings
from gatewright.api.schema.fields import Price, ShortString
from gatewright.api.schema.model import Broken, Model, RuledModel
from gatewright.api.standalone.secrets import Content
from gatewright.api.text import yaml_text
from gatewright.api.text.problem import path_text
from gatewright.wire.v1 import ai_pb2

_MOST: Final = 4096


class TokenPrices(Model):
    """USD of a million tokens."""

    input: Price
    """Tokens of requests."""
    output: Price | None = None
    """Tokens of answers. Unset: the model has none, as of embeddings."""
    cache_read: Price | None = None
    """Of the input, tokens that were read from the provider's cache; as others when unset."""
    cache_write: Price | None = None
    """Of the input, tokens that were written to it."""
    reasoning: Price | None = None
    """Of the output, tokens of reasoning; as others when unset."""
    input_audio: Price | None = None
    """Of the input, tokens of sound."""
    output_audio: Price | None = None
    """Of the output, tokens of sound."""


class ModelPrices(TokenPrices):
    """USD of a million tokens of one model."""

    tiers: Annotated[dict[ShortString, TokenPrices], Field(max_length=16)] | None = None
    """Other prices for requests that the provider served in a tier of service, by the name that it reports, for
    example `batch` or `flex`."""


Models = dict[ShortString, ModelPrices]


class Prices(RuledModel):
    """`config.prices`: over the catalogue of the proxy. It is read again when it changes."""

    models: Annotated[Models, Field(max_length=_MOST)] | None = None
    """By name of the model as the provider has it, or `<provider>/<model>`. They win over those of `file`."""
    file: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Path of a file, relative to this file's folder, with what `models` has, as YAML or JSON."""

    def broken_rules(self) -> Iterator[Broken]:
        if self.models is None and self.file is None:
            yield Broken((), "models or file must be set")

    @property
    def content(self) -> Content | None:
        """The file."""
        return None if self.file is None else Content(file=self.file)


def read(text: str) -> Mapping[str, ModelPrices]:
    """Of a file. Raises `ValueError` with what is wrong, all of it."""
    try:
        return _file.validate_python(yaml_text.load(text))
    except yaml_text.TextError as error:
        raise ValueError(f"line {error.line}: {error.message}") from None
    except ValidationError as error:
        wrong = [f"{path_text(each.path)}: {each.message}" for each in findings(error, ModelPrices, {})]
        raise ValueError("; ".join(wrong[:8])) from None


_file: Final = TypeAdapter(Annotated[Models, Field(max_length=_MOST)])


def message(models: Mapping[str, ModelPrices]) -> ai_pb2.Prices:
    made = ai_pb2.Prices()
    for name in sorted(models):
        model = models[name]
        row = made.models.add(model=name, prices=_of(model))
        for tier, prices in (model.tiers or {}).items():
            row.tiers[tier].CopyFrom(_of(prices))
    return made


def _of(prices: TokenPrices) -> ai_pb2.TokenPrices:
    names = [field.name for field in ai_pb2.TokenPrices.DESCRIPTOR.fields]
    return ai_pb2.TokenPrices(**{name: found for name in names if (found := getattr(prices, name)) is not None})
