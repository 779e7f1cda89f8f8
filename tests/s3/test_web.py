"""Data sets of a web server: a manifest, or a list of addresses; the batches of the folder, ranges, ETags and the cache."""

import hashlib
import http.server
import json
import pathlib
import subprocess
import threading
import urllib.parse

import pytest
from test_s3 import batches, make_folder

import stoker


class Handler(http.server.BaseHTTPRequestHandler):
    """Files of a folder, with ranges and ETags, on connections that stay open."""

    protocol_version = "HTTP/1.1"
    root: pathlib.Path
    asked: list[tuple[str, str]]

    def do_HEAD(self):
        self.answer(with_body=False)

    def do_GET(self):
        self.answer(with_body=True)

    def answer(self, with_body):
        self.asked.append((self.command, self.path))
        assert "Authorization" not in self.headers
        path = self.root / urllib.parse.unquote(self.path)[1:]
        if not path.is_file():
            self.reply(404, b"none", {}, with_body)
            return
        body = path.read_bytes()
        tag = f'"{hashlib.md5(body).hexdigest()}"'
        if self.headers.get("If-Match", tag) != tag:
            self.reply(412, b"changed", {}, with_body)
        elif "Range" in self.headers:
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            last = min(last, len(body) - 1)
            self.reply(206, body[first:last + 1], {"ETag": tag, "Content-Range": f"bytes {first}-{last}/{len(body)}"}, with_body)
        else:
            self.reply(200, body, {"ETag": tag}, with_body)

    def reply(self, status, body, headers, with_body):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def site(tmp_path):
    """A folder with a manifest on a web server: site.folder, site.address, site.asked."""
    folder = make_folder(tmp_path / "data", [f"{'abc'[i % 3]}/{i} é.wav" for i in range(12)])
    rows = "".join(f"{path.relative_to(folder)},{path.parent.name}\n" for path in sorted(folder.rglob("*.wav")))
    (folder / "list.csv").write_text("path,label\n" + rows)
    handler = type("Own", (Handler,), {"root": folder, "asked": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    server.folder, server.asked, server.address = folder, handler.asked, f"http://127.0.0.1:{server.server_port}"
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_manifest_gives_the_batches_of_the_folder(site, binary):
    assert batches(site.address + "/list.csv") == batches(site.folder / "list.csv")
    done = subprocess.run([binary, "load", site.address + "/list.csv", "--batch-size", "4", "--json"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["samples"] == 12 and found["dataset"]["classes"] == 3 and found["total"]["store"]["requests"] >= 12


def test_samples_may_be_addresses(site):
    paths = sorted(site.folder.rglob("*.wav"))
    names = [f"{site.address}/{urllib.parse.quote(str(path.relative_to(site.folder)))}" for path in paths]
    samples = [(name, path.parent.name) for name, path in zip(names, paths)]
    with stoker.Loader(samples=samples, class_list=["a", "c"], batch_size=8, output="numpy", cache_dir=False, transform=[stoker.PadOrTrim(64)]) as loader:
        assert loader.classes == ["a", "c"] and loader.num_samples == 8
        assert [batch.labels.tolist() for batch in loader] == [[0] * 4 + [1] * 4]


def test_the_disk_cache_keeps_what_has_an_etag(site, tmp_path):
    options = dict(batch_size=4, output="numpy", cache_dir=tmp_path / "cache", cache_limit="10MB", transform=[stoker.PadOrTrim(64)])
    for _ in range(2):
        with stoker.Loader(site.address + "/list.csv", **options) as loader:
            list(loader)
    store = loader.stats()["store"]
    assert store["requests"] == 0 and store["cache_hits"] >= 12  # the next epoch is read ahead


def test_a_file_that_changes_under_the_loader_is_a_bad_sample(site):
    with stoker.Loader(site.address + "/list.csv", batch_size=12, output="numpy", cache_dir=False, on_error="skip", transform=[stoker.PadOrTrim(64)]) as loader:
        first = sorted(site.folder.rglob("*.wav"))[0]
        first.write_bytes(first.read_bytes()[:-1] + b"!")
        assert sum(len(batch.labels) for batch in loader) == 11
        assert "it changed since" in str(loader.errors[0])


def test_a_prefix_is_refused_with_the_remedy(site, binary):
    done = subprocess.run([binary, "load", site.address + "/a"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "web servers do not tell which files they have" in done.stderr and "column `path`" in done.stderr
