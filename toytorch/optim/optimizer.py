"""What all optimizers share: parameter groups, state, steps; the rule is a subclass's `update`."""

from __future__ import annotations

import copy
import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from toytorch.autograd.modes import enable_grad, no_grad
from toytorch.backends import base
from toytorch.core.inplace import refuse_overlap
from toytorch.core.subclasses import dispatches
from toytorch.core.tensor import Tensor
from toytorch.facts import state as core_state
from toytorch.facts import warned
from toytorch.facts.dtype import float32
from toytorch.facts.hints import Args, Fn, Kwargs
from toytorch.facts.node import RemovableHandle
from toytorch.facts.size import broadcast_pair
from toytorch.ops.creation.from_data import as_tensor
from toytorch.ops.elementwise.complex_numbers import view_as_real
from toytorch.optim import rule

Group: TypeAlias = dict[str, Any]  # parameters, under "params", and their hyperparameters
State: TypeAlias = dict[str, Any]  # what is kept for one parameter
Params: TypeAlias = Iterable[Tensor | Group | tuple[str, Tensor]]

KEPT = rule.Rule("p = p * keep", "p", "keep")  # decay that leaves the gradient alone
BEFORE: dict[int, Any] = {}  # hooks of every optimizer
AFTER: dict[int, Any] = {}


def first_if(prepend: bool, handle: RemovableHandle) -> RemovableHandle:
    """The handle of a hook, which goes before all others if that is wanted."""
    if prepend:
        hook = handle.hooks.pop(handle.id)
        others = dict(handle.hooks)
        handle.hooks.clear()
        handle.hooks.update({handle.id: hook, **others})
    return handle


class Optimizer:
    """Changes parameters by their gradients.

    A subclass defines `update(param, grad, state, group)`, which writes `param` in place; `state`
    is that parameter's own dictionary, `group` holds the hyperparameters.

    >>> class Descent(Optimizer):
    ...     def __init__(self, params, lr=0.1):
    ...         super().__init__(params, {"lr": lr})
    ...     def update(self, param, grad, state, group):
    ...         param.sub_(grad * group["lr"])
    >>> x = torch.tensor([1.], requires_grad=True)
    >>> (x * x).sum().backward(); Descent([x]).step(); x
    tensor([0.8000], requires_grad=True)
    """

    _scheduled_step: Any = None  # a `step` of the object's own, when a schedule was made for it
    sparse = ""  # what to do with sparse gradients instead, or "yes" where the rule takes them

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        lr = defaults.get("lr")
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of "
                f"Tensors or dicts, but got {params.type()}"
            )
        self.defaults = defaults
        self.state: dict[Any, State] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self._without_hooks()
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)
        for other in ("differentiable", "foreach") if defaults.get("fused") else ():
            if defaults.get(other):
                raise RuntimeError(
                    "`fused` does not support `differentiable`"
                    if other == "differentiable"
                    else "`fused` and `foreach` cannot be `True` together."
                )

    def _without_hooks(self) -> None:
        self._opt_called = False
        self._optimizer_step_pre_hooks: dict[int, Any] = {}
        self._optimizer_step_post_hooks: dict[int, Any] = {}
        self._optimizer_state_dict_pre_hooks: dict[int, Any] = {}
        self._optimizer_state_dict_post_hooks: dict[int, Any] = {}
        self._optimizer_load_state_dict_pre_hooks: dict[int, Any] = {}
        self._optimizer_load_state_dict_post_hooks: dict[int, Any] = {}
        self._patch_step_function()

    def __getstate__(self) -> dict[str, Any]:
        """What copies and files keep: no hooks."""
        state = defaultdict(dict, {p: held for p, held in self.state.items() if held})
        return {"defaults": self.defaults, "state": state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._without_hooks()
        vars(self).update(state)

    def update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """The rule: writes the new value of one parameter in place."""
        raise NotImplementedError  # as PyTorch's base class does, which has no rule

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters with hyperparameters of their own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = dict(param_group)
        params = group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        params = list(params)
        named = [isinstance(p, tuple) for p in params]
        if any(named):
            if not all(named):
                raise ValueError(
                    "all optimizer params should be with/without names. Some param "
                    "names are missing"
                )
            group["param_names"] = [name for name, _ in params]
            params = [p for _, p in params]
        for p in params:
            if not isinstance(p, Tensor):
                from toytorch.nn.modules.registration import full_name  # nn may not be loaded

                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is " + full_name(p)
                )
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        if len({id(p) for p in params}) != len(params):
            warned.at_call(
                "optimizer contains a parameter group with duplicate parameters; in "
                "future, this will cause an error; see "
                "github.com/pytorch/pytorch/issues/40967 for more information"
            )
        for other in self.param_groups[:1]:
            if ("param_names" in group) != ("param_names" in other):
                with_names = "with" if "param_names" in group else "without"
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot "
                    f"add param group {with_names} names to the optimizer"
                )
        taken = {id(p) for g in self.param_groups for p in g["params"]}
        if any(id(p) in taken for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        group["params"] = params
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> Any:
        """Forgets all gradients, or sets them to 0."""
        if core_state.profiler is not None:
            name = f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"
            return core_state.profiler.around(name, (), self._zero_grad, set_to_none)
        return self._zero_grad(set_to_none)

    def _zero_grad(self, set_to_none: bool) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                if p._grad is not None:
                    if set_to_none:
                        p._grad = None
                    elif p._grad._grad_edge is not None:
                        p._grad.detach_().zero_()
                    else:
                        p._grad.requires_grad_(False).zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Applies the rule to every parameter that has a gradient."""
        if core_state.fast_path is core_state.SLOW:
            core_state.beside("an optimizer's step writes to parameters")
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with enable_grad() if self.defaults.get("differentiable") else no_grad():
            if core_state.capturing:
                self._captured()
            elif base.queued and all(g.get("foreach") is not False for g in self.param_groups):
                rule.step.of(f"{type(self).__name__}.step", self._update_all)
            else:
                self._update_all()
        return loss

    def _captured(self) -> None:
        """A step that a CUDA graph takes in. What the host counts is counted when it is replayed."""
        if not all(group.get("capturable", True) for group in self.param_groups):
            raise RuntimeError(
                "Attempting CUDA graph capture of step() for an instance of "
                f"{type(self).__name__} but param_groups' capturable is False."
            )
        if not base.queued:
            if "capturable" in self.defaults:
                # A card would replay the numbers of the captured step, and give wrong results silently.
                raise NotImplementedError(
                    f"a step of {type(self).__name__} cannot be captured on this device, as its "
                    "numbers change from step to step; capture forward and backward, and call "
                    "step() after replay()"
                )
            self._update_all()
            return
        kept = [
            (t._array, t._array.copy())
            for state in self.state.values()
            for t in state.values()
            if isinstance(t, Tensor) and t._array.__class__ is np.ndarray
        ]
        rule.step.of(f"{type(self).__name__}.step", self._update_all, True)
        for array, before in kept:
            array[...] = before

    def _update_all(self) -> None:
        """`update` for each parameter of each group; those without a gradient stay as they are."""
        if type(self).update is Optimizer.update:
            raise NotImplementedError  # also where no parameter has a gradient
        for group in self.param_groups:
            for p in group["params"]:
                if p._grad is not None:
                    if self.sparse != "yes" and p._grad.is_sparse:
                        raise RuntimeError(
                            f"{type(self).__name__} does not support sparse gradients{self.sparse}"
                        )
                    refuse_overlap(p)
                    known = self.state.get(p)
                    values: State = {} if known is None else known
                    try:
                        self.update(p, p._grad, values, on_tensors(group, p))
                    except ValueError:  # NumPy's, where state was loaded for another shape
                        for t in values.values():
                            if isinstance(t, Tensor):
                                broadcast_pair(t.shape, p.shape)
                        raise
                    if known is None and values:  # a rule without state leaves none behind
                        self.state[p] = values

    @staticmethod
    def profile_hook_step(func: Fn) -> Any:
        """A step with what belongs to every step: hooks before and after it, and a profiler's span."""

        @functools.wraps(func)
        def step(*args: Any, **kwargs: Any) -> Any:
            self = args[0]
            self._opt_called = True
            if core_state.profiler is not None:
                name = f"Optimizer.step#{type(self).__name__}.step"
                return core_state.profiler.around(name, (), self._with_hooks, func, args, kwargs)
            return self._with_hooks(func, args, kwargs)

        vars(step)["hooked"] = True
        return step

    def _with_hooks(self, step: Fn, args: Args, kwargs: Kwargs) -> Any:
        for hook in (*BEFORE.values(), *self._optimizer_step_pre_hooks.values()):
            changed = hook(self, args, kwargs)
            if changed is None:
                continue
            if not isinstance(changed, tuple) or len(changed) != 2:
                raise RuntimeError(
                    f"{step} must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                )
            args, kwargs = changed
        result = step(*args, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *AFTER.values()):
            hook(self, args, kwargs)
        return result

    def _patch_step_function(self) -> None:
        """Puts what belongs to every step around the step of this class, whoever wrote it."""
        kind: Any = type(self)
        if not hasattr(kind.step, "hooked"):
            kind.step = self.profile_hook_step(kind.step)

    def _cuda_graph_capture_health_check(self) -> None:
        """Does nothing, for steps that call it: `step` here sees to captures itself."""

    _accelerator_graph_capture_health_check = _cuda_graph_capture_health_check

    def register_step_pre_hook(self, hook: Fn) -> RemovableHandle:
        """Calls hook(optimizer, args, kwargs) before each step; what it returns takes their place."""
        return RemovableHandle(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Fn) -> RemovableHandle:
        """Calls hook(optimizer, args, kwargs) after each step."""
        return RemovableHandle(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Fn, prepend: bool = False) -> RemovableHandle:
        """Calls hook(optimizer) before the state is saved."""
        return first_if(prepend, RemovableHandle(self._optimizer_state_dict_pre_hooks, hook))

    def register_state_dict_post_hook(self, hook: Fn, prepend: bool = False) -> RemovableHandle:
        """Calls hook(optimizer, state_dict) after the state was saved; it may replace it."""
        return first_if(prepend, RemovableHandle(self._optimizer_state_dict_post_hooks, hook))

    def register_load_state_dict_pre_hook(self, hook: Fn, prepend: bool = False) -> RemovableHandle:
        """Calls hook(optimizer, state_dict) before the state is loaded; it may replace it."""
        return first_if(prepend, RemovableHandle(self._optimizer_load_state_dict_pre_hooks, hook))

    def register_load_state_dict_post_hook(
        self, hook: Fn, prepend: bool = False
    ) -> RemovableHandle:
        """Calls hook(optimizer) after the state was loaded."""
        return first_if(prepend, RemovableHandle(self._optimizer_load_state_dict_post_hooks, hook))

    def state_dict(self) -> dict[str, Any]:
        """State by parameter number, and the groups, as PyTorch arranges them."""
        for hook in list(self._optimizer_state_dict_pre_hooks.values()):
            hook(self)
        numbers: dict[int, int] = {}
        groups, first = [], 0
        for group in self.param_groups:
            numbers.update({id(p): i for i, p in enumerate(group["params"], first)})
            first += len(group["params"])
            groups.append(
                {
                    **{k: v for k, v in group.items() if k != "params"},
                    "params": [numbers[id(p)] for p in group["params"]],
                }
            )
        state: dict[Any, Any] = {}
        for p, s in self.state.items():
            if not isinstance(p, Tensor):
                state[p] = s  # a program's own notes
            elif s and id(p) in numbers:
                state[numbers[id(p)]] = s
        saved = {"state": state, "param_groups": groups}
        for hook in list(self._optimizer_state_dict_post_hooks.values()):
            changed = hook(self, saved)
            saved = saved if changed is None else changed
        return saved

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over state and hyperparameters."""
        state_dict = dict(state_dict)
        for hook in list(self._optimizer_load_state_dict_pre_hooks.values()):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(saved, self.param_groups)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the "
                "size of optimizer's group"
            )
        params: dict[int, Any] = {}
        for theirs, mine in zip(saved, self.param_groups):
            params.update(zip(theirs["params"], mine["params"]))
        state: dict[Any, State] = defaultdict(dict)
        for number, values in state_dict["state"].items():
            p = params.get(number)
            if p is not None:
                state[p] = {k: self._like(k, v, p) for k, v in values.items()}
            else:
                state[number] = values  # a program's own notes
        self.state = state
        groups = []
        for theirs, mine in zip(copy.deepcopy(saved), self.param_groups):
            theirs["params"] = mine["params"]
            if "param_names" in mine:
                theirs.setdefault("param_names", mine["param_names"])
            for name, value in self.defaults.items():
                # switches that older files do not have
                if name in mine and (value is None or isinstance(value, bool)):
                    theirs.setdefault(name, value and False)
            groups.append(theirs)
        self.param_groups = groups
        self.defaults.setdefault("differentiable", False)
        for hook in list(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    @staticmethod
    def _like(name: str, value: Tensor, param: Tensor) -> Any:
        if isinstance(value, dict):
            return {k: Optimizer._like(k, v, param) for k, v in value.items()}
        if not isinstance(value, Tensor):
            return value
        if name == "step" or not param.is_floating_point():
            return value.clone()
        return value.to(dtype=param.dtype, device=param.device, copy=True)

    def __repr__(self) -> str:
        groups = ""
        for i, group in enumerate(self.param_groups):
            lines = [f"    {k}: {group[k]}\n" for k in sorted(group) if k != "params"]
            groups += f"\nParameter Group {i}\n{''.join(lines)}"
        return f"{type(self).__name__} ({groups})"


def register_optimizer_step_pre_hook(hook: Fn) -> RemovableHandle:
    """Calls hook(optimizer, args, kwargs) before each step of every optimizer."""
    return RemovableHandle(BEFORE, hook)


def register_optimizer_step_post_hook(hook: Fn) -> RemovableHandle:
    """Calls hook(optimizer, args, kwargs) after each step of every optimizer."""
    return RemovableHandle(AFTER, hook)


def named(given: dict[str, Any], names: str) -> dict[str, Any]:
    """The hyperparameters of these names, in this order, among a constructor's local variables."""
    return {name: given[name] for name in names.split()}


def on_tensors(group: Group, param: Tensor) -> dict[str, Any]:
    """The settings of a parameter's group; with those of a step on tensors where somebody is asked about
    each of its ops: the parameter's or the gradient's class, or a mode (`__torch_dispatch__`)."""
    if core_state.fast_path is not core_state.SLOW:
        return group
    asked = any(getattr(mode, "hears_steps", False) for mode in core_state.local.modes)
    asked = asked or dispatches(type(param)) or dispatches(type(param._grad))
    return {**group, "differentiable": True} if asked else group


def raw(tensor: Tensor, group: Group) -> Any:
    """What a rule writes to: a tensor's array, or the tensor where the step has a gradient.

    Complex numbers are pairs of real ones.
    """
    if group.get("differentiable"):
        return view_as_real(tensor) if tensor.is_complex() else tensor
    array = tensor._array
    return array if array.dtype.kind != "c" else array[..., None].view(array.real.dtype)


def operands(param: Tensor, grad: Tensor, group: Group, *held: Tensor) -> list[Any]:
    """What a rule goes over: a parameter, the gradient to descend along, what is held for it."""
    return [raw(param, group), slope(param, grad, group), *[raw(t, group) for t in held]]


def number(value: Tensor | float, group: Group) -> Any:
    """A hyperparameter: a number, or the tensor that it is where the step has a gradient."""
    return value if group.get("differentiable") else float(value)


def slope(param: Tensor, grad: Tensor, group: Group) -> Any:
    """The gradient to descend along, as an array: turned round for `maximize`, with the decay."""
    g = raw(grad, group)
    if group["maximize"]:
        g = -g
    decay = number(group.get("weight_decay", 0), group)
    if not isinstance(decay, Tensor) and not decay:
        return g
    if group.get("decoupled_weight_decay"):
        # By itself, as PyTorch does it: in one pass with the step it would be rounded otherwise.
        KEPT(raw(param, group), 1 - number(group["lr"], group) * decay)
        return g
    return g + decay * raw(param, group)


def count(state: State) -> int:
    """The number of this step: one more than the last."""
    step = noted(state, "step")._array
    step[...] += 1
    return int(step)


def noted(state: State, name: str) -> Tensor:
    """A number of the state as a tensor; files of older programs have plain ones."""
    if not isinstance(state[name], Tensor):
        state[name] = as_tensor(float(state[name]), dtype=float32)
    return state[name]


def check_betas(betas: Sequence[float | Tensor]) -> None:
    """Refuses decay rates outside [0, 1)."""
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def check_positive(**values: Tensor | float) -> None:
    """Refuses negative hyperparameters."""
    for name, value in values.items():
        if isinstance(value, Tensor) and value.numel() != 1:
            continue  # the base class refuses it
        if not value >= 0.0:
            learning = name == "learning_rate"
            words = "learning rate" if learning else f"{name} value"
            raise ValueError(f"Invalid {words}: {value}")
