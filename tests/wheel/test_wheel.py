"""The wheels of ./dev wheel: what is inside, and that they need nothing on any system that they name."""

import functools
import http.server
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import tarfile
import threading
import zipfile

import pytest
from chroots import ROOT, make, run_in, system, why_not

pytestmark = pytest.mark.slow
HERE = pathlib.Path(__file__).parent
LIBRARIES = ["c-blosc", "curl", "fmtlib", "gdcm", "libdeflate", "libjpeg-turbo", "libstdc++", "libtomlplusplus-dev", "liburing", "libwebp", "libxxhash-dev",
             "libzstd", "lz4", "nanobind", "openssl", "pugixml", "re2", "yaml-cpp", "zlib"]


@pytest.fixture(scope="session")
def wheels():
    """Path of each wheel, by Python tag, as `./dev wheel` leaves them."""
    if 'VERSION_ID="12"' not in pathlib.Path("/etc/os-release").read_text():
        pytest.skip("./dev wheel builds on Debian 12 only")
    done = subprocess.run([ROOT / "dev", "wheel"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    paths = [pathlib.Path(line.split("  ")[1]) for line in done.stdout.splitlines() if line.endswith(".whl")]
    return {path.name.split("-")[2]: path for path in paths}


@pytest.fixture(scope="session")
def expected(tmp_path_factory):
    """What first_use.py prints with the package and the program of this clone."""
    shim = tmp_path_factory.mktemp("clone")
    code = (f"import runpy, sys, sysconfig; path = sysconfig.get_path; sys.argv = ['', {str(ROOT / 'tests/formats')!r}, {str(shim)!r}]; "
            f"sysconfig.get_path = lambda name, *rest: {str(ROOT / 'build/release')!r} if name == 'scripts' else path(name, *rest); "
            f"runpy.run_path({str(HERE / 'first_use.py')!r}, run_name='__main__')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def hand(wheels, tmp_path_factory):
    """A folder with everything that a system is handed: wheels, numpy for each Python, files to load, a script, a certificate."""
    folder = tmp_path_factory.mktemp("hand")
    for wheel in wheels.values():
        shutil.copy(wheel, folder)
    machine = os.uname().machine
    for one in make.machine_interpreters():
        subprocess.run([one.path, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--only-binary", ":all:", "--platform", f"manylinux_2_28_{machine}",
                        "--platform", f"manylinux2014_{machine}", "--dest", folder, "numpy"], check=True)
    shutil.copytree(ROOT / "tests/formats", folder / "formats")
    shutil.copy(HERE / "first_use.py", folder)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", "/CN=test",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"], check=True, capture_output=True)
    return folder


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, with ranges."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = pathlib.Path(self.translate_path(self.path)).read_bytes()
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        first, last = (int(asked[1]), min(int(asked[2]), len(body) - 1)) if asked else (0, len(body) - 1)
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(body)}")
        self.send_header("Content-Length", str(last + 1 - first))
        self.end_headers()
        self.wfile.write(body[first:last + 1])

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def https(hand):
    """The address of an .npy on a web server whose certificate nobody knows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(hand / "certificate.pem", hand / "key.pem")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(hand / "formats")))
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}/raw.pack"
    server.shutdown()
    thread.join()
    server.server_close()


def check(printed, expected):
    """What first_use.py printed there is what it prints here: the same batches, and the same libraries in the program."""
    found = json.loads(printed.splitlines()[-1])
    assert found.pop("https"), "nothing was read over https"
    assert found == expected


def test_a_wheel_is_small_and_has_the_licence_of_each_library(wheels):
    assert wheels
    for path in wheels.values():
        assert path.stat().st_size < 25_000_000
        assert "manylinux_2_28_" in path.name
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
            licences = {name.rpartition("/")[2].removesuffix(".txt") for name in names if ".dist-info/licenses/libraries/" in name}
            assert set(LIBRARIES) <= licences
            assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
            assert any(name.endswith(".data/scripts/stoker") for name in names)
            assert not [name for name in names if ".so" in name and not name.startswith("stoker/_engine")], "everything is linked statically"


def test_there_is_a_wheel_for_each_interpreter_and_one_for_all_from_3_12_on(wheels):
    minors = [one.minor for one in make.machine_interpreters()]
    assert list(wheels) == [f"cp3{minor}" for minor in minors if minor < 12] + (["cp312"] if max(minors) >= 12 else [])
    assert "cp312" not in wheels or "-cp312-abi3-" in wheels["cp312"].name


@pytest.mark.parametrize("minor", [10, 11, 12, 13, 14])
def test_the_wheel_works_in_a_bare_venv_of(minor, hand, https, expected, tmp_path):
    python = next((one.path for one in make.machine_interpreters() if one.minor == minor), None)
    if python is None:
        pytest.skip(f"this machine has no Python 3.{minor}")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SSL_CERT_FILE": str(hand / "certificate.pem")}
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True, env=env)
    pip = subprocess.run([tmp_path / "venv/bin/pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--find-links", hand, "stoker"],
                         capture_output=True, text=True, env=env)
    assert pip.returncode == 0, pip.stderr
    (tmp_path / "data").mkdir()
    done = subprocess.run([tmp_path / "venv/bin/python", hand / "first_use.py", hand / "formats", tmp_path / "data", https], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    check(done.stdout, expected)


def test_the_wheel_needs_nothing_in_a_bare_debian_12(hand, https, expected):
    if reason := why_not():
        pytest.skip(reason)
    printed = run_in(system("bookworm", "python3-venv"), hand, "sh", "-ec", f"""
        python3 -m venv /tmp/venv
        /tmp/venv/bin/pip install -q --disable-pip-version-check --no-index --find-links /mnt stoker
        mkdir /tmp/data /tmp/demo
        cd /tmp
        /tmp/venv/bin/stoker --version >&2
        /tmp/venv/bin/stoker demo --quick --dir /tmp/demo >&2
        SSL_CERT_FILE=/mnt/certificate.pem /tmp/venv/bin/python /mnt/first_use.py /mnt/formats /tmp/data {https}
    """)
    check(printed, expected)


def test_the_program_runs_on_the_older_glibc_of_a_bare_debian_11(wheels, hand):
    if reason := why_not():
        pytest.skip(reason)
    with zipfile.ZipFile(wheels["cp311"]) as wheel:
        program = next(name for name in wheel.namelist() if name.endswith(".data/scripts/stoker"))
        (hand / "stoker").write_bytes(wheel.read(program))
    (hand / "stoker").chmod(0o755)
    printed = run_in(system("bullseye"), hand, "sh", "-ec", """
        cd /tmp
        /mnt/stoker --version
        /mnt/stoker demo --quick --dir /tmp/demo
        /mnt/stoker check /mnt/formats/raw.pack
    """)
    assert printed.startswith("stoker ") and "report.html" in printed


def test_the_source_distribution_builds_offline_given_the_libraries(tmp_path):
    """As `pip install .` does, in a venv that has the two build tools and no network."""
    done = subprocess.run([ROOT / "dev", "wheel", "--sdist"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sdist = pathlib.Path(done.stdout.strip())
    assert sdist.stat().st_size < 10_000_000
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CMakeLists.txt", "PKG-INFO", "src/stoker/stoker.h"} <= names
    assert not [name for name in names if name.startswith(("build/", ".venv/", ".git/"))]
    venv = tmp_path / "venv"
    subprocess.run([ROOT / ".venv/bin/python", "-m", "venv", venv], check=True)
    tools = subprocess.run([ROOT / ".venv/bin/pip", "list", "--format=freeze"], capture_output=True, text=True, check=True).stdout
    wanted = [line for line in tools.splitlines() if line.startswith(("nanobind==", "scikit_build_core=="))]
    subprocess.run([venv / "bin/pip", "install", "-q", "--disable-pip-version-check", *wanted, "numpy"], check=True)
    offline = ["unshare", "--net"] if os.geteuid() == 0 else []
    built = subprocess.run([*offline, venv / "bin/pip", "install", "-q", "--disable-pip-version-check", "--no-index", "--no-build-isolation", sdist],
                           capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PATH": f"{venv}/bin:/usr/bin:/bin"})
    assert built.returncode == 0, built.stdout + built.stderr
    done = subprocess.run([venv / "bin/python", "-c", "import stoker; print(stoker.__version__)"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    program = subprocess.run([venv / "bin/stoker", "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert program.stdout.startswith(f"stoker {done.stdout.strip()}\n"), program.stderr
