"""Data sets of a web server: a manifest, a list, packs, tar shards and arrays; the batches of the folder, ranges, ETags and the cache."""

import hashlib
import http.server
import json
import pathlib
import shutil
import ssl
import subprocess
import tarfile
import threading
import urllib.parse

import numpy as np
import pytest
from test_s3 import batches, make_folder

import stoker


class Handler(http.server.BaseHTTPRequestHandler):
    """Files of a folder, with ranges and ETags, on connections that stay open."""

    protocol_version = "HTTP/1.1"
    root: pathlib.Path
    asked: list[tuple[str, str]]
    knows_ranges = True
    weak = ""  # "W/": its tags are weak, and match no If-Match

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
        tag = f'{self.weak}"{hashlib.md5(body).hexdigest()}"'
        if "If-Match" in self.headers and (self.weak or self.headers["If-Match"] != tag):
            self.reply(412, b"changed", {}, with_body)
        elif "Range" in self.headers and self.knows_ranges:
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
def folder(tmp_path):
    """Twelve sounds of three classes, with a manifest."""
    folder = make_folder(tmp_path / "data", [f"{'abc'[i % 3]}/{i} é.wav" for i in range(12)])
    rows = "".join(f"{path.relative_to(folder)},{path.parent.name}\n" for path in sorted(folder.rglob("*.wav")))
    (folder / "list.csv").write_text("path,label\n" + rows)
    return folder


@pytest.fixture
def serve(folder):
    """serve(context=None, **of_the_handler): the folder on a web server: site.folder, site.address, site.asked."""
    started = []

    def serve(context=None, **of_the_handler):
        handler = type("Own", (Handler,), {"root": folder, "asked": [], **of_the_handler})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.folder, server.asked = folder, handler.asked
        server.address = f"{'http' if context is None else 'https'}://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        started.append((server, thread))
        return server

    yield serve
    for server, thread in started:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def site(serve):
    return serve()


@pytest.fixture
def forms(folder, binary):
    """The sounds in other forms beside them, by name: a pack, tar shards, an array of their samples, a manifest of arrays."""
    sounds = sorted(path for path in folder.rglob("*.wav"))
    done = subprocess.run([binary, "pack", folder / "list.csv", folder / "data.pack"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for shard in range(3):
        with tarfile.open(folder / f"s-{shard}.tar", "w") as tar:
            for path in sounds[shard::3]:
                tar.add(path, f"{path.stem}.wav")
    np.save(folder / "array.npy", np.random.default_rng(1).normal(size=(20, 6)).astype(np.float32))
    (folder / "rows").mkdir()
    for i in range(5):
        np.save(folder / f"rows/{i}.npy", np.full((3, 4), i, np.int16))
    (folder / "rows.csv").write_text("path,label\n" + "".join(f"rows/{i}.npy,{i % 2}\n" for i in range(5)))
    return ["data.pack", "s-{0..2}.tar", "array.npy", "rows.csv"]


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


def test_packs_shards_and_arrays_give_the_batches_of_the_local_ones(site, forms):
    for name in forms:
        assert batches(f"{site.address}/{name}", epochs=2) == batches(site.folder / name, epochs=2), name


def test_packs_shards_and_arrays_come_from_the_disk_cache_the_second_time(site, forms, tmp_path):
    for name in forms:
        options = dict(batch_size=4, output="numpy", cache_dir=tmp_path / "cache", cache_limit="10MB", epochs=1)
        for _ in range(2):
            with stoker.Loader(f"{site.address}/{name}", **options) as loader:
                assert sum(len(batch.labels) for batch in loader) == loader.num_samples
        store = loader.stats()["store"]
        assert store["requests"] == 0 and store["cache_hits"] == loader.num_samples, (name, store)


def test_tags_that_are_weak_are_compared_and_not_demanded(serve, forms, tmp_path):
    site = serve(weak="W/")
    for name in forms:
        assert batches(f"{site.address}/{name}") == batches(site.folder / name), name
    with stoker.Loader(site.address + "/array.npy", batch_size=20, output="numpy", cache_dir=False, on_error="skip") as loader:
        np.save(site.folder / "array.npy", np.zeros((20, 6), np.float32))
        assert sum(len(batch.labels) for batch in loader) == 0
        assert "it changed since" in str(loader.errors[0])


def test_a_server_without_ranges_is_named(serve, forms):
    site = serve(knows_ranges=False)
    with pytest.raises(stoker.Error, match="does not answer requests for a range"):
        batches(site.address + "/array.npy")
    assert batches(site.address + "/list.csv") == batches(site.folder / "list.csv")  # whole files


def test_a_shard_that_is_missing_is_named(site, forms):
    with pytest.raises(FileNotFoundError, match=r"s-3\.tar"):
        batches(site.address + "/s-{0..3}.tar")
    with pytest.raises(FileNotFoundError, match=r"other\.pack/pack\.json"):
        batches(site.address + "/other.pack")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_https_is_read_with_the_certificates_that_are_trusted(serve, forms, tmp_path, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", "/CN=test",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    site = serve(context)
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)  # it comes before SSL_CERT_FILE, and some machines set it
    with pytest.raises(stoker.Error, match="SSL_CERT_FILE"):
        batches(site.address + "/array.npy")
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)  # it comes first
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    for name in [*forms, "list.csv"]:
        assert batches(f"{site.address}/{name}") == batches(site.folder / name), name


def test_a_prefix_is_refused_with_the_remedy(site, binary):
    done = subprocess.run([binary, "load", site.address + "/a"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "web servers do not tell which files they have" in done.stderr and "column `path`" in done.stderr
