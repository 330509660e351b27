"""A reference page for every op, written from its record.

    python -m toytorch.ops.reference FOLDER      # one Markdown page per op, and an index

`page(op)` is the text of one: what it computes, its signature, shapes, types, derivative, the
expression the fuser uses, and an example that was run.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
import textwrap
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from toytorch.core.op import Op, registry
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Fn
from toytorch.facts.schema import REQUIRED
from toytorch.facts.syntax import parse as parse_python
from toytorch.ops.creation.from_data import tensor
from toytorch.ops.define import PUBLIC, underived

SHAPES = {
    "pointwise": "Operands broadcast against each other; the result has their common shape.",
    "reduction": "The dimensions in `dim` are taken together (all of them without it); with "
    "`keepdim` they stay as 1.",
    "view": "The result shows the memory of the first argument in another layout.",
    "general": "See the signature.",
    "layout": "See the signature.",
}
TYPES = {
    "default": "Operands meet in their common type (a tensor with dimensions counts before one "
    "without, and that before a Python number).",
    "float": "As by default; integers and masks become the default floating-point type.",
    "count": "As by default; masks become int64.",
    "tensors": "As by default, but that numbers do not count.",
    "none": "The kernel sees every argument in its own type.",
}
# What an example tries, for each kind of argument, until the op accepts it.
TENSORS = (
    "[0.5, 1.0, 2.0]", "[[2.0, 1.0], [1.0, 3.0]]", "[[[1.0, 2.0], [3.0, 4.0]]]",
    "[[[[1.0, 2.0], [3.0, 4.0]]]]", "[1, 0, 1]", "[True, False, True]", "1.0", "[[0, 1]]",
    "[[[[[1.0, 2.0], [3.0, 4.0]]]]]", "[1 + 2j, 3 - 1j]", "[]", "2",
)  # fmt: skip
VALUES = {
    "int": (0, 1, 2),
    "int[]": ([0], [1], [1, 1], [2, 2], [0, 0], [1, 1, 1]),
    "int...": ((2, -1), (1, 0), (2,), (3,), (0,)),
    "float": (0.5, 1.0, 0.0),
    "bool": (False,),
    "str": ("mean", "sum", "none"),
    "Scalar": (1, 0.5),
    "int?": (None,),
    "float?": (None,),
    "int[]?": (None, [0]),
    "Operand": (2,),
    "Indices": (None,),
}


def page(op: Op) -> str:
    """The reference page of an op, in Markdown.

    >>> print(page(registry["neg"]).splitlines()[0])
    # neg
    """
    lines = [f"# {op.name}", "", op.doc, "", "```", str(op.schema), "```", ""]
    if op.kind == "pointwise":
        types = TYPES[op.promotion]
    else:
        types = "The type of the first tensor, unless the description says otherwise."
    shapes = SHAPES.get(op.kind, SHAPES["general"])
    lines += [f"**Shapes.** {shapes}", "", f"**Types.** {types}", ""]
    if op.formula:
        lines += [
            "**Formula**, from which its kernels follow:",
            "",
            "```",
            str(op.formula),
            "```",
            "",
        ]
    lines += [*derivative_lines(op), ""]
    shown = example(op)
    if shown:
        lines += ["**Example**", "", "```pycon", shown, "```", ""]
    forms = [f"`torch.{op.name}`"] if op.has_function and "." not in op.name else []
    forms += [f"`Tensor.{op.name}`"] if op.has_method and "." not in op.name else []
    forms += [f"`Tensor.{op.name}_`"] if op.has_inplace else []
    forms += ["`out=`"] if op.has_out and forms else []
    if forms:
        lines += [f"**Forms.** {', '.join(forms)}", ""]
    return "\n".join(lines).rstrip() + "\n"


def derivative_lines(op: Op) -> list[str]:
    """What is known of the op's derivative, with g the gradient of the result."""
    if not op.derivatives:
        return ["**Derivative.** None: gradients stop here."]
    lines = [
        f"**Derivative** (node `{op.node_name}`; `g` is the gradient of the result):",
        "",
        "```",
    ]
    lines += [f"d {name} = {formula_of(op, name)}" for name in op.derivatives]
    saved = [k for k, plan in zip(op.keeps, op.plan) if plan[0] in ("argument", "result")]
    return [
        *lines,
        "```",
        *(["", f"Saved for it: {', '.join(f'`{s}`' for s in saved)}."] if saved else []),
    ]


def formula_of(op: Op, name: str) -> str:
    """A derivative as text: its formula, the body of its lambda, or the name of its function."""
    if name in op.formulas:
        return str(op.formulas[name])
    rule = op.derivatives[name]
    if isinstance(rule, underived):
        return "not implemented"
    found = lambdas(inspect.getsourcefile(rule) or "").get(
        (rule.__code__.co_firstlineno, rule.__code__.co_varnames[: rule.__code__.co_argcount])
    )
    if found is not None:
        return found
    arguments = ", ".join(inspect.signature(rule).parameters)
    return f"{getattr(rule, '__name__', 'rule').lstrip('_')}({arguments})"


@cache
def lambdas(path: str) -> dict[Any, str]:
    """The bodies of all lambdas of a file, by line and parameters."""
    if not path or not Path(path).is_file():
        return {}
    tree = parse_python(Path(path).read_text(encoding="utf-8"))
    return {
        (node.lineno, tuple(a.arg for a in node.args.args)): ast.unparse(node.body)
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda)
    }


# -- examples -------------------------------------------------------------------------------------


@cache
def example(op: Op) -> str:
    """A call that the op accepts, with what it gave; "" where none was found."""
    if op.function is None or "." in op.name:
        return ""
    required = [a for a in op.schema.args if a.default is REQUIRED]
    choices: list[Any] = []
    for a in required:
        if a.is_tensor_list:
            choices.append([f"[torch.tensor({t}), torch.tensor({t})]" for t in TENSORS[:4]])
        elif a.is_tensor:
            choices.append([f"torch.tensor({t})" for t in TENSORS])
        elif a.type in VALUES:
            choices.append([repr(v) for v in VALUES[a.type]])
        else:
            return ""
    name = op.name.replace("linalg_", "linalg.").replace("special_", "special.")
    for tried in itertools.islice(itertools.product(*choices), 400):
        result = attempt(op, tried)
        if result is not None:
            public = (op.has_function and op.name[0] != "_") or op.name in PUBLIC
            place = name if public else f"ops.registry[{op.name!r}]"
            return f">>> torch.{place}({', '.join(tried)})\n{result}"
    return ""


def attempt(op: Op, arguments: tuple[str, ...]) -> str | None:
    """What the op makes of arguments given as text, None where it refuses them."""

    class Torch:  # the one name that the texts use
        tensor = staticmethod(tensor)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = [eval(text, {"torch": Torch}) for text in arguments]  # our own texts
            spread = op.schema.args[len(values) - 1].is_variadic if values else False
            function = PUBLIC.get(op.name, op.function)
            made = function(*values[:-1], *values[-1]) if spread else function(*values)
    except Exception:  # whatever it is, these arguments are no example
        return None
    shown = [
        t for t in (made if isinstance(made, (tuple, list)) else [made]) if isinstance(t, Tensor)
    ]
    if (
        not shown
        or not any(t.numel() for t in shown)
        or any(t.dtype.rank > 1 and bool(t.isnan().any()) for t in shown)
    ):
        return None
    return repr(made)


def composed_page(name: str, function: Fn | type) -> str:
    """The page of a function composed of records, from its docstring."""
    text = inspect.getdoc(function) or ""
    described, *examples = text.split("\n\n>>> ")
    lines = [f"# {name}", "", *described.splitlines()]
    try:
        signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))
        lines += ["", "```", name.rpartition(".")[2] + signature, "```"]
    except ValueError:  # made by a factory that hides its signature
        lines += [""]
    lines += ["", "Composed of other ops, from which its derivative follows."]
    if examples:
        lines += ["", "**Example**", "", "```pycon", ">>> " + "\n\n>>> ".join(examples), "```"]
    return "\n".join(lines).rstrip() + "\n"


# -- pages ----------------------------------------------------------------------------------------


def write(folder: str | Path) -> int:
    """Writes the pages of all public ops and an index; returns how many ops there are."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    pages = {n: page(op) for n, op in registry.items() if not n.startswith("_")}
    pages |= {n: composed_page(n, f) for n, f in PUBLIC.items() if n not in pages}
    for name, text in pages.items():
        target = folder / f"{name}.md"
        temporary = target.with_suffix(".tmp")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(target)
    names = sorted(pages, key=lambda name: (name.startswith("_"), name))  # private ones last
    rows = [f"| [`{n}`]({n}.md) | {pages[n].splitlines()[2]} |" for n in names]
    index = [
        "# Reference",
        "",
        f"{len(names)} ops; each page is made from the op's record.",
        "",
        "| op | what it is |",
        "| --- | --- |",
        *rows,
    ]
    (folder / "README.md").write_text("\n".join(index) + "\n", encoding="utf-8")
    return len(names)


def main(arguments: list[str]) -> None:
    """The command line."""
    if len(arguments) != 1:
        sys.exit(
            textwrap.dedent("""\
            usage: python -m toytorch.ops.reference FOLDER
            writes a Markdown page for every op, and README.md with the list""")
        )
    print(f"{write(arguments[0])} pages in {arguments[0]}")


if __name__ == "__main__":
    main(sys.argv[1:])
