"""Nobody reads a proxy's admin pages through the proxy, whatever name its address has."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.proxy_process import get, origin, running
from tests.harness.waiting import until

HOSTS = ("127.0.0.1", "localhost", "0.0.0.0", "127.1", "[::ffff:127.0.0.1]", "127.0.0.2")


ROUTE = """
    - name: {name}
      matches: [{{path: {{type: PathPrefix, value: /{name}}}}}]
      policies: {{urlRewrite: {{path: {{type: ReplacePrefixMatch, replacePrefixMatch: /}}}}}}
      backends: [{{host: "{backend}"}}]"""
OF_A_PROVIDER = """
    - name: {name}
      matches: [{{path: {{type: PathPrefix, value: /{name}}}}}]
      policies:
        ai: {{routes: {{"*": Passthrough}}}}
        urlRewrite: {{path: {{type: ReplacePrefixMatch, replacePrefixMatch: /}}}}
      backends: [{{ai: {{provider: {{openai: {{}}, host: {host}, port: {port}}}}}}}]"""


def written(file: Path, backends: dict[str, str], more: str = "") -> None:
    routes = "".join(ROUTE.format(name=name, backend=backend) for name, backend in backends.items()) + more
    file.write_text(f"binds:\n- port: 8080\n  addresses: [127.0.0.1]\n  listeners:\n  - name: a\n    routes:{routes}\n")


async def test_a_route_to_the_admin_pages_is_not_served(tmp_path: Path) -> None:
    file = tmp_path / "proxy.yaml"
    async with origin("other") as port:
        written(file, {"first": f"127.0.0.1:{port}"})
        async with running("-f", str(file), workers=1) as proxy:
            await proxy.ready()
            admin = await proxy.page("admin")
            assert "resources" in await proxy.dump()
            names = {f"n{number}": f"{host}:{admin}" for number, host in enumerate(HOSTS)}
            written(
                file,
                {**names, "other": f"localhost:{port}"},
                OF_A_PROVIDER.format(name="llm", host="127.0.0.1", port=admin),
            )
            names["llm"] = "an LLM provider"

            async def other() -> bool:
                return await get(proxy.at(8080), "/other/") == (200, "other")

            await until(other, proxy.log)  # what else is on this machine is a backend as any other
            for name, backend in names.items():
                status, body = await get(proxy.at(8080), f"/{name}/config_dump")
                assert (status, "resources" in body) == (503, False), (backend, body)
            await proxy.logged("own pages are no backend")
