"""Literals in the job's source that `stoker tune --set builder.py:cpu_max_workers=4,8` tries: replaced as a file is compiled, in
this process only. The file on disk, and the bytecode that Python keeps of it, stay as they are.

STOKER_SOURCE is JSON: [{"file": "builder.py", "name": "cpu_max_workers", "value": 8}]. A name is what an assignment, a field of a
dataclass, a default of a parameter, or a keyword of a call is written with.
"""

import ast
import importlib.machinery
import json
import os
import sys


def install(text):
    knobs = json.loads(text)
    loader = importlib.machinery.SourceFileLoader
    original = loader.get_code

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        wanted = _of_file(knobs, path)
        if not wanted:
            return original(self, fullname)
        return compiled(self.get_data(path), path, wanted)

    loader.get_code = get_code
    sys.path_hooks.insert(0, _program_of(knobs))


def compiled(source, path, wanted, is_program=False):
    """The code of a file with the values that are wanted. What it changed is told to `stoker tune` through STOKER_SOURCE_DIR."""
    tree = ast.parse(source, path)
    change = Change(wanted)
    tree = change.visit(tree)
    if is_program:  # a program has no spec: multiprocessing finds it by its file then
        place = next((number for number, node in enumerate(tree.body) if not _comes_first(node)), len(tree.body))
        tree.body.insert(place, ast.parse("__spec__ = None").body[0])
    for name in change.done:
        _tell(path, name)
    return compile(tree, path, "exec", dont_inherit=True)


class Change(ast.NodeTransformer):
    """Replaces the literal that each name is written with, at every place."""

    def __init__(self, wanted):
        self._wanted = wanted
        self.done = []

    def visit_Assign(self, node):
        self.generic_visit(node)
        for target in node.targets:
            node.value = self._value(_name(target), node.value)
        return node

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        if node.value is not None:
            node.value = self._value(_name(node.target), node.value)
        return node

    def visit_keyword(self, node):
        self.generic_visit(node)
        node.value = self._value(node.arg, node.value)
        return node

    def visit_arguments(self, node):
        self.generic_visit(node)
        named = node.posonlyargs + node.args
        for number in range(len(node.defaults)):
            node.defaults[number] = self._value(named[len(named) - len(node.defaults) + number].arg, node.defaults[number])
        for number, argument in enumerate(node.kwonlyargs):
            if node.kw_defaults[number] is not None:
                node.kw_defaults[number] = self._value(argument.arg, node.kw_defaults[number])
        return node

    def _value(self, name, value):
        if name not in self._wanted or not is_literal(value):
            return value
        self.done.append(name)
        return ast.copy_location(ast.Constant(self._wanted[name]), value)


def _comes_first(node):
    """A docstring, or an import from __future__."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return is_text or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def is_literal(value):
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, (ast.USub, ast.UAdd)):
        value = value.operand
    return isinstance(value, ast.Constant)


def _name(target):
    return target.id if isinstance(target, ast.Name) else target.attr if isinstance(target, ast.Attribute) else None


def _of_file(knobs, path):
    path = os.path.realpath(path)
    return {knob["name"]: knob["value"] for knob in knobs if path == os.path.realpath(knob["file"])
            or (not os.path.isabs(knob["file"]) and path.endswith(os.sep + os.path.normpath(knob["file"])))}


def _tell(path, name):
    folder = os.environ.get("STOKER_SOURCE_DIR")
    if folder:
        try:
            with open(os.path.join(folder, "%d" % os.getpid()), "a") as file:
                file.write(json.dumps([os.path.realpath(path), name]) + "\n")
        except OSError:
            pass


def _program_of(knobs):
    """`python builder.py` compiles its program without any import. But Python first asks whether the path is a folder or archive with
    a program in it, and a path hook may say yes: it gets the program's own file, with the values that are wanted."""

    def hook(path):
        if not path.endswith(".py") or not os.path.isfile(path) or not _of_file(knobs, path):
            raise ImportError
        return _Program(path, _of_file(knobs, path))

    return hook


class _Program:
    def __init__(self, path, wanted):
        self._path = path
        self._wanted = wanted

    def find_spec(self, name, target=None):
        if name != "__main__":
            return None
        # As for any program: imports look beside it.
        folder = os.path.dirname(os.path.realpath(self._path))
        sys.path[:] = [folder if entry == self._path else entry for entry in sys.path]
        return importlib.machinery.ModuleSpec(name, self, origin=self._path)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(self.get_code("__main__"), module.__dict__)

    def is_package(self, name):
        return False

    def get_filename(self, name=None):
        return self._path

    def get_code(self, name):
        with open(self._path, "rb") as file:
            return compiled(file.read(), self._path, self._wanted, is_program=True)
