"""The libraries inside the wheel: from Debian 12's source packages, compiled to static archives."""

import dataclasses
import os
import pathlib
import re
import shutil
from collections.abc import Callable

from toolchain import FLAGS, Debian, Refused, run, say


@dataclasses.dataclass
class Work:
    """One library on its way: where its sources are, where it goes, with which compiler."""

    source: pathlib.Path
    prefix: pathlib.Path
    toolchain: pathlib.Path
    needs: list[pathlib.Path]  # prefixes of the libraries that it uses
    log: pathlib.Path
    debian: Debian

    def run(self, *command, cwd: pathlib.Path | None = None, **more: str) -> None:
        env = dict(os.environ, **more, CC=f"{self.toolchain}/cc", CXX=f"{self.toolchain}/c++", CFLAGS=FLAGS, CXXFLAGS=FLAGS)
        for name in ("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER"):
            env.pop(name, None)  # the toolchain has it already
        run(list(command), self.log, cwd=cwd or self.source, env=env)

    def make(self, *words: str, folder: str = ".") -> None:
        self.run("make", f"-j{os.cpu_count()}", *words, cwd=self.source / folder)

    def cmake(self, *switches: str) -> None:
        build = self.source / "build-wheel"
        prefixes = ";".join(map(str, self.needs))
        self.run("cmake", "-G", "Ninja", "-S", self.source, "-B", build, f"-DCMAKE_TOOLCHAIN_FILE={self.toolchain}/cmake",
                 f"-DSTOKER_WHEEL_LIBRARIES={prefixes}", f"-DCMAKE_INSTALL_PREFIX={self.prefix}", "-DCMAKE_INSTALL_LIBDIR:PATH=lib",
                 "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS_RELEASE=-DNDEBUG", "-DCMAKE_CXX_FLAGS_RELEASE=-DNDEBUG",
                 "-DBUILD_SHARED_LIBS=OFF", "-DBUILD_TESTING=OFF", *switches)
        self.run("cmake", "--build", build)
        self.run("cmake", "--install", build)


def _zlib(work: Work) -> None:
    work.run("./configure", "--static", f"--prefix={work.prefix}")
    work.make("libz.a")
    work.make("install")


def _makefile(folder: str, *words: str) -> Callable[[Work], None]:
    def build(work: Work) -> None:
        work.make("install", f"PREFIX={work.prefix}", f"prefix={work.prefix}", *words, folder=folder)
    return build


def _uring(work: Work) -> None:
    work.run("./configure", f"--prefix={work.prefix}", f"--cc={work.toolchain}/cc", f"--cxx={work.toolchain}/c++")
    work.make("install", "ENABLE_SHARED=0", folder="src")


def _openssl(work: Work) -> None:
    # no-autoload-config: the system's openssl.cnf is written for the system's OpenSSL.
    work.run("perl", "./Configure", f"--prefix={work.prefix}", "--openssldir=/etc/ssl", "--libdir=lib", "no-shared", "no-dso", "no-engine", "no-legacy",
             "no-tests", "no-autoload-config", "no-ui-console", "no-cmp", "no-cms", "no-ct", "no-ts", "no-srp", "no-comp", "no-ssl3", "no-dtls",
             "no-camellia", "no-seed", "no-aria", "no-idea", "no-rc2", "no-rc4", "no-bf", "no-cast", "no-whirlpool", "no-md4", "no-mdc2", "no-sm2", "no-sm3", "no-sm4")
    work.make("build_libs")
    work.make("install_dev")


def _cmake(*switches: str) -> Callable[[Work], None]:
    return lambda work: work.cmake(*switches)


def _re2(work: Work) -> None:
    # Debian's sources are without the tables of Unicode: a script writes them from Debian's own.
    tables = work.source / "tables"
    for package in ("unicode-data", "python3-six"):
        work.debian.unpack(package, "bookworm", tables)
    script = work.source / "re2/unicode.py"
    script.write_text(script.read_text().replace("/usr/share/unicode", f"{tables}/usr/share/unicode"))
    work.run("make", f"-j{os.cpu_count()}", "REBUILD_TABLES=1", f"prefix={work.prefix}", "static-install",
             PYTHONPATH=f"{tables}/usr/lib/python3/dist-packages")


def _gdcm(work: Work) -> None:
    work.cmake("-DGDCM_BUILD_SHARED_LIBS=OFF", "-DGDCM_BUILD_APPLICATIONS=OFF", "-DGDCM_BUILD_TESTING=OFF", "-DGDCM_BUILD_EXAMPLES=OFF",
               "-DGDCM_BUILD_DOCBOOK_MANPAGES=OFF", "-DGDCM_DOCUMENTATION=OFF", "-DGDCM_USE_VTK=OFF", "-DGDCM_USE_SYSTEM_ZLIB=ON")


_CURL = ("-DHTTP_ONLY=ON", "-DBUILD_CURL_EXE=OFF", "-DENABLE_MANUAL=OFF", "-DCURL_USE_OPENSSL=ON", "-DCURL_ZLIB=OFF", "-DCURL_BROTLI=OFF", "-DCURL_ZSTD=OFF",
         "-DUSE_NGHTTP2=OFF", "-DUSE_LIBIDN2=OFF", "-DCURL_USE_LIBPSL=OFF", "-DCURL_USE_LIBSSH2=OFF", "-DCURL_USE_LIBSSH=OFF", "-DCURL_USE_GSSAPI=OFF",
         "-DCURL_CA_BUNDLE=none", "-DCURL_CA_PATH=none", "-DCURL_DISABLE_NTLM=ON")
_BLOSC = ("-DBUILD_SHARED=OFF", "-DBUILD_TESTS=OFF", "-DBUILD_FUZZERS=OFF", "-DBUILD_BENCHMARKS=OFF", "-DPREFER_EXTERNAL_LZ4=ON", "-DPREFER_EXTERNAL_ZLIB=ON",
          "-DPREFER_EXTERNAL_ZSTD=ON", "-DDEACTIVATE_SNAPPY=ON")


@dataclasses.dataclass(frozen=True)
class Library:
    name: str  # of Debian's source package
    build: Callable[[Work], None]
    needs: tuple[str, ...] = ()
    recipe: str = "1"  # change it when how it is built changes


# In the order in which they are built.
SOURCES = (
    Library("zlib", _zlib),
    Library("libzstd", _makefile("lib", "install-static", "install-includes", "MOREFLAGS=-DZSTD_LEGACY_SUPPORT=0"), recipe="2"),
    Library("lz4", _makefile("lib", "BUILD_SHARED=no")),
    Library("c-blosc", _cmake(*_BLOSC), ("zlib", "libzstd", "lz4")),
    Library("libdeflate", _makefile(".", "DISABLE_SHARED=1")),
    Library("libjpeg-turbo", _cmake("-DENABLE_SHARED=OFF", "-DWITH_TURBOJPEG=OFF", "-DREQUIRE_SIMD=ON")),
    Library("libwebp", _cmake(*(f"-DWEBP_BUILD_{part}=OFF" for part in ("ANIM_UTILS", "CWEBP", "DWEBP", "GIF2WEBP", "IMG2WEBP", "VWEBP", "WEBPINFO", "WEBPMUX", "EXTRAS")))),
    Library("liburing", _uring),
    Library("openssl", _openssl),
    Library("curl", _cmake(*_CURL), ("openssl",)),
    Library("pugixml", _cmake()),
    Library("fmtlib", _cmake("-DFMT_TEST=OFF", "-DFMT_DOC=OFF")),
    Library("re2", _re2),
    Library("yaml-cpp", _cmake("-DYAML_CPP_BUILD_TESTS=OFF", "-DYAML_CPP_BUILD_TOOLS=OFF", "-DYAML_BUILD_SHARED_LIBS=OFF")),
    Library("gdcm", _gdcm, ("zlib",)),
)
HEADERS = ("libxxhash-dev", "libtomlplusplus-dev")  # binary packages with nothing but headers that are used


def as_name(version: str) -> str:
    """A version as part of a folder's name: `1:2.1.5-2+b1` has signs that makefiles and CMake read otherwise."""
    return re.sub(r"[^\w.-]", "_", re.sub(r"^\d+:", "", version))


def _build(library: Library, prefixes: dict[str, pathlib.Path], debian: Debian, toolchain: pathlib.Path, deps: pathlib.Path) -> pathlib.Path:
    versions, scratch = debian.source_versions(library.name), deps / "scratch"
    for version in versions:
        prefix = deps / f"{library.name}-{as_name(version)}-{library.recipe}-{toolchain.name.removeprefix('toolchain-')}"
        if (prefix / "copyright").exists():  # it comes last
            return prefix
        try:
            source = debian.source(library.name, version, scratch)
            break
        except Refused as problem:
            if version == versions[-1]:
                raise
            say(f"note: {library.name} {version} is listed, but its source cannot be fetched; an older one is taken instead ({problem.hint})")
    say(f"building {library.name} {version}")
    for old in deps.glob(f"{library.name}-[0-9]*"):
        shutil.rmtree(old)
    library.build(Work(source, prefix, toolchain, [prefixes[name] for name in library.needs], deps / f"{library.name}.log", debian))
    for shared in prefix.glob("lib/*.so*"):  # which CMake would take before the static library
        shared.unlink()
    shutil.copy(source / "debian/copyright", prefix / "copyright")
    shutil.rmtree(scratch)
    return prefix


def build_all(debian: Debian, toolchain: pathlib.Path, deps: pathlib.Path) -> dict[str, pathlib.Path]:
    """The prefix of each library, by name. Those that are there already are not built."""
    prefixes: dict[str, pathlib.Path] = {}
    for library in SOURCES:
        prefixes[library.name] = _build(library, prefixes, debian, toolchain, deps)
    for name in HEADERS:
        version = debian.version(name, "bookworm")
        prefix = prefixes[name] = deps / f"{name}-{as_name(version)}"
        if not (prefix / "copyright").exists():
            unpacked = deps / "scratch"
            shutil.rmtree(unpacked, ignore_errors=True)
            debian.unpack(name, "bookworm", unpacked)
            shutil.copytree(unpacked / "usr/include", prefix / "include", dirs_exist_ok=True)
            shutil.copy(unpacked / f"usr/share/doc/{name}/copyright", prefix / "copyright")
            shutil.rmtree(unpacked)
    return prefixes


def archives(prefixes: dict[str, pathlib.Path]) -> list[pathlib.Path]:
    return sorted(path for prefix in prefixes.values() for path in prefix.glob("lib/**/*.a"))


