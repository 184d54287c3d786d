"""Kubernetes label selectors, and the one question asked of them.

Used by Gateways (allowed namespaces) and by our kinds' selectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from gatewright.api.schema.model import Model, RuledModel
from gatewright.api.schema.rules import Rule


class LabelSelectorRequirement(RuledModel):
    """One `matchExpressions` item of meta/v1 LabelSelector."""

    key: str
    """The label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How its value is compared."""
    values: tuple[str, ...] = ()
    """Values for In and NotIn; absent for Exists and DoesNotExist."""

    cel_rules = (
        Rule(
            "!(self.operator in ['In', 'NotIn']) || (has(self.values) && self.values.size() > 0)",
            "values is required for operators In and NotIn",
            path=("values",),
        ),
        Rule(
            "self.operator in ['In', 'NotIn'] || !has(self.values) || self.values.size() == 0",
            "values must be absent for operators Exists and DoesNotExist",
            path=("values",),
        ),
    )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels satisfy this requirement; `NotIn` also holds where the label is absent."""
        present = self.key in labels
        if self.operator == "Exists":
            return present
        if self.operator == "DoesNotExist":
            return not present
        return (present and labels[self.key] in self.values) == (self.operator == "In")


class LabelSelector(Model):
    """meta/v1 LabelSelector; an empty one selects everything."""

    match_labels: dict[str, str] = Field(default_factory=dict)
    """Labels that an object must carry."""
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
    """What else must hold of its labels; all of them."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether all requirements hold."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )
