"""Draws a program: statements that PyTorch accepts, and now and then one that it refuses."""

from __future__ import annotations

import re
import warnings
from random import Random
from typing import Any

from tests.oracle import torch
from tests.outside import statements as st
from tests.outside.arguments import Scope, tensors
from tests.outside.running import Program, execute, namespace

LARGEST = 600  # elements of a result that programs go on with


class Writer:
    """Writes statements one after the other, and runs each on PyTorch, so that the next one knows
    what there is."""

    def __init__(self, rng: Random, scope: Scope | None = None, prefix: str = "v") -> None:
        self.rng, self.prefix, self.count = rng, prefix, 0
        self.space = namespace(torch)
        self.own: list[str] = []  # variables in the order they were bound
        self.lines: list[str] = []
        self.kept = 0.07  # the part of refused statements that stay
        for name, value in (scope or {}).items():
            self.space[name] = value
            self.own.append(name)

    @property
    def scope(self) -> Scope:
        return {n: self.space[n] for n in self.own if usable(self.space[n])}

    def name(self) -> str:
        self.count += 1
        return f"{self.prefix}{self.count}"

    def attempt(self, text: str) -> bool:
        """Runs a statement and keeps it; a refused one is kept seldom."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            failed = execute(text, self.space)
        if failed is not None and self.rng.random() < 1 - self.kept:
            return False
        self.lines.append(text)
        return True

    def bind(self, expression: str) -> bool:
        name = self.name()
        if not self.attempt(f"{name} = {expression}"):
            return False
        if name in self.space:
            self.own.append(name)
            value = self.space[name]
            if isinstance(value, (tuple, list)) and value and isinstance(value[-1], torch.Tensor):
                part = self.name()
                self.attempt(f"{part} = {name}[{self.rng.choice((0, -1))}]")
                self.own += [part] * (part in self.space)
        return True

    def expression(self, kinds: Any = st.EXPRESSIONS) -> None:
        for _ in range(6):
            if self.bind(st.weighted(self.rng, kinds)(self.rng, self.scope)):
                return

    def write(self) -> None:
        for _ in range(4):
            if self.attempt(st.in_place(self.rng, self.scope)):
                return

    def derive(self) -> None:
        for _ in range(3):
            text, name = st.derivative(self.rng, self.scope), self.name()
            if self.attempt(text.replace("$", name)):
                self.own += [name] * (name in self.space)
                return

    def function(self, kinds: Any = st.PURE) -> None:
        """A function of a few tensors, compiled or traced, and calls of it."""
        rng, scope = self.rng, self.scope
        n = rng.randint(1, 3)
        examples = [rng.choice(tensors(scope)) for _ in range(n)]
        if n > 1 and rng.random() < 0.35:  # identical, or views of each other
            examples[1] = rng.choice((examples[0], f"{examples[0]}.t()", f"{examples[0]}[...]"))
        if rng.random() < 0.5:
            examples = [self.anew(e, scope) for e in examples]
        bound = []
        for e in examples:
            if e in scope:
                bound.append(e)
                continue
            name = self.name()
            if not self.attempt(f"{name} = {e}") or name not in self.space:
                return
            self.own.append(name)
            bound.append(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                inner = {f"x{i}": self.space[b].clone() for i, b in enumerate(bound)}
            except Exception:
                return
        inside = Writer(rng, inner, prefix="y")
        for _ in range(rng.randint(1, 5)):
            if rng.random() < 0.12:
                inside.write()
            else:
                inside.expression(kinds)
        results = [n for n in tensors(inside.scope) if n[0] == "y"] or tensors(inside.scope)
        out = results[-1] if rng.random() < 0.7 else f"{results[0]}, {results[-1]}"
        name = f"f{self.name()[1:]}"
        body = "".join(f"    {line}\n" for line in inside.lines)
        head = f"def {name}({', '.join(inner)}):\n{body}    return {out}"
        if not self.attempt(head):
            return
        if rng.random() < 0.55:
            self.lines.append(f"{name} = compiled({name})")
        else:
            writes = re.search(r"_\(|out=|x\d.*\] .?=|^    \w+ [-+*/%@]+= ", body, re.M)
            given = f"apart({', '.join(bound)})" if writes else f"({', '.join(bound)},)"
            self.lines.append(f"{name} = traced({name}, {given})")
        execute(self.lines[-1], self.space)
        calls = [bound]
        for _ in range(rng.randint(1, 3)):
            calls.append([rng.choice(tensors(self.scope)) for _ in bound])
        if len(bound) > 1:
            calls.append([bound[0]] * len(bound))
        for names in calls[: rng.randint(2, 5)]:
            self.bind(f"{name}({', '.join(names)})")
        if rng.random() < 0.6:
            self.derive()

    def anew(self, name: str, scope: Scope) -> str:
        """A leaf with the elements of a variable, if gradients may be asked for."""
        x = scope.get(name)
        if x is None or not (x.is_floating_point() or x.is_complex()):
            return name
        return f"{name}.detach().clone()" + ".requires_grad_()" * (self.rng.random() < 0.5)

    def rule(self) -> None:
        """A few steps of an optimizer on the leaves."""
        rng, scope = self.rng, self.scope
        params = [n for n in tensors(scope) if scope[n].is_leaf and scope[n].requires_grad]
        if not params:
            return
        made = rng.choice((
            "SGD({}, lr=0.1)", "SGD({}, lr=0.1, momentum=0.9, nesterov=True)", "Adam({}, lr=0.1)",
            "AdamW({}, lr=0.1, weight_decay=0.1)", "RMSprop({}, lr=0.01)", "Adagrad({}, lr=0.1)",
            "Adam({}, amsgrad=True)", "SGD({}, lr=0.1, weight_decay=0.1)", "Adadelta({})", "NAdam({})",
            "Adamax({})", "RAdam({})", "Rprop({})", "ASGD({})",
        ))  # fmt: skip
        opt = self.name()
        one = rng.choice(params)
        if self.attempt(f"{opt} = torch.optim.{made.format(f'[{one}]')}"):
            for _ in range(rng.randint(1, 2)):
                self.attempt(f"({one} * {one}).abs().sum().backward()")
                self.attempt(f"{opt}.step()")
                if rng.random() < 0.5:
                    self.attempt(f"{opt}.zero_grad()")


def usable(value: Any) -> bool:
    return not isinstance(value, torch.Tensor) or (
        value.numel() <= LARGEST and value.layout is torch.strided and not value.is_quantized
    )


def draw(seed: int) -> Program:
    """The program of a seed."""
    rng = Random(seed)
    torch.manual_seed(0)
    writer = Writer(rng)
    while len(tensors(writer.scope)) < rng.choice((2, 3)):
        writer.bind(st.leaf(rng, writer.scope))
    kinds = (
        [writer.expression] * 12 + [writer.write] * 3 + [writer.derive] * 4 + [writer.function]
        + [writer.rule] * (rng.random() < 0.3)
    )  # fmt: skip
    for _ in range(rng.randint(4, 12)):
        try:
            rng.choice(kinds)()
        except RuntimeError:  # what may not even be asked of some views
            continue
    return Program(seed, tuple(writer.lines))
