"""The base class of all networks: it finds parameters, buffers and children by attribute."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from toytorch.autograd.function import Function
from toytorch.autograd.modes import no_grad
from toytorch.core.dtype import dtype as dtype_class
from toytorch.core.node import Handle
from toytorch.core.tensor import Tensor, alias
from toytorch.nn.parameter import Parameter


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` could not match."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
                f"unexpected_keys={self.unexpected_keys})")


class Gate(Function):
    """Passes tensors on, and on the way back shows their gradients to a function."""

    @staticmethod
    def forward(ctx: Any, seen: Any, *tensors: Tensor) -> Any:
        ctx.seen = seen
        ctx.set_materialize_grads(False)
        return tuple(alias(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ctx.seen(grads))


class BackwardHooks:
    """Calls hook(module, grad_input, grad_output) for one pass through a module."""

    def __init__(self, module: Any, hooks: list[Any]) -> None:
        self.module, self.hooks, self.grad_output = module, hooks, ()
        self.gated = False

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, their tensors passed through a gate."""
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        if not any(args[i].requires_grad for i in places):
            self.size = len(args)
            return args
        self.gated, self.size, self.places = True, len(args), places
        passed = Gate.apply(self._on_inputs, *(args[i] for i in places))
        result = list(args)
        for i, t in zip(places, passed):
            result[i] = t
        return tuple(result)

    def outputs(self, result: Any) -> Any:
        """The results, their tensors passed through a gate."""
        many = isinstance(result, (tuple, list))
        values = list(result) if many else [result]
        places = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
        if not any(values[i].requires_grad for i in places):
            return result
        for i, t in zip(places, Gate.apply(self._on_outputs, *(values[i] for i in places))):
            values[i] = t
        return type(result)(values) if many else values[0]

    def _on_outputs(self, grads: Any) -> Any:
        self.grad_output = grads
        if not self.gated:
            for hook in self.hooks:
                hook(self.module, (None,) * self.size, grads)
        return grads

    def _on_inputs(self, grads: Any) -> Any:
        full = [None] * self.size
        for i, g in zip(self.places, grads):
            full[i] = g
        for hook in self.hooks:
            changed = hook(self.module, tuple(full), self.grad_output)
            if changed is not None:
                full = list(changed) if isinstance(changed, tuple) else [changed]
        return [full[i] for i in self.places]


class Module:
    """A network or a part of one, like `torch.nn.Module`.

    A subclass creates parameters and children as attributes and defines `forward`.

    >>> import toytorch.nn as nn
    >>> class Twice(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = nn.Linear(2, 2)
    ...     def forward(self, x):
    ...         return self.layer(self.layer(x))
    >>> Twice()
    Twice(
      (layer): Linear(in_features=2, out_features=2, bias=True)
    )
    """

    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]

    def __init__(self) -> None:
        put = object.__setattr__
        put(self, "training", True)
        for name in ("_parameters", "_buffers", "_modules"):
            put(self, name, {})
        put(self, "_non_persistent", set())
        for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks",
                     "_state_dict_hooks", "_load_pre_hooks"):
            put(self, name, {})

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the output; every subclass defines its own."""
        raise NotImplementedError(f"Module [{type(self).__name__}] is missing the required "
                                  "\"forward\" function")

    # -- attributes ---------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if "_parameters" not in own:
            if isinstance(value, (Parameter, Module)):
                kind = "parameters" if isinstance(value, Parameter) else "module"
                raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
            object.__setattr__(self, name, value)
            return
        if isinstance(value, Parameter):
            self._forget(name)
            self._parameters[name] = value
        elif isinstance(value, Module):
            self._forget(name)
            self._modules[name] = value
        elif name in self._parameters:
            if value is not None:
                raise TypeError(f"cannot assign '{type(value).__module__}.{type(value).__name__}' "
                                f"as parameter '{name}' (torch.nn.Parameter or None expected)")
            self._parameters[name] = None
        elif name in self._modules:
            if value is not None:
                raise TypeError(f"cannot assign '{type(value).__module__}.{type(value).__name__}' "
                                f"as child module '{name}' (torch.nn.Module or None expected)")
            self._modules[name] = None
        elif name in self._buffers:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"cannot assign '{type(value).__module__}.{type(value).__name__}' "
                                f"as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None "
                                "expected)")
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str) -> None:
        for table in (self.__dict__, self._parameters, self._buffers, self._modules):
            table.pop(name, None)
        self._non_persistent.discard(name)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_parameters" in own:
            for table in (own["_parameters"], own["_modules"], own["_buffers"]):
                if name in table:
                    return table[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    @staticmethod
    def _check_name(kind: str, name: Any, taken: bool) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f"{kind} name can't contain \".\"" + (
                f", got: {name}" if kind == "module" else ""))
        if not name:
            raise KeyError(f"{kind} name can't be empty string \"\"")
        if taken:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Any) -> None:
        """Adds a parameter, or None for one that is absent."""
        self._check_name("parameter", name, hasattr(self, name) and name not in self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(f"cannot assign '{type(param).__name__}' object to parameter '{name}' "
                            "(torch.nn.Parameter or None required)")
        if param is not None and param.grad_fn is not None:
            raise ValueError(f"Cannot assign non-leaf Tensor to parameter '{name}'. Model "
                             "parameters must be created explicitly.")
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Adds a tensor that is part of the state but not learned."""
        self._check_name("buffer", name, hasattr(self, name) and name not in self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' "
                            "(torch Tensor or None required)")
        self._buffers[name] = tensor
        (self._non_persistent.discard if persistent else self._non_persistent.add)(name)

    def register_module(self, name: str, module: Any) -> None:
        """Adds a child."""
        self.add_module(name, module)

    def add_module(self, name: str, module: Any) -> None:
        """Adds a child under a name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._check_name("module", name, hasattr(self, name) and name not in self._modules)
        self._modules[name] = module

    # -- calling ------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (self._forward_pre_hooks or self._forward_hooks or self._backward_hooks):
            return self.forward(*args, **kwargs)
        for hook, with_kwargs in list(self._forward_pre_hooks.values()):
            changed = hook(self, args, kwargs) if with_kwargs else hook(self, args)
            if changed is not None:
                if with_kwargs:
                    args, kwargs = changed
                else:
                    args = changed if isinstance(changed, tuple) else (changed,)
        watch = BackwardHooks(self, list(self._backward_hooks.values())) \
            if self._backward_hooks else None
        if watch:
            args = watch.inputs(args)
        result = self.forward(*args, **kwargs)
        for hook, with_kwargs in list(self._forward_hooks.values()):
            changed = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            result = result if changed is None else changed
        return watch.outputs(result) if watch else result

    def register_forward_hook(self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> Handle:
        """Calls hook(module, args, output) after forward; it may replace the output."""
        return Handle(self._forward_hooks, (hook, with_kwargs))

    def register_forward_pre_hook(self, hook: Any, *, prepend: bool = False,
                                  with_kwargs: bool = False) -> Handle:
        """Calls hook(module, args) before forward; it may replace the arguments."""
        return Handle(self._forward_pre_hooks, (hook, with_kwargs))

    def register_full_backward_hook(self, hook: Any, prepend: bool = False) -> Handle:
        """Calls hook(module, grad_input, grad_output) when backward passes the output's node."""
        return Handle(self._backward_hooks, hook)

    # -- walking the tree ---------------------------------------------------------------------

    def named_modules(self, memo: set[Any] | None = None, prefix: str = "",
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """(name, module) of this module and all below."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                yield from child.named_modules(memo, f"{prefix}.{name}" if prefix else name,
                                               remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all below."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) of the children."""
        seen: set[Any] = set()
        for name, child in self._modules.items():
            if child is not None and child not in seen:
                seen.add(child)
                yield name, child

    def children(self) -> Iterator[Module]:
        """The children."""
        for _, child in self.named_children():
            yield child

    def _named(self, table: str, prefix: str, recurse: bool, unique: bool) -> Iterator[Any]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=unique) if recurse else [
            (prefix, self)]
        for path, module in modules:
            for name, value in getattr(module, table).items():
                if value is None or (unique and id(value) in seen):
                    continue
                seen.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    def named_parameters(self, prefix: str = "", recurse: bool = True,
                         remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """(name, parameter) of all parameters."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters."""
        for _, p in self.named_parameters(recurse=recurse):
            yield p

    def named_buffers(self, prefix: str = "", recurse: bool = True,
                      remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """(name, buffer) of all buffers."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        for _, b in self.named_buffers(recurse=recurse):
            yield b

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path."""
        module: Module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        path, _, name = target.rpartition(".")
        found = getattr(self.get_submodule(path), name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    # -- changing everything at once ----------------------------------------------------------

    def apply(self, fn: Callable[[Module], Any]) -> Module:
        """Calls fn on every module below and on this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> Module:
        for module in self.modules():
            for table in (module._parameters, module._buffers):
                for name, value in table.items():
                    if value is None:
                        continue
                    with no_grad():
                        changed = fn(value)
                    if isinstance(value, Parameter):
                        value.data = changed
                        if value.grad is not None:
                            with no_grad():
                                value.grad.data = fn(value.grad)
                    else:
                        table[name] = changed
        return self

    def to(self, *args: Any, **kwargs: Any) -> Module:
        """Parameters and buffers with another floating type or on another device."""
        target = args[0] if args and isinstance(args[0], dtype_class) else kwargs.get("dtype")
        if target is not None and target.rank < 2:
            raise TypeError("nn.Module.to only accepts floating point or complex dtypes, but got "
                            f"desired dtype={target}")

        def convert(t: Any) -> Any:
            if t.dtype.rank >= 2 or target is None:
                return t.to(*args, **kwargs)
            rest = {k: v for k, v in kwargs.items() if k != "dtype"}
            return t.to(**rest) if rest else t
        return self._apply(convert)

    def _cast(self, name: str) -> Module:
        return self._apply(lambda t: getattr(t, name)() if t.dtype.is_floating_point else t)

    def float(self) -> Module:
        """Floating-point state as float32."""
        return self._cast("float")

    def double(self) -> Module:
        """Floating-point state as float64."""
        return self._cast("double")

    def half(self) -> Module:
        """Floating-point state as float16."""
        return self._cast("half")

    def bfloat16(self) -> Module:
        """Floating-point state as bfloat16."""
        return self._cast("bfloat16")

    def cpu(self) -> Module:
        """State in the CPU's memory."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Module:
        """State on a GPU."""
        return self._apply(lambda t: t.cuda(device))

    def type(self, dst_type: Any) -> Module:
        """State in another type."""
        return self._apply(lambda t: t.type(dst_type))

    def train(self, mode: bool = True) -> Module:
        """Switches dropout and the like on."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for module in self.modules():
            object.__setattr__(module, "training", mode)
        return self

    def eval(self) -> Module:
        """Switches dropout and the like off."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Says for all parameters whether gradients are wanted."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters, or sets them to 0."""
        for p in self.parameters():
            if p.grad is not None:
                if set_to_none:
                    p.grad = None
                else:
                    p.grad.detach_().zero_()

    # -- state --------------------------------------------------------------------------------

    def state_dict(self, *, destination: Any = None, prefix: str = "",
                   keep_vars: bool = False) -> OrderedDict[str, Tensor]:
        """All parameters and persistent buffers by name."""
        state = OrderedDict() if destination is None else destination
        for table in (self._parameters, self._buffers):
            for name, value in table.items():
                if value is not None and name not in self._non_persistent:
                    state[prefix + name] = value if keep_vars else value.detach()
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(destination=state, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        return state

    def load_state_dict(self, state_dict: Any, strict: bool = True,
                        assign: bool = False) -> IncompatibleKeys:
        """Copies values by name; with strict, every name must match."""
        if not hasattr(state_dict, "items"):
            raise TypeError("Expected state_dict to be dict-like, got "
                            f"{type(state_dict)}.")
        mine = self.state_dict(keep_vars=True)
        missing = [k for k in mine if k not in state_dict]
        unexpected = [k for k in state_dict if k not in mine]
        errors = []
        if strict and unexpected:
            errors.append("Unexpected key(s) in state_dict: " + ", ".join(
                f'"{k}"' for k in unexpected) + ". ")
        if strict and missing:
            errors.append("Missing key(s) in state_dict: " + ", ".join(
                f'"{k}"' for k in missing) + ". ")
        for name, value in mine.items():
            if name not in state_dict:
                continue
            given = state_dict[name]
            if not isinstance(given, Tensor):
                errors.append(f'While copying the parameter named "{name}", expected torch.Tensor '
                              f"or Tensor-like object from checkpoint but received {type(given)}")
            elif tuple(given.shape) != tuple(value.shape):
                errors.append(f"size mismatch for {name}: copying a param with shape {given.shape} "
                              "from checkpoint, the shape in current model is "
                              f"{value.shape}.")
            else:
                with no_grad():
                    value.copy_(given)
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                               + "\n\t".join(errors))
        return IncompatibleKeys(missing, unexpected)

    # -- printing -----------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What stands in the brackets after the name."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = [line for line in self.extra_repr().split("\n") if line]
        children = [f"({name}): " + repr(child).replace("\n", "\n  ")
                    for name, child in self._modules.items()]
        if not children and len(extra) <= 1:
            return f"{self._get_name()}({''.join(extra)})"
        return f"{self._get_name()}(\n  " + "\n  ".join(extra + children) + "\n)"
