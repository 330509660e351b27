"""The source of fused kernels in three languages, as a page with tabs."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from toytorch.jit.fuser.kernels import compiled as kernel_of
from toytorch.jit.fuser.kernels import group_of
from toytorch.jit.ir import Graph
from toytorch.viz.backward.steps_page import page
from toytorch.viz.compiler.read import name_of, plan_of
from toytorch.viz.draw import palette
from toytorch.viz.draw.picture import save

LANGUAGES = (("program", "Program"), ("python", "Python"), ("llvm", "LLVM"), ("cuda", "CUDA"))


class KernelSources:
    """The kernels of a function. `sources[0]["python"]` is the first one's text in Python."""

    def __init__(self, titles: list[str], sources: list[dict[str, str]]) -> None:
        self.titles, self.sources = titles, sources

    def __len__(self) -> int:
        return len(self.sources)

    def __repr__(self) -> str:
        return f"<{len(self)} kernel{'s' * (len(self) != 1)}: {'; '.join(self.titles)}>"

    @property
    def html(self) -> str:
        """The kernels below each other, each with a tab for every language; needs no script."""
        name = "tt" + hashlib.sha256(repr(self.sources).encode()).hexdigest()[:10]
        parts = [
            kernel_html(name, i, title, texts)
            for i, (title, texts) in enumerate(zip(self.titles, self.sources))
        ]
        return STYLE.replace("NAME", name) + f'<div class="{name}">{"".join(parts)}</div>\n'

    def _repr_html_(self) -> str:
        return self.html

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page (.html) and gives back its path."""
        return save(path, {".html": lambda: page("kernels", self.html).encode()})


def kernel_sources(f: object, *inputs: object) -> KernelSources:
    """The kernels that `f` runs on for inputs like these: as a program, in Python, LLVM and CUDA.

    Where llvmlite is not installed there is no LLVM. Raises RuntimeError for a function that runs
    node by node, or that nothing is fused in.

    >>> kernel_sources(lambda x: (x * 2).tanh(), torch.ones(1000))
    <1 kernel: forward: mul, tanh>
    """
    plan = plan_of(f, inputs)
    graphs = [("forward", plan.optimised)]
    if plan.joint.tangents:
        graphs.append(("backward", plan.backward_graph))
    titles, sources = [], []
    for where, graph in graphs:
        for node in graph.nodes:
            inner = node.attributes.get("Subgraph")
            if not isinstance(inner, Graph):
                continue
            ops = [name_of(n) for n in inner.nodes if not n.is_constant]
            lowered = group_of(node)
            titles.append(f"{where}: {', '.join(ops)}")
            sources.append({"program": str(lowered.program), **kernel_of(lowered).sources})
    if not titles:
        raise RuntimeError("nothing is fused in this function")
    return KernelSources(titles, sources)


def kernel_html(name: str, number: int, title: str, texts: dict[str, str]) -> str:
    """One kernel: its title, tabs, and the texts of which one is seen."""
    shown = [(key, label) for key, label in LANGUAGES if key in texts]
    radios, labels, bodies = "", "", ""
    for i, (key, label) in enumerate(shown):
        ident = f"{name}-{number}-{key}"
        checked = " checked" if key == "python" else ""
        radios += f'<input type="radio" name="{name}-{number}" id="{ident}" class="r{i}"{checked}>'
        labels += f'<label for="{ident}" class="l{i}">{label}</label>'
        bodies += f'<pre class="b{i}">{escaped(texts[key])}</pre>'
    return f"<section><h3>{escaped(title)}</h3>{radios}<nav>{labels}</nav>{bodies}</section>"


def escaped(text: str) -> str:
    """Text that is safe between tags; its lines stay lines."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


STYLE = (
    f"""<style>
.NAME section{{background:{palette.PAPER};color:{palette.INK};border:1px solid {palette.FRAME};
border-radius:10px;padding:12px 14px;margin:10px 0;font:14px/1.4 Helvetica,Arial,sans-serif}}
.NAME h3{{margin:2px 0 10px;font-size:14px}}
.NAME input{{position:absolute;opacity:0}}
.NAME label{{display:inline-block;padding:4px 12px;border:1px solid {palette.BOX_LINE};
border-radius:6px 6px 0 0;margin-right:4px;cursor:pointer;background:{palette.REST}}}
.NAME pre{{display:none;margin:0;padding:10px;overflow:auto;max-height:460px;
background:{palette.BOX};border:1px solid {palette.BOX_LINE};border-radius:0 6px 6px 6px;
font:12.5px/1.45 DejaVu Sans Mono,Menlo,monospace}}
"""
    + "".join(
        f".NAME .r{i}:checked~.b{i}{{display:block}}\n"
        f".NAME .r{i}:checked~nav .l{i}{{background:{palette.BLUE.tint};"
        f"border-color:{palette.BLUE.line};font-weight:bold}}\n"
        f".NAME .r{i}:focus-visible~nav .l{i}{{outline:2px solid {palette.BLUE.line}}}\n"
        for i in range(len(LANGUAGES))
    )
    + "</style>\n"
)
