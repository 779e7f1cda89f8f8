"""What `import stoker` does and does not do; the stub file; the version; the program."""

import pathlib
import re
import subprocess
import sys

import pytest

import stoker

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_import_loads_no_framework_and_starts_no_thread(run_python):
    run_python("""
        import os, sys
        before = len(os.listdir("/proc/self/task"))
        import numpy
        after_numpy = len(os.listdir("/proc/self/task"))
        import stoker
        assert len(os.listdir("/proc/self/task")) == after_numpy, "a thread was started"
        loaded = {name.split(".")[0] for name in sys.modules}
        assert not loaded & {"torch", "jax", "tensorflow", "torchvision", "pandas", "PIL"}, loaded
    """)


def test_import_loads_few_modules(run_python):
    """A job waits for each of them. What starts processes, compresses or compares texts is loaded where it is used."""
    run_python("""
        import sys
        start = set(sys.modules)
        import stoker
        loaded = {name for name in set(sys.modules) - start if name.split(".")[0] in ("stoker", "numpy")}
        assert loaded == {"stoker", "stoker._engine"}, loaded
        import numpy
        before = set(sys.modules)
        for name in stoker.__all__:
            getattr(stoker, name)
        added = set(sys.modules) - before
        slow = {"multiprocessing", "subprocess", "socket", "tempfile", "shutil", "difflib", "csv", "bz2", "lzma", "zlib", "ssl", "asyncio",
                "stoker.python_calls", "stoker.python_server", "stoker.python_stage", "stoker.supply", "stoker.deep", "stoker.ray", "stoker.torch", "stoker.jax"}
        assert not added & slow, added & slow
        of_stoker = {name for name in added if name.split(".")[0] == "stoker"}
        assert len(of_stoker) <= 37, sorted(of_stoker)
        assert len(added - of_stoker) <= 20, sorted(added - of_stoker)
    """)


def test_names_that_are_loaded_late_are_there_as_before(run_python):
    run_python("""
        import pickle
        import stoker
        assert set(stoker.__all__) <= set(dir(stoker))
        assert stoker.errors.Error is stoker.Error and stoker.loader.Loader is stoker.Loader
        assert stoker.Resize is stoker.Resize and pickle.loads(pickle.dumps(stoker.Resize(8))) == stoker.Resize(8)
        from stoker import *
        assert Loader is stoker.Loader and measure is stoker.measure
        for name in ("torch", "jax", "nothing"):
            try:
                getattr(stoker, name)
            except AttributeError as error:
                assert str(error) == f"module 'stoker' has no attribute {name!r}"
            else:
                raise AssertionError(name)
    """)


def test_the_version_is_the_same_everywhere():
    version = stoker.__version__
    assert f'version = "{version}"' in (ROOT / "pyproject.toml").read_text()
    assert f"project(stoker VERSION {version} " in (ROOT / "CMakeLists.txt").read_text()


def test_the_stub_file_is_what_the_module_says(tmp_path):
    nanobind = pytest.importorskip("nanobind")
    if not nanobind.__version__.startswith("3.1."):
        pytest.skip(f"the stub was made by nanobind 3.1, this is {nanobind.__version__}")
    made = tmp_path / "_engine.pyi"
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "stoker._engine", "-o", made], check=True)
    kept = ROOT / "python/stoker/_engine.pyi"
    assert made.read_text() == kept.read_text(), f"run: {sys.executable} -m nanobind.stubgen -m stoker._engine -o {kept.relative_to(ROOT)}"


def test_every_public_name_has_a_docstring():
    for name in stoker.__all__:
        thing = getattr(stoker, name)
        if isinstance(thing, type):
            assert thing.__doc__, name
    for name, thing in vars(stoker.Loader).items():
        if not name.startswith("_"):
            assert thing.__doc__, name


def test_the_options_of_the_docstring_are_those_of_the_signature():
    text = stoker.Loader.__doc__
    for word in stoker.Loader.__init__.__kwdefaults__:
        assert re.search(rf"\b{word}\b", text) or word == "persistent_workers", word
