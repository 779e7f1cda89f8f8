"""The layers of src/stoker: what a folder includes, what its CMakeLists.txt declares and what src/stoker/README.md says are the same."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/stoker"
FOLDERS = re.search(r"foreach\(folder ([\w ]+)\)", (ROOT / "CMakeLists.txt").read_text())[1].split()

# Headers of system calls, which only os/ may include. A file that needs a call gets a function in os/.
SYSTEM = re.compile(r"(unistd|fcntl|poll|dirent|signal|sched|dlfcn|pthread|termios|(sys|linux|netinet|arpa)/\w+)\.h")
CONSTANTS = {"fcntl.h"}  # O_RDONLY and AT_FDCWD are words of os::open_file


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in (".cc", ".h", ".c"))


def is_test(path):
    return re.search(r"_test\.(cc|h)$", path.name) is not None


def includes_of(path):
    return re.findall(r'^#include ["<]([^">]+)[">]', path.read_text(), re.MULTILINE)


def used_folders(path):
    return {name.split("/")[1] for name in includes_of(path) if name.startswith("stoker/") and name.count("/") >= 2}


def declared(folder):
    text = (SOURCE / folder / "CMakeLists.txt").read_text()
    call = re.search(rf"stoker_library\({folder}\b(.*?)\)", text, re.DOTALL)[1]
    words = re.search(r"\bUSES\b([\w\s]*?)(?=\b[A-Z]{4,}\b|$)", call)
    return words[1].split() if words else []


def test_the_root_names_every_folder():
    assert sorted(FOLDERS) == sorted(path.name for path in SOURCE.iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_uses_only_folders_before_it(folder):
    assert set(declared(folder)) <= set(FOLDERS[: FOLDERS.index(folder)])


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_declares_what_it_includes(folder):
    included = {}
    for path in files_of(SOURCE / folder):
        for other in used_folders(path) - {folder}:
            if not is_test(path) or other not in declared(folder):
                included.setdefault(other, []).append(path.name)
    missing = {other: names for other, names in included.items() if other not in declared(folder)}
    assert not missing, f"{folder}/CMakeLists.txt does not declare under USES: {missing}"
    unused = set(declared(folder)) - set(included)
    assert not unused, f"{folder}/CMakeLists.txt declares and no file includes: {unused}"


def test_the_table_of_the_readme_is_what_is_declared():
    text = (SOURCE / "README.md").read_text()
    table = re.search(r"\| folder \| uses \|\n\|[-|]+\|\n((?:\|.*\|\n)+)", text)[1]
    rows = dict(re.match(r"\| (\S+) \| (.*) \|", line).groups() for line in table.splitlines())
    assert list(rows) == FOLDERS
    for folder, uses in rows.items():
        said = [] if "the standard library" in uses else uses.split(", ")
        assert said == declared(folder), folder


def test_only_os_makes_system_calls():
    found = {}
    for top in (SOURCE, ROOT / "cli", ROOT / "python/bindings"):
        for path in files_of(top):
            headers = {name for name in includes_of(path) if SYSTEM.fullmatch(name)} - CONSTANTS
            if headers and not is_test(path) and path.suffix != ".c" and SOURCE / "os" not in path.parents:
                found[str(path.relative_to(ROOT))] = headers
    assert not found, "only os/ makes system calls: give it a function, and call that"


# Command lines that people copy, and flags of other programs.
COMMAND = re.compile(r"`[^`]*\b(stoker|aws) [^`]*`|\(docker: [^)]*\)|the tar without --sparse|\bstoker \w+ .*")
NO_MESSAGES = {"plan/command.cc", "report/page_style.cc"}  # commands, and CSS


def texts_with_flags(path):
    """Sentences in the string literals of a file, one literal after another, that name a flag of ours."""
    text = re.sub(r"//[^\n]*", "", path.read_text())
    for literal in re.findall(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+', text):
        sentence = re.sub(r'"\s*"', "", literal)
        words, flags = re.subn(r"--[a-z][a-z-]*", "", COMMAND.sub("", sentence))
        if flags and re.search("[a-z]{2}", words):
            yield sentence


@pytest.mark.parametrize("folder", FOLDERS)
def test_messages_name_options_and_each_face_spells_them(folder):
    """`format_text("raise {}", option("memory_limit"))`, not "raise --memory-limit"; a command line to copy may have flags."""
    found = {}
    for path in files_of(SOURCE / folder):
        name = f"{folder}/{path.name}"
        if path.suffix == ".cc" and not is_test(path) and name not in NO_MESSAGES and (texts := list(texts_with_flags(path))):
            found[name] = texts
    assert not found


def test_plan_reads_no_files():
    """plan/ is arithmetic: what it plans from is read by tune/ and by the faces."""
    assert not {"os", "storage", "dataset"} & set(declared("plan"))
    opens = re.compile(r"<fstream>|<cstdio>|filesystem::(exists|is_directory|directory_iterator|file_size)")
    found = [path.name for path in files_of(SOURCE / "plan") if not is_test(path) and opens.search(path.read_text())]
    assert not found


def test_the_files_of_a_unity_file_do_not_depend_on_the_configuration():
    """CMake compiles a file with definitions of its own alone. Where such definitions depend on an option, a build without S3 or volumes (as
    `./dev demo` makes) would compile other files together than the build that the tests look at."""
    own = re.compile(r"set_source_files_properties\([^)]*COMPILE_DEFINITIONS")
    lists = [*SOURCE.glob("*/CMakeLists.txt"), ROOT / "cli/CMakeLists.txt", ROOT / "python/CMakeLists.txt"]
    found = [str(path.relative_to(ROOT)) for path in lists if path.exists() and own.search(path.read_text())]
    assert not found, "use target_compile_definitions"
