"""The text of the first page of the reference, which `reference` fills in."""

from __future__ import annotations

from typing import Final

INDEX: Final = """# Reference

{note}

Every field of what a user writes, from the models that check it:

{pages}

A field has one canonical name; some have another spelling (`providerA` for `openai`), which is accepted in its place.
*Not supported yet* marks what is valid but refused until its work has landed. `gatewright lint` says all of this about
a file: line, field, what is wrong and what would be right.

## CustomResourceDefinitions

    kubectl apply -f manifests/crds

Each is small enough for a client-side apply and for tools that do the same, which keep a copy of it in an annotation:
annotations end at 262,144 bytes. A part that stands at several places is described at one of them, which the others
name; in its other spelling (`providerA` for `openai`) it is any object, which the controller checks. Kubernetes 1.31 or
newer takes them.

The API server enforces bounds, enums, patterns and the rules between fields. What it cannot know is checked by the
gateway only, which answers with `Accepted=False`: what is inside an expression, and the rules that say so.

| File | Bytes | Bytes in the API server (JSON) |
|---|---|---|
{sizes}

Defaults are filled in by the API server, but where it matters whether a field was set: beside `conditional`, which
excludes its siblings, and in GatewayParameters, where fields that are set win over those of the class and of
`rawConfig`.

## Schemas for editors

`schemas/` has JSON schemas (draft 2020-12) of each kind and of the standalone file: {schemas} and
`schemas/standalone.json`. An editor that uses yaml-language-server takes one by a comment in the file's first line,
with a path that is relative to the file or a URL:

```yaml
# yaml-language-server: $schema=../schemas/gatewaypolicy_v1alpha1.json
apiVersion: {api_version}
kind: GatewayPolicy
```

```yaml
# yaml-language-server: $schema=../schemas/standalone.json
binds:
  - port: 8080
```
"""
