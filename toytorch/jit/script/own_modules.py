"""Modules of classes that derive from ScriptModule themselves: marked methods, and text."""

from __future__ import annotations

import inspect
from typing import Any

from toytorch.jit import types
from toytorch.jit.ir import Value
from toytorch.jit.module import InModule, ScriptMethod, ScriptModule
from toytorch.jit.script.base import Compiled, Session
from toytorch.jit.script.compiler import Compiler, compile_methods
from toytorch.jit.script.constants import check_constants, fix_constants
from toytorch.jit.script.public import CompiledFunction, take_attributes
from toytorch.jit.script.reading import Program
from toytorch.jit.script.texts import text_programs
from toytorch.jit.script.values import ModuleValue
from toytorch.nn import Module


def compile_marked(module: ScriptModule) -> None:
    """Compiles the methods of a new module that are marked, exported, or were given as text."""
    kind = type(module)
    names = [n for n in dir(kind) if marked(inspect.getattr_static(kind, n))]
    for child in module.modules():
        check_constants(child)
    take_attributes(module)
    session = Session()
    for name, c in compile_methods(module, names, session).items():
        install(module, name, c)
    for name, program in module._defined.items():
        made = session.methods.get((id(module), name))
        install(module, name, made or method_from_text(module, name, program, session))
    for key, c in session.methods.items():
        if key[0] == id(module) and len(key) == 2 and key[1] not in module._methods:
            install(module, key[1], c)
    fix_constants(module, module)


def marked(member: object) -> bool:
    """Whether `script_method` marked it."""
    return isinstance(member, ScriptMethod) and not isinstance(member, InModule)


def install(module: ScriptModule, name: str, compiled: Compiled) -> None:
    """Makes a compiled method one of a module's."""
    made = CompiledFunction(compiled, module)
    made.executor.owner = module
    module._methods[name] = made


def define(module: ScriptModule, src: str) -> None:
    """Adds methods from source; in the midst of `__init__` they wait for the module to be whole."""
    original = module.__dict__.get("_original")
    programs = {p.tree.name: p for p in text_programs(src)}
    if original is None:
        module._defined.update(programs)
        return
    for name, program in programs.items():
        session = Session()
        if hasattr(type(original), name):
            compiled = compile_methods(original, [name], session, {name: program})[name]
        else:
            compiled = method_from_text(original, name, program, session)
        install(module, name, compiled)


def method_from_text(module: Module, name: str, program: Program, session: Session) -> Compiled:
    """The graph of a method that the module's class does not have."""
    placeholder = Value("self", types.Class(type(module).__name__))
    key: Any = (id(module), name)
    session.methods[key] = made = Compiler(
        program, session, name, ModuleValue(module, placeholder)
    ).compile()
    return made
