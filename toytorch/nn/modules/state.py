"""The state of a module by name: saved into a dictionary, loaded from one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from toytorch.autograd.modes import no_grad
from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.facts.hints import Fn
from toytorch.facts.node import RemovableHandle
from toytorch.nn.modules.registration import Tree, replaceable
from toytorch.nn.parameter import Parameter, is_lazy

EXTRA = "_extra_state"


class _IncompatibleKeys(NamedTuple):
    """What `load_state_dict` could not match."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


class Stateful(Tree):
    """A tree whose parameters and persistent buffers can be saved and loaded.

    A subclass with a state of another kind defines `get_extra_state` and `set_extra_state`, or
    `_save_to_state_dict` and `_load_from_state_dict` for the names of its own.
    """

    _version = 1

    def __init__(self) -> None:
        super().__init__()
        for name in (
            "_state_dict_hooks",
            "_state_dict_pre_hooks",
            "_load_state_dict_pre_hooks",
            "_load_state_dict_post_hooks",
        ):
            object.__setattr__(self, name, {})

    def get_extra_state(self) -> Any:
        """What a subclass saves beside its tensors."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. Please "
            "file an issue at https://github.com/pytorch/pytorch/issues/new?"
            "template=bug-report.yml to report this bug."
        )

    def set_extra_state(self, state: Any) -> None:
        """Takes back what `get_extra_state` gave."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called."
        )

    def _has_extra(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(Stateful, method)

    def _own_state(self) -> dict[str, Any]:
        """This module's parameters and persistent buffers by name."""
        skipped = self._non_persistent_buffers_set
        own = {**self._parameters, **{k: v for k, v in self._buffers.items() if k not in skipped}}
        return {k: v for k, v in own.items() if v is not None}

    # -- saving -------------------------------------------------------------------------------

    @replaceable
    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """All parameters and persistent buffers by name.

        >>> from toytorch import nn
        >>> list(nn.Linear(2, 3).state_dict())
        ['weight', 'bias']
        """
        for name, value in zip(("destination", "prefix", "keep_vars"), args):
            destination = value if name == "destination" else destination
            prefix = value if name == "prefix" else prefix
            keep_vars = value if name == "keep_vars" else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()  # the version of every module's layout
        about = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = about
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook, public in list(self._state_dict_hooks.values()):
            changed = hook(self, destination, prefix, about)
            if public and changed is not None:
                raise RuntimeError("state_dict post-hook must return None")
            destination = destination if changed is None else changed
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in self._own_state().items():
            destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()
        if self._has_extra("get_extra_state"):
            destination[prefix + EXTRA] = self.get_extra_state()

    def register_state_dict_pre_hook(self, hook: Fn) -> RemovableHandle:
        """Calls hook(module, prefix, keep_vars) before the state is saved."""
        return RemovableHandle(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Fn) -> RemovableHandle:
        """Calls hook(module, state_dict, prefix, metadata) after the state was saved."""
        marked: Any = hook
        marked._from_public_api = True  # it may give nothing back
        return RemovableHandle(self._state_dict_hooks, (hook, True))

    def _register_state_dict_hook(self, hook: Fn) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously "
                "registered via register_state_dict_post_hook"
            )
        return RemovableHandle(self._state_dict_hooks, (hook, False))

    # -- loading ------------------------------------------------------------------------------

    @replaceable
    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copies values by name; with strict, every name must match.

        assign: the tensors themselves become the parameters, with their types.

        >>> from toytorch import nn
        >>> nn.Linear(2, 3).load_state_dict(nn.Linear(2, 3).state_dict())
        <All keys matched successfully>
        """
        if not hasattr(state_dict, "items"):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        about = getattr(state_dict, "_metadata", None)
        state = OrderedDict(state_dict)
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []

        self._load_part(state, "", about, assign, missing, unexpected, errors)
        if strict:
            for kind, names in (("Unexpected", unexpected), ("Missing", missing)):
                if names:
                    errors.insert(
                        0,
                        f"{kind} key(s) in state_dict: "
                        + ", ".join(f'"{k}"' for k in names)
                        + ". ",
                    )
        if errors:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                + "\n\t".join(errors)
            )
        return _IncompatibleKeys(missing, unexpected)

    def _load_part(
        self,
        part: Any,
        prefix: str,
        about: Any,
        assign: bool,
        missing: list[str],
        unexpected: list[str],
        errors: list[str],
    ) -> None:
        """Loads a module and those below it; `about` holds the versions, by prefix."""
        own = {} if about is None else dict(about.get(prefix[:-1], {}))
        if assign:
            own["assign_to_params_buffers"] = True
        self._load_from_state_dict(part, prefix, own, True, missing, unexpected, errors)
        for name, child in self._modules.items():
            if child is not None:
                inner = f"{prefix}{name}."
                its = OrderedDict((k, v) for k, v in part.items() if k.startswith(inner))
                child._load_part(its, inner, about, assign, missing, unexpected, errors)
        found = _IncompatibleKeys(missing, unexpected)
        for hook in list(self._load_state_dict_post_hooks.values()):
            if hook(self, found) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected "
                    "to return new values, if incompatible_keys need to be modified, it should be "
                    "done inplace."
                )

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        for hook, with_module in list(self._load_state_dict_pre_hooks.values()):
            found = missing_keys, unexpected_keys, error_msgs
            hook(*[self] * with_module, state_dict, prefix, local_metadata, strict, *found)
        mine = self._own_state()
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, value in mine.items():
            key = prefix + name
            if key in state_dict:
                problem = self._take(name, key, value, state_dict[key], assign)
                error_msgs += [problem] if problem else []
            else:
                missing_keys += [key] if strict else []
        extra = prefix + EXTRA
        if self._has_extra("set_extra_state"):
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        for key in state_dict if strict else ():
            if not key.startswith(prefix) or key == extra:
                continue
            first, _, rest = key[len(prefix) :].partition(".")
            if first not in (self._modules if rest else mine):
                unexpected_keys.append(key)

    def _take(self, name: str, key: str, value: Any, given: Any, assign: bool) -> str:
        """Copies one tensor, or puts it in the place of the old one; says what went wrong."""
        if not isinstance(given, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or '
                f"Tensor-like object from checkpoint but received {type(given)}"
            )
        if not is_lazy(value):
            if not value.ndim and given.shape == (1,):
                given = given[0]  # numbers were tensors of one element once
            if given.shape != value.shape:
                return (
                    f"size mismatch for {key}: copying a param with shape {given.shape} from "
                    f"checkpoint, the shape in current model is {value.shape}."
                )
            if value.is_meta and not given.is_meta and not assign:
                warned.at_call(
                    f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                    "parameter in the current model, which is a no-op. (Did you mean to pass "
                    "`assign=True` to assign items in the state dictionary to their corresponding "
                    "key in the module instead of copying them in place?)"
                )
        try:
            with no_grad():
                if not assign:
                    value.copy_(given)
                elif isinstance(value, Parameter):
                    if isinstance(given, Parameter):
                        given.requires_grad_(value.requires_grad)
                    else:
                        given = Parameter(given, value.requires_grad)
                    setattr(self, name, given)
                else:
                    setattr(self, name, given)
        except Exception as problem:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{value.size()} and whose dimensions in the checkpoint are {given.size()}, an "
                f"exception occurred : {problem.args}."
            )
        return ""

    def register_load_state_dict_pre_hook(self, hook: Fn) -> RemovableHandle:
        """Calls hook(module, state_dict, prefix, ...) before this module takes its values."""
        return self._register_load_state_dict_pre_hook(hook, True)

    def _register_load_state_dict_pre_hook(
        self, hook: Fn, with_module: bool = False
    ) -> RemovableHandle:
        return RemovableHandle(self._load_state_dict_pre_hooks, (hook, with_module))

    def register_load_state_dict_post_hook(self, hook: Fn) -> RemovableHandle:
        """Calls hook(module, incompatible_keys) after this module took its values."""
        return RemovableHandle(self._load_state_dict_post_hooks, hook)
