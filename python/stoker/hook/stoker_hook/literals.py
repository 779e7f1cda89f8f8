"""Where the arguments of a DataLoader stand in the source as literals: for the diff that `stoker tune` prints."""

import ast

from .settings import ARGUMENTS


def of_call(file, line):
    """Argument -> [line, column, end], columns in bytes, of the call of a DataLoader that holds this line. A name that the
    module assigns a literal once stands for that literal."""
    try:
        with open(file, "rb") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return {}
    calls = [node for node in ast.walk(tree)
             if isinstance(node, ast.Call) and node.lineno <= line <= node.end_lineno and any(word.arg in ARGUMENTS for word in node.keywords)]
    if not calls:
        return {}
    call = min(calls, key=lambda node: (not _name(node.func).endswith("DataLoader"), node.end_lineno - node.lineno))
    constants = _constants(tree)
    found = {}
    for word in call.keywords:
        value = word.value
        if isinstance(value, ast.Name):
            value = constants.get(value.id)
        if word.arg in ARGUMENTS and isinstance(value, ast.Constant) and value.lineno == value.end_lineno:
            found[word.arg] = [value.lineno, value.col_offset, value.end_col_offset]
    return found


def _name(function):
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _constants(tree):
    """Names that the module assigns exactly once, at its top, and a literal."""
    stored = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return {node.targets[0].id: node.value for node in tree.body
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
            and stored.count(node.targets[0].id) == 1}
