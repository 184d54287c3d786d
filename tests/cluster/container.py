"""A cluster in a container: k3s through testcontainers, for machines with Docker and without Go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cluster.given import GivenCluster

IMAGE = "rancher/k3s:v1.36.3-k3s1"


class Unstarted(Exception):
    """Why there is no container."""


class ContainerCluster(GivenCluster):
    """What `GivenCluster` has, and its container ends with it. `start_container` gives something with `config_yaml` and
    `stop`."""

    def __init__(self, folder: Path, start_container: Any = None) -> None:  # Any: the library has no types
        self._container = (start_container or _start)()
        file = folder / "k3s.yaml"
        try:
            file.touch(mode=0o600)
            file.write_text(self._container.config_yaml())
            super().__init__(file, folder)
        except BaseException:
            self._container.stop()
            raise

    def start(self) -> None:
        """The container was started already; where it cannot be used it ends here."""
        try:
            super().start()
        except BaseException:
            self._container.stop()
            raise

    def stop(self) -> None:
        """Nothing has to be removed from what goes as a whole."""
        try:
            self.close()
        finally:
            self._container.stop()


def _start() -> Any:
    """Raises Unstarted: Docker may be there, and no image."""
    from docker.errors import DockerException
    from testcontainers.community.k3s import K3SContainer

    made = K3SContainer(IMAGE)
    try:
        return made.start()
    except (DockerException, TimeoutError) as error:
        made.stop()
        raise Unstarted(f"{IMAGE} could not be started: {error}"[:300]) from error
