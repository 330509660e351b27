"""Modules whose methods run as graphs."""

from __future__ import annotations

import copy
import io
import os
from collections.abc import Iterator
from typing import IO, Any

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Fn
from toytorch.jit import switch
from toytorch.jit.function import ScriptFunction
from toytorch.jit.ir import Graph
from toytorch.jit.script.markers import Attribute
from toytorch.nn import Module


class Inside:
    """What PyTorch's `module._c` is: the compiled module, asked for its parts by name."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def __str__(self) -> str:
        name = getattr(self.module, "original_name", type(self.module).__name__)
        return f"ScriptObject <__torch__.{name}>"

    def hasattr(self, name: str) -> bool:
        """Whether the module has a tensor, a child or an attribute of this name."""
        return self._has_method(name) or name in fields(self.module)

    def getattr(self, name: str) -> Any:
        """What the module has under this name."""
        return inside(getattr(self.module, name))

    def setattr(self, name: str, value: object) -> None:
        """Sets an attribute of the module."""
        setattr(self.module, name, value)

    def _has_method(self, name: str) -> bool:
        return name in self._method_names()

    def _method_names(self) -> list[str]:
        return list(self.module.__dict__.get("_methods", ()))

    def __getattr__(self, name: str) -> Any:
        if self._has_method(name):
            return self.module.__dict__["_methods"][name]
        own = name in fields(self.module) or not hasattr(Module, name) or name in vars(ScriptModule)
        found = getattr(self.module, name, NOTHING) if own else NOTHING
        if found is NOTHING:
            kind = getattr(self.module, "original_name", type(self.module).__name__)
            raise AttributeError(
                f"{kind} (of Python compilation unit at: 0) does not have a field with name '{name}'"
            )
        return inside(found)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.module(*args, **kwargs)


NOTHING = object()


def fields(module: Module) -> set[str]:
    """The tensors, children and attributes of a module, by name."""
    original = (
        module if isinstance(module, TracedModule) else module.__dict__.get("_original", module)
    )
    names = {*module._parameters, *module._buffers, *module._modules}
    names.update(n for n in (*vars(original), *vars(module)) if not n.startswith("_"))
    if original.__dict__.get("_frozen"):
        names.discard("training")
    return names


def inside(value: object) -> Any:
    """What `_c` gives for an attribute: children as what stands inside of them."""
    if isinstance(value, ScriptModule):
        return value._c
    return Inside(value) if isinstance(value, Module) else value


class ScriptMethod:
    """A method of a class of one's own that is compiled with each of its modules.

    On a module it is the compiled method, on the class the Python function.
    """

    def __init__(self, function: Fn) -> None:
        self.function = function

    def __get__(self, module: ScriptModule | None, kind: type) -> Any:
        if module is None:
            return self.function
        return module.__dict__["_methods"].get(self.function.__name__) or self.function.__get__(
            module, kind
        )


class InModule(ScriptMethod):
    """`forward` of a compiled module: the compiled method, with its graph, where there is one."""


def script_method(fn: Fn) -> Any:
    """Marks a method of a ScriptModule of one's own as compiled, like `torch.jit.script_method`.

    >>> class Scale(torch.jit.ScriptModule):
    ...     def __init__(self, factor):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.tensor(factor))
    ...     @torch.jit.script_method
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale(2.0)(torch.ones(2))
    tensor([2., 2.], grad_fn=<DifferentiableGraphBackward>)
    """
    return ScriptMethod(fn) if switch.enabled else fn


class Scripting(type):
    """The class of ScriptModule: the marked methods of a new module are compiled once it is whole."""

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        made = super().__call__(*args, **kwargs)
        if "_modules" not in made.__dict__:
            raise RuntimeError(f"super().__init__() was not called in {cls.__name__}.__init__()")
        if "_original" not in made.__dict__ and "_methods" in made.__dict__:
            from toytorch.jit.script.own_modules import compile_marked  # a circle otherwise

            compile_marked(made)
        return made


class ScriptModule(Module, metaclass=Scripting):
    """A module with compiled methods, like `torch.jit.ScriptModule`.

    What `script` and `trace` make shares parameters, buffers and children with the module it was
    made of; attributes that are no tensors are read there too. A class of one's own has methods
    marked with `script_method`.
    """

    def __init__(
        self, original: Module | None = None, methods: dict[str, ScriptFunction] | None = None
    ) -> None:
        super().__init__()
        methods = {} if methods is None else methods
        if original is None:
            object.__setattr__(self, "_methods", methods)
            object.__setattr__(self, "_defined", {})
            return
        object.__setattr__(self, "_original", original)
        object.__setattr__(self, "_methods", methods)
        self.__dict__.update(
            _parameters=original._parameters,
            _buffers=original._buffers,
            _modules=original._modules,
            training=original.training,
            _non_persistent_buffers_set=getattr(original, "_non_persistent_buffers_set", set()),
        )
        for function in methods.values():
            function.owner = function.executor.owner = self

    def __getattr__(self, name: str) -> Any:
        methods = self.__dict__.get("_methods", {})
        if name in methods:
            return methods[name]
        try:
            return super().__getattr__(name)
        except AttributeError:
            if "_original" in self.__dict__:
                found = getattr(self._original, name)
                if getattr(found, "__self__", None) is self._original:  # a method Python runs
                    return found.__func__.__get__(self, type(self))
                return found
            raise

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Attribute):
            self.__dict__.setdefault("_jit_attributes", {})[name] = value
            value = value.value
        whole = self.__dict__.get("_methods") or "_original" in self.__dict__
        if name in self.__dict__.get("_constants", ()):
            raise RuntimeError(f"Can't set constant '{name}' which has value:{getattr(self, name)}")
        if whole and isinstance(value, Module) and not isinstance(value, ScriptModule):
            raise RuntimeError(
                f"Cannot re-assign modules in a ScriptModule with non-scripted module, tried to "
                f"replace existing module '{name}': {value}"
            )
        super().__setattr__(name, value)

    def __copy__(self) -> ScriptModule:
        made: ScriptModule = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.__dict__["_methods"] = {n: f.owned_by(made) for n, f in self._methods.items()}
        return made

    @property
    def _c(self) -> Inside:
        return self.__dict__.get("_inside") or Inside(self)

    @_c.setter
    def _c(self, inside: Inside) -> None:
        self.__dict__["_inside"] = inside

    @property
    def original_name(self) -> str:
        """The name of the class the module was written as."""
        return type(self.__dict__.get("_original", self)).__name__

    @property
    def graph(self) -> Graph:
        """The graph of `forward`."""
        return self._methods["forward"].graph  # a ScriptFunction

    @property
    def inlined_graph(self) -> Graph:
        """The graph of `forward` with all calls inlined."""
        return self._methods["forward"].inlined_graph

    @property
    def code(self) -> str:
        """`forward` as source."""
        return self._methods["forward"].code

    def graph_for(self, *args: object) -> Graph:
        """The graph as it is run for inputs like these."""
        return self._methods["forward"].graph_for(*args)

    @InModule
    def forward(self, *args: Tensor, **kwargs: object) -> Any:
        original = self.__dict__.get("_original")
        if original is None:
            return super().forward(*args)
        return original.forward(*args, **kwargs)

    def define(self, src: str) -> None:
        """Adds methods from source: `def double(self, x: Tensor) -> Tensor: …`."""
        from toytorch.jit.script.own_modules import define  # a circle otherwise

        define(self, src)

    def save(
        self, f: str | os.PathLike[str] | IO[bytes], _extra_files: dict[str, Any] | None = None
    ) -> None:
        """Writes the module to a path or a binary file, as `jit.save` does."""
        from toytorch.jit.archive import save  # a circle otherwise

        save(self, f, _extra_files)

    def save_to_buffer(self, _extra_files: dict[str, Any] | None = None) -> bytes:
        """The bytes that `save` writes."""
        file = io.BytesIO()
        self.save(file, _extra_files)
        return file.getvalue()

    def __deepcopy__(self, memo: dict[Any, Any]) -> ScriptModule:
        made: ScriptModule = type(self).__new__(type(self))
        memo[id(self)] = made
        for name, value in self.__dict__.items():
            if name != "_methods":
                made.__dict__[name] = copy.deepcopy(value, memo)
        made.__dict__["_methods"] = {n: f.owned_by(made) for n, f in self._methods.items()}
        return made

    def _get_method(self, name: str) -> ScriptFunction:
        """A compiled method by its name."""
        return self._methods[name]  # a ScriptFunction

    def train(self, mode: bool = True) -> Any:
        if "_original" not in self.__dict__:
            return super().train(mode)
        self._original.train(mode)
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}" if "_original" in self.__dict__ else ""

    def _get_name(self) -> str:
        return type(self).__name__


class RecursiveScriptModule(ScriptModule):
    """What `script` makes of a module.

    Containers stay containers: what `len`, `iter` and an index give is asked of the class that the
    module was written as.
    """

    def __len__(self) -> int:
        return int(special(self, "__len__")())

    def __iter__(self) -> Iterator[Any]:
        return iter(special(self, "__iter__")())

    def __getitem__(self, place: Any) -> Any:
        return special(self, "__getitem__")(place)

    def __contains__(self, item: object) -> bool:
        return bool(special(self, "__contains__")(item))

    def __bool__(self) -> bool:
        return True


def unsupported(name: str) -> Any:
    """A method of modules that a compiled one refuses, as PyTorch's do."""

    def fail(self: RecursiveScriptModule, *args: object, **kwargs: object) -> Any:
        raise RuntimeError(name + " is not supported on ScriptModules")

    return fail


UNSUPPORTED = """get_buffer get_parameter get_submodule set_submodule requires_grad_ to_empty
bfloat16 compile xpu ipu mtia register_backward_hook register_forward_hook register_forward_pre_hook
register_full_backward_hook register_full_backward_pre_hook register_state_dict_pre_hook
register_state_dict_post_hook register_load_state_dict_pre_hook register_load_state_dict_post_hook
"""
for _name in UNSUPPORTED.split():
    setattr(RecursiveScriptModule, _name, unsupported(_name))


def special(module: ScriptModule, name: str) -> Any:
    """A method with a special name, compiled or of the module's own class."""
    if name in module._methods:
        return module._methods[name]
    found = getattr(type(module.__dict__.get("_original")), name, None)
    if found is None:
        raise NotImplementedError  # neither the script nor its class has the method, as in PyTorch
    return found.__get__(module, type(module))


class TracedModule(ScriptModule):
    """A part of a traced module: it shares its tensors with the module it stands for, and nothing else."""

    def __init__(
        self, original: Module | None = None, methods: dict[str, ScriptFunction] | None = None
    ) -> None:
        super().__init__(original, methods)
        self.__dict__["_modules"] = {
            name: part if isinstance(part, ScriptModule) else TracedModule(part)
            for name, part in self._modules.items()
            if part is not None
        }

    train = Module.train  # the original stays in its mode

    @InModule
    def forward(self, *args: Tensor, **kwargs: object) -> Any:
        raise RuntimeError("Trace submodules cannot be called.")

    def __getattr__(self, name: str) -> Any:
        for table in ("_methods", "_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(table, {}).get(name)
            if found is not None:
                return found
        raise AttributeError(f"'RecursiveScriptModule' object has no attribute '{name}'")

    def _get_name(self) -> str:
        return self.original_name


class TopLevelTracedModule(TracedModule):
    """What `trace` makes of a module."""
