"""What the models say of a row. Called by the tests that compare, and by the mutation check."""

from __future__ import annotations

from pydantic import ValidationError

from gatewright.api.checks.errors import Finding, findings
from gatewright.api.decode.documents import decode_object
from gatewright.api.objects.kinds import KINDS
from tests.rules.verdicts.table import Document, Row, Verdict


def verdict(row: Row) -> tuple[Verdict, str]:
    """The models' verdict and the errors. What is valid and waits for a later release is valid here."""
    if row.of_status:
        found = status_findings(row.kind, row.document())
        return ("invalid" if found else "valid"), "; ".join(f"{each.path}: {each.message}" for each in found)
    decoded = decode_object(row.document(), "")
    errors = [str(problem) for problem in decoded.problems if problem.severity == "error"]
    return ("invalid" if decoded.verdict == "invalid" else "valid"), "; ".join(errors)


def status_findings(kind: str, document: Document) -> list[Finding]:
    """Errors of an object whose status counts, as on the way through the status subresource."""
    model = KINDS[kind].model
    try:
        model.model_validate(document)
    except ValidationError as failure:
        return findings(failure, model, document)
    return []
