"""What a Pod mounts and what stands in its environment, from ConfigMaps, Secrets, tokens and the Pod itself."""

from __future__ import annotations

import base64
import contextlib
import os
import re
from pathlib import Path

from tests.cluster.rig.api import Api, ApiError, Json
from tests.cluster.rig.shell import NODE, NODE_ADDRESS

REFERENCE = re.compile(r"\$(?:\$|\(([A-Za-z_][A-Za-z0-9_.-]*)\))")
READABLE = 0o644
SHARED = 0o1777


def expanded(text: str, environment: dict[str, str]) -> str:
    """`$(NAME)` as Kubernetes has it: what is not known stays as it is, and `$$` is a dollar sign."""
    return REFERENCE.sub(lambda found: "$" if found[1] is None else environment.get(found[1], found[0]), text)


class Contents:
    """Of one Pod."""

    def __init__(self, api: Api, pod: Json, address: str, api_port: int) -> None:
        self._api, self._meta, self._spec = api, pod["metadata"], pod["spec"]
        self._address, self._api_port = address, api_port
        self._namespace = f"/api/v1/namespaces/{self._meta['namespace']}"

    async def volume(self, volume: Json, folder: Path) -> None:
        """Writes the files of a volume; of another kind than these it is an empty folder."""
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(SHARED if "emptyDir" in volume else 0o755)
        for source in volume["projected"]["sources"] if "projected" in volume else [volume]:
            for name, content in (await self._files(source)).items():
                file = folder / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
                file.chmod(READABLE)

    async def _files(self, source: Json) -> dict[str, bytes]:
        if token := source.get("serviceAccountToken"):
            return {token["path"]: (await self._token(token)).encode()}
        if downward := source.get("downwardAPI"):
            return {item["path"]: self._field(item["fieldRef"]["fieldPath"]).encode() for item in downward["items"]}
        for kind in ("secret", "configMap"):
            if reference := source.get(kind):
                name = reference.get("secretName") or reference["name"]
                data = await self._data(kind, name, optional=reference.get("optional", False))
                items = {item["key"]: item["path"] for item in reference.get("items") or ()} or {
                    key: key for key in data
                }
                return {path: data[key] for key, path in items.items() if key in data}
        return {}

    async def _token(self, wanted: Json) -> str:
        bound = {"apiVersion": "v1", "kind": "Pod", "name": self._meta["name"], "uid": self._meta["uid"]}
        spec: Json = {"expirationSeconds": wanted.get("expirationSeconds", 3600), "boundObjectRef": bound}
        if wanted.get("audience"):
            spec["audiences"] = [wanted["audience"]]
        path = f"{self._namespace}/serviceaccounts/{self._spec['serviceAccountName']}/token"
        return str((await self._api.insist("POST", path, {"spec": spec}))["status"]["token"])

    async def _data(self, kind: str, name: str, *, optional: bool) -> dict[str, bytes]:
        path = f"{self._namespace}/{kind.lower()}s/{name}"
        try:
            found = await (self._api.call if optional else self._api.insist)("GET", path)
        except ApiError:
            return {}
        text = {} if kind == "secret" else {key: value.encode() for key, value in (found.get("data") or {}).items()}
        binary = found.get("data" if kind == "secret" else "binaryData") or {}
        return text | {key: base64.b64decode(value) for key, value in binary.items()}

    async def environment(self, container: Json) -> dict[str, str]:
        found = {"PATH": os.environ["PATH"], "HOME": "/tmp", "HOSTNAME": self._meta["name"], "LANG": "C.UTF-8"}
        found |= {"KUBERNETES_SERVICE_HOST": NODE_ADDRESS, "KUBERNETES_SERVICE_PORT": str(self._api_port)}
        for variable in container.get("env") or ():
            value = await self._value(variable, found)
            if value is not None:
                found[variable["name"]] = value
        return found

    async def _value(self, variable: Json, known: dict[str, str]) -> str | None:
        source = variable.get("valueFrom") or {}
        if "fieldRef" in source:
            return self._field(source["fieldRef"]["fieldPath"])
        if "resourceFieldRef" in source:
            return "1"
        for entry, kind in (("secretKeyRef", "secret"), ("configMapKeyRef", "configMap")):
            if entry in source:
                reference = source[entry]
                data = await self._data(kind, reference["name"], optional=reference.get("optional", False))
                return data[reference["key"]].decode() if reference["key"] in data else None
        return expanded(variable.get("value", ""), known)

    def _field(self, path: str) -> str:
        if found := re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path):
            return str((self._meta.get(found[1]) or {}).get(found[2], ""))
        known = {
            "status.podIP": self._address,
            "status.podIPs": self._address,
            "status.hostIP": NODE_ADDRESS,
            "spec.nodeName": NODE,
            "spec.serviceAccountName": self._spec.get("serviceAccountName") or "default",
        }
        with contextlib.suppress(KeyError):
            return known[path]
        value = self._meta.get(path.removeprefix("metadata."))
        if isinstance(value, dict):
            return "\n".join(f'{key}="{each}"' for key, each in value.items())
        return str(value or "")
