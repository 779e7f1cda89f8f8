"""Writes docs/reference/cli.md from the program's help and docs/reference/python.md from the package's docstrings.

    STOKER_BIN=build/release/stoker python docs/generate.py

A test fails where a page is not what this writes. The Python page is read from the source: it needs no build.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CLI_PAGE, PYTHON_PAGE = ROOT / "docs/reference/cli.md", ROOT / "docs/reference/python.md"
LOADER_FLAGS = "our loader with --deep: "  # sections of `measure` that repeat those of `load`

# ---- the program


def help_of(binary: Path, *words: str) -> str:
    return subprocess.run([binary, *words], capture_output=True, text=True, check=True, env={**os.environ, "NO_COLOR": "1"}).stdout


def verbs(binary: Path) -> list[str]:
    listed = help_of(binary, "help").split("\nverbs:\n")[1].split("\n\n")[0]
    return re.findall(r"^  (\w+)  ", listed, re.M)


def paragraphs(text: str) -> list[str]:
    return [part for part in re.split(r"\n{2,}", text.strip("\n")) if part.strip()]


def cell(text: str) -> str:
    """Safe in a table, outside of code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part.replace("|", "\\|") if part.startswith("`") else re.sub(r"([|*])", r"\\\1", part).replace("<", "&lt;") for part in parts)


def flags_of(section: str) -> Iterator[tuple[str, str, str]]:
    """(flag, meaning, default) of each flag; a meaning starts in column 25, on the line of its flag or on the next."""
    rows: list[tuple[str, list[str]]] = []
    for line in section.splitlines():
        found = re.match(r"^  (-{1,2}\S.*?)(?:  +(\S.*))?$", line)
        if found and not line.startswith(" " * 25):
            rows.append((found[1], [found[2] or ""]))
        elif rows:
            rows[-1][1].append(line.strip())
    for flag, lines in rows:
        meaning = " ".join(line for line in lines if line)
        default = re.search(r" \[([^\[\]]+)\]$", meaning)
        yield flag, meaning[: default.start()] if default else meaning, default[1] if default else ""


def flag_table(section: str) -> str:
    rows = [f"| `{flag}` | {cell(meaning)} | {cell(default)} |" for flag, meaning, default in flags_of(section)]
    return "\n".join(["| flag | what it does | default |", "|---|---|---|", *rows])


def example_block(text: str) -> str:
    return "```sh\n" + textwrap.dedent(text).strip("\n") + "\n```"


def transform_table(section: str) -> str:
    rows = []
    for short, name, meaning in re.findall(r"^  (\S.*)\n      (\w+): (.*)$", section, re.M):
        rows.append(f"| `{short}` | `{name}` | {cell(meaning)} |")
    return "\n".join(["| short text | operation | what it does |", "|---|---|---|", *rows])


def verb_part(binary: Path, verb: str, shared: dict[str, str]) -> str:
    """One verb; what every verb says goes into `shared`."""
    out = [f"## stoker {verb}"]
    repeated = []
    after_flags = False
    for part in paragraphs(help_of(binary, verb, "--help")):
        title, _, body = part.partition("\n")
        if title == "examples:":
            examples = example_block(body)
        elif title.startswith("usage: "):
            out.append(f"`{title.removeprefix('usage: ')}`")
        elif title.startswith(LOADER_FLAGS):
            repeated.append(title.removeprefix(LOADER_FLAGS).rstrip(":"))
        elif title in ("every verb:", "exit codes: 0 done; 1 it ran and the answer is no; 2 wrong use or failure;"):
            shared[title] = part
            after_flags = True
        elif title.startswith(("transforms (", "workloads (")):
            shared[title] = part
        elif title.endswith(":") and body.startswith("  -"):
            out += [f"**{title[0].upper()}{title[1:-1]}**", flag_table(body)]
        elif title.endswith(":"):
            out += [f"**{title[0].upper()}{title[1:-1]}**", "```text\n" + textwrap.dedent(body) + "\n```"]
        elif part.startswith("  "):
            words = re.sub(r"\s+", " ", part[2:]) if not re.match(r"^  \S+( \S+)*  +", part) else ""
            name, _, meaning = re.sub(r"\n +", " ", part[2:]).partition("  ")
            out.append(filled(words or f"`{name.strip()}`: {meaning.strip()}."))
        elif after_flags:
            out.append(filled(re.sub(r"\s+", " ", part)))
        else:
            summary = re.sub(r"\s+", " ", part)
            out.append(f"{summary[0].upper()}{summary[1:]}." if summary[-1] not in ".?" else f"{summary[0].upper()}{summary[1:]}")
            out.append(examples)
    if repeated:
        out.append(filled(f"With `--deep` and an ADDRESS it also takes the flags of [`stoker load`](#stoker-load): {', '.join(repeated)}."))
    return "\n\n".join(out)


def cli_page(binary: Path) -> str:
    shared: dict[str, str] = {}
    parts = [verb_part(binary, verb, shared) for verb in verbs(binary)]
    transforms = next(text for title, text in shared.items() if title.startswith("transforms ("))
    workloads = next(text for title, text in shared.items() if title.startswith("workloads ("))
    codes = next(text for title, text in shared.items() if title.startswith("exit codes: "))
    table = "\n".join(f"| [`{verb}`](#stoker-{verb}) | {cell(summary)} |" for verb, summary in summaries(binary))
    head = f"""# The command line

`docs/generate.py` makes this page from the tables that the parser reads. `stoker VERB --help` prints the same, `-h` a screen
of it, and `stoker completions man` a manual page.

| verb | what it does |
|---|---|
{table}

## Every verb

stdout is the answer, stderr is everything else. Bars appear on a terminal only.

{flag_table(shared['every verb:'].partition(chr(10))[2])}

```text
{codes}
```"""
    tail = f"""## Transforms as text

`--transform` takes operations with commas between them. [Transforms](transforms.md) describes each.

{transform_table(transforms)}

## Workloads

`--workload` brings the batch size and the step of MLPerf Storage.

```text
{textwrap.dedent(workloads.partition(chr(10))[2])}
```"""
    return "\n\n".join([head, *parts, tail]) + "\n"


def summaries(binary: Path) -> list[tuple[str, str]]:
    listed = help_of(binary, "help").split("\nverbs:\n")[1].split("\n\n")[0]
    joined = re.sub(r"\n {25}", " ", "\n" + listed)
    return re.findall(r"^  (\w+) +(.*)$", joined, re.M)


# ---- the package

GROUPS = {
    "Loading": ["Loader", "Batch", "Volumes", "stitch", "sample_seed"],
    "Measuring": ["measure", "Measurement", "span", "Span"],
    "Packs": ["PackWriter"],
    "Errors": ["Error", "UsageError", "NotFoundError", "PermissionDeniedError", "Note", "SampleError", "ErrorList"],
}
MODULES = {"stoker.torch": ["DataLoader"], "stoker.callbacks": ["lightning", "huggingface"], "stoker.ray": ["pack"]}
MADE_BY_STOKER = {"stoker.Batch", "stoker.Measurement", "stoker.Span"}  # nobody calls these
Definition = ast.ClassDef | ast.FunctionDef


def definitions(path: Path) -> dict[str, Definition]:
    return {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, Definition)}


def exported() -> dict[str, Definition]:
    """name -> definition of all that `stoker.__all__` lists and the package itself defines."""
    package = ROOT / "python/stoker"
    tree = ast.parse((package / "__init__.py").read_text())
    listed = next(ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    there = {name: node for path in [*sorted(package.glob("*.py")), *sorted(package.glob("transforms/*.py"))] for name, node in definitions(path).items()}
    imported = [node.module for node in tree.body if isinstance(node, ast.ImportFrom) and (package / f"{node.module}.py").exists()]
    there |= {name: node for module in imported for name, node in definitions(package / f"{module}.py").items()}
    return {name: there[name] for name in listed if name in there}


def signature(function: ast.FunctionDef, name: str, without_self: bool) -> str:
    """As it is called: without types, `self` and what it returns."""
    given = function.args
    for argument in [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]:
        if argument is not None:
            argument.annotation = None
    text = ast.unparse(given)
    if without_self:
        text = re.sub(r"^(self|cls)(, )?", "", text)
    return f"{name}({text})"


def filled(text: str, first: str = "", rest: str = "") -> str:
    """At most 120 columns; a code span or a link stays on one line."""
    lines, line = [], first
    for word in re.findall(r"(?:`[^`]*`|\[[^\]]*\]\([^)]*\)|\S)+", text):
        if line.strip() not in ("", first.strip()) and len(line) + 1 + len(word) > 120:
            lines.append(line)
            line = rest + word
        else:
            line += word if line in (first, rest) else f" {word}"
    return "\n".join([*lines, line])


def markdown(docstring: str | None) -> str:
    """A docstring as Markdown: arguments become a list, and `::` begins code."""
    text = inspect.cleandoc(docstring or "")
    text = re.sub(r":\w+:`~?\.?([^`]+)`", r"`\1`", text).replace("``", "`")
    out: list[str] = []
    for part in paragraphs(text.replace("::\n\n", "::\n")):
        lines = part.splitlines()
        if lines[0].endswith("::") and len(lines) > 1:
            intro = lines[0].removesuffix("::").strip()
            out += [*([f"{intro}:"] if intro else []), code("\n".join(lines[1:]))]
        elif all(line.startswith("    ") for line in lines):
            out.append(code(part))
        else:
            out += listed(lines)
    return "\n\n".join(out).replace("\n```\n\n```py\n", "\n\n")


def code(text: str) -> str:
    return f"```py\n{textwrap.dedent(text)}\n```"


ARGUMENTS = re.compile(r"((?:\w+, )*\w+): ")


def listed(lines: list[str]) -> list[str]:
    """A paragraph of a docstring. Lines that begin with the name of an argument, or are indented by two, are items of a list."""
    names_at_the_margin = sum(bool(ARGUMENTS.match(line)) for line in lines) > 1
    blocks: list[tuple[bool, str]] = []
    for line in lines:
        depth = len(line) - len(line.lstrip())
        is_item = bool(ARGUMENTS.match(line)) if names_at_the_margin else depth == 2
        if is_item or not blocks or (depth == 0 and blocks[-1][0]):
            blocks.append((is_item, line.strip()))
        else:
            blocks[-1] = (blocks[-1][0], f"{blocks[-1][1]} {line.strip()}")
    out: list[str] = []
    was_item = False
    for is_item, text in blocks:
        if is_item:
            text = ARGUMENTS.sub(lambda found: ", ".join(f"`{name}`" for name in found[1].split(", ")) + ": ", text, count=1) if ARGUMENTS.match(text) else text
            item = filled(text, "- ", "  ")
            out = [*out[:-1], f"{out[-1]}\n{item}"] if was_item else [*out, item]
        else:
            out.append(filled(text))
        was_item = is_item
    return out


def constructor(node: ast.ClassDef) -> ast.FunctionDef | None:
    return next((part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"), None)


def described(name: str, node: Definition) -> str:
    """A class with its public methods, or a function."""
    if isinstance(node, ast.FunctionDef):
        return f"### {name.rpartition('.')[2]}\n\n```py\n{wrapped_call(signature(node, name, False))}\n```\n\n{markdown(ast.get_docstring(node))}"
    made = None if name in MADE_BY_STOKER else constructor(node)
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    call = wrapped_call(signature(made, name, True)) if made else f"class {name}({bases})" if bases else f"class {name}"
    title = f"{name.rpartition('.')[2]}{' objects' if name in MADE_BY_STOKER else ''}"
    out = [f"### {title}\n\n```py\n{call}\n```\n\n{markdown(ast.get_docstring(node))}".rstrip()]
    members = []
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and not part.name.startswith("_") and ast.get_docstring(part):
            marks = {ast.unparse(mark) for mark in part.decorator_list}
            if any(mark.endswith(".setter") or mark == "overload" for mark in marks):
                continue
            shown = part.name if marks & {"property", "functools.cached_property", "cached_property"} else signature(part, part.name, "staticmethod" not in marks)
            first, *more = paragraphs(markdown(ast.get_docstring(part)))
            text = filled(f"`{shown}`: {re.sub(chr(10), ' ', first)}", "- ", "  ")
            members.append("\n\n".join([text, *(textwrap.indent(one, "    ") for one in more)]))
    between = "\n\n" if any("\n\n" in one for one in members) else "\n"
    return "\n\n".join([*out, *([between.join(members)] if members else [])])


def wrapped_call(call: str) -> str:
    if len(call) <= 100:
        return call
    head, _, rest = call.partition("(")
    return "\n".join(textwrap.wrap(rest, 100, initial_indent=f"{head}(", subsequent_indent=" " * 4, break_long_words=False, break_on_hyphens=False))


def python_page() -> str:
    found = exported()
    transforms = [name for name in found if name not in sum(GROUPS.values(), [])]
    out = ["""# The Python package

`docs/generate.py` makes this page from the docstrings. `import stoker` loads numpy and the engine, no framework, and starts no
thread. [Loader options](loader.md) has every keyword with its values, and [transforms](transforms.md) every operation with its
short text."""]
    for title, names in GROUPS.items():
        out.append(f"## {title}")
        out += [described(f"stoker.{name}", found[name]) for name in names]
    out.append("## Transforms\n\nEach is immutable; two with the same arguments are equal.")
    rows = ["| call | what it does |", "|---|---|"]
    for name in sorted(transforms):
        node = found[name]
        made = constructor(node) if isinstance(node, ast.ClassDef) else None
        call = signature(made, name, True) if made else f"{name}()"
        text = re.sub(r"\s+", " ", markdown(ast.get_docstring(node)))
        rows.append(f"| `{call}` | {cell(text)} |")
    out.append("\n".join(rows))
    out.append("## Modules\n\nNone of them is imported by `import stoker`.")
    for module, names in MODULES.items():
        there = definitions(ROOT / "python" / (module.replace(".", "/") + ".py"))
        out += [described(f"{module}.{name}", there[name]) for name in names]
    return "\n\n".join(out) + "\n"


def main() -> None:
    binary = Path(os.environ.get("STOKER_BIN", ROOT / "build/release/stoker"))
    for page, text in ((CLI_PAGE, cli_page(binary)), (PYTHON_PAGE, python_page())):
        page.write_text(text)
        print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
