"""The compiler of the wheel: this machine's g++, with the C library of Debian 11 below it.

What it builds needs glibc 2.28 or newer, and nothing of C++ at run time: libstdc++ is linked statically. The folder is
`<deps>/toolchain-<key>`, with `cc`, `c++` and `cmake`, a toolchain file.
"""

import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

# -O2 and the hardening are those of Debian's own builds. Sections let the linker leave out what nobody calls.
FLAGS = "-O2 -fPIC -ffunction-sections -fdata-sections -fstack-protector-strong -D_FORTIFY_SOURCE=2 -ffp-contract=off"

RECIPE = "1"  # change it when make() changes


class Refused(Exception):
    """A message, and what to do about it."""

    def __init__(self, message: str, hint: str = ""):
        super().__init__(message)
        self.hint = hint


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(command: list, log: pathlib.Path, cwd: pathlib.Path | None = None, env: dict | None = None) -> None:
    """Runs a command with its output at the end of `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        out.write(f"+ {' '.join(map(str, command))}\n".encode())
        out.flush()
        done = subprocess.run([str(word) for word in command], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    if done.returncode != 0:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-40:])
        raise Refused(f"`{' '.join(map(str, command[:4]))}` failed with status {done.returncode}:\n{end}", f"the whole output is in {log}")


def mirrors() -> tuple[str, str]:
    """Where this machine's apt finds Debian and its security updates."""
    found: list[str] = []
    for path in [*sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*")), pathlib.Path("/etc/apt/sources.list")]:
        if path.suffix in (".sources", ".list") and path.is_file():
            lines = [line for line in path.read_text(errors="replace").splitlines() if re.match(r"URIs:|deb(-src)? ", line)]
            found += re.findall(r"\S+:/+\S+", "\n".join(lines))
    found = [address.rstrip("/") for address in found]
    main = next((address for address in found if address.endswith("/debian")), None)
    if main is None:
        raise Refused("this machine's apt names no mirror of Debian", "build the wheel on Debian 12")
    security = next((address for address in found if address.endswith("/debian-security")), f"{main}-security")
    return main, security


class Debian:
    """Packages of Debian 12, and the C library of Debian 11. Its lists are its own: the system's sources do not change."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.log = folder / "log"
        for name in ("lists/partial", "archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        self.mirror, security = mirrors()
        signed = f"[signed-by={KEYRING}]"
        (folder / "sources.list").write_text(
            f"deb {signed} {self.mirror} bullseye main\n"
            f"deb {signed} {self.mirror} bookworm main\n"
            f"deb-src {signed} {self.mirror} bookworm main\n"
            f"deb-src {signed} {security} bookworm-security main\n")
        (folder / "apt.conf").write_text(
            f'Dir::Etc::sourcelist "{folder}/sources.list";\nDir::Etc::sourceparts "-";\nDir::Etc::preferencesparts "-";\n'
            f'Dir::State "{folder}";\nDir::State::status "{folder}/status";\nDir::Cache "{folder}";\nAPT::Sandbox::User "";\n'
            'Acquire::Languages "none";\nAcquire::Retries "3";\n')
        self.env = dict(os.environ, APT_CONFIG=f"{folder}/apt.conf", LC_ALL="C.UTF-8")

    def update(self) -> None:
        run(["apt-get", "update", "-qq"], self.log, env=self.env)

    def is_listed(self) -> bool:
        return any((self.folder / "lists").glob("*_Sources*"))

    def _show(self, *words: str) -> str:
        return subprocess.run(["apt-cache", *words], env=self.env, capture_output=True, text=True, check=True).stdout

    def version(self, package: str, suite: str) -> str:
        """Of a binary package."""
        for line in self._show("madison", package).splitlines():
            name, version, where = (word.strip() for word in line.split("|"))
            if name == package and f" {suite}/" in where and "Sources" not in where:
                return version
        raise Refused(f"Debian's {suite} has no package {package}", f"is the mirror {self.mirror} complete?")

    def source_versions(self, source: str) -> list[str]:
        """Of a source package, the newest first."""
        versions = set(re.findall(r"^Version: (.+)$", self._show("showsrc", "--only-source", source), re.MULTILINE))
        if not versions:
            raise Refused(f"Debian 12 has no source package {source}", f"is the mirror {self.mirror} complete?")

        def compare(one: str, other: str) -> int:
            return 1 if subprocess.run(["dpkg", "--compare-versions", one, "lt", other]).returncode == 0 else -1
        return sorted(versions, key=functools.cmp_to_key(compare))

    def unpack(self, package: str, suite: str, into: pathlib.Path) -> None:
        """The files of a binary package."""
        scratch = self.folder / "debs"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        run(["apt-get", "download", "-qq", f"{package}={self.version(package, suite)}"], self.log, cwd=scratch, env=self.env)
        run(["dpkg-deb", "-x", next(scratch.glob("*.deb")), into], self.log)

    def source(self, source: str, version: str, into: pathlib.Path) -> pathlib.Path:
        """A source package with Debian's patches, which have the fixes of security bugs."""
        shutil.rmtree(into, ignore_errors=True)
        into.mkdir(parents=True)
        run(["apt-get", "source", "-qq", "--only-source", f"{source}={version}"], self.log, cwd=into, env=self.env)
        return next(path for path in into.iterdir() if path.is_dir())


# Headers and libraries below which the wheel is built. The kernel's headers are of Debian 12: they do not depend on glibc.
SYSROOT = (("libc6", "bullseye"), ("libc6-dev", "bullseye"), ("libcrypt1", "bullseye"), ("libcrypt-dev", "bullseye"),
           ("libgcc-s1", "bullseye"), ("linux-libc-dev", "bookworm"))


def triple() -> str:
    return subprocess.run(["g++", "-dumpmachine"], capture_output=True, text=True, check=True).stdout.strip()


def check_machine() -> None:
    release = pathlib.Path("/etc/os-release").read_text() if os.path.exists("/etc/os-release") else ""
    if 'ID=debian' not in release or 'VERSION_ID="12"' not in release:
        raise Refused("./dev wheel builds on Debian 12 only: it takes libraries and their sources from there", "use a container or a chroot of Debian 12")
    for program in ("g++", "apt-get", "dpkg-source", "nasm", "perl", "make"):
        if shutil.which(program) is None:
            raise Refused(f"cannot find {program}", "apt-get install build-essential nasm")


def key(debian: Debian) -> str:
    """Of the toolchain: another one compiles every library again."""
    parts = [f"{package}={debian.version(package, suite)}" for package, suite in SYSROOT] + [FLAGS, RECIPE]
    parts += [re.sub(r"//.*", "", (HERE / name).read_text()) for name in ("old_glibc.c", "old_glibc.h")]  # a comment changes nothing
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]


def executable(path: pathlib.Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def sysroot_flags(folder: pathlib.Path) -> str:
    """What makes gcc take its C library from the toolchain in `folder`."""
    root, machine = folder / "sysroot", triple()
    return f"--sysroot={root} -B{root}/usr/lib/{machine} -L{root}/usr/lib/{machine} -L{root}/lib/{machine}"


def make(debian: Debian, folder: pathlib.Path) -> None:
    """Makes the toolchain in `folder`."""
    say("toolchain: the C library of Debian 11")
    shutil.rmtree(folder, ignore_errors=True)
    root, machine = folder / "sysroot", triple()
    root.mkdir(parents=True)
    for package, suite in SYSROOT:
        debian.unpack(package, suite, root)
    # Links to absolute names would lead out of the folder.
    for link in [path for path in root.rglob("*") if path.is_symlink()]:
        target = os.readlink(link)
        if target.startswith("/"):
            link.unlink()
            link.symlink_to(os.path.relpath(f"{root}{target}", link.parent))
    libraries = root / "usr/lib" / machine
    # That of Debian 12 wants glibc 2.35 to link with. What libgcc_s.so.1 keeps for old programs alone, such as __cpu_model, is in -lgcc.
    (libraries / "libgcc_s.so").write_text(f"GROUP ( /lib/{machine}/libgcc_s.so.1 -lgcc )\n")
    flags = sysroot_flags(folder)
    log = folder / "log"
    run(["g++", "-x", "c", *flags.split(), *FLAGS.split(), "-c", HERE / "old_glibc.c", "-o", folder / "old_glibc.o"], log)
    run(["ar", "r", libraries / "libc_nonshared.a", folder / "old_glibc.o"], log)
    script = libraries / "libc.so"
    script.write_text(script.read_text().replace("AS_NEEDED (", f"AS_NEEDED ( /lib/{machine}/libdl.so.2"))
    launcher = "ccache " if shutil.which("ccache") else ""
    for name, compiler, more in (("cc", "gcc", ""), ("c++", "g++", " -static-libstdc++")):
        executable(folder / name, f'#!/bin/sh\nexec {launcher}/usr/bin/{compiler} {flags} -include {HERE}/old_glibc.h{more} "$@"\n')
    (folder / "cmake").write_text(
        f"set(CMAKE_C_COMPILER {folder}/cc)\n"
        f"set(CMAKE_CXX_COMPILER {folder}/c++)\n"
        f"set(CMAKE_SYSROOT {root})\n"
        "list(APPEND CMAKE_FIND_ROOT_PATH ${STOKER_WHEEL_LIBRARIES})\n"
        "set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES STOKER_WHEEL_LIBRARIES)\n"
        "set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)\n"
        "foreach(kind LIBRARY INCLUDE PACKAGE)\n  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)\nendforeach()\n"
        "set(THREADS_PREFER_PTHREAD_FLAG ON)\n")
