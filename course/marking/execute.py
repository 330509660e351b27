"""Running the statements of an answer, one by one."""

from __future__ import annotations
import __future__ as features

import ast
from collections.abc import Iterable
from typing import Any

# what has to succeed: without these, messages about missing names would say less
_VITAL = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


def run(statements: Iterable[tuple[str, ast.stmt]], space: dict[str, Any]) -> None:
    """Execute statements, each with the name of its file, in a namespace.

    What cannot be computed here may not be needed: then a name is missing, or a table shorter,
    and the checks say so. Definitions and imports raise what they raise.
    """
    flags = 0
    for label, node in statements:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            known = (getattr(features, alias.name, None) for alias in node.names)
            flags |= sum(feature.compiler_flag for feature in known if feature)
        try:
            code = compile(ast.Module([node], []), label, "exec", flags, dont_inherit=True)
            exec(code, space)
        except Exception:
            if isinstance(node, _VITAL):
                raise
