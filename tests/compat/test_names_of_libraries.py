"""Names that fairscale, tensordict, geoopt and other libraries use, beside PyTorch's."""

from __future__ import annotations

import functools
import importlib
import warnings
from typing import Any

import pytest

from tests.oracle import torch, tt
from toytorch.compat import _further
from toytorch.compat._absent import attribute

SIDES = (tt, torch)


def part(t: Any, name: str) -> Any:
    return importlib.import_module(f"{t.__name__}.{name}")


def test_seeds_of_workers() -> None:
    ours, theirs = (part(t, "utils.data._utils.worker")._generate_state for t in SIDES)
    for seed in (0, 1, 2**31, 2**32 - 1, 2**32, 2**40 + 7, 2**63 - 1):
        assert [ours(seed, k) for k in range(3)] == [theirs(seed, k) for k in range(3)]


def test_pinned_batches_are_what_they_were_without_a_gpu() -> None:
    batch = {"x": [tt.ones(2)], "name": "a"}
    assert part(tt, "utils.data._utils.pin_memory").pin_memory(batch) == batch


def test_operators_as_python_2_called_them() -> None:
    def said(t: Any) -> Any:
        x = t.tensor([4.0])
        y, z = x.clone(), t.tensor(3.5)
        return (
            x.__div__(2).tolist(),
            y.__idiv__(4).tolist(),
            y.tolist(),
            z.__long__(),
            z.__nonzero__(),
        )

    assert said(tt) == said(torch)


def test_optimizers_that_ask_for_hooks_around_their_step() -> None:
    def said(t: Any) -> Any:
        class Halving(t.optim.Optimizer):  # type: ignore[misc, name-defined]  # the class of either side
            def __init__(self, params: Any) -> None:
                super().__init__(params, {})
                self._patch_step_function()

            def step(self, closure: Any = None) -> None:
                for p in self.param_groups[0]["params"]:
                    p.data /= 2

        w = t.nn.Parameter(t.ones(2))
        Halving([w]).step()
        return w.tolist()

    assert said(tt) == said(torch)


def test_contexts_as_decorators() -> None:
    def said(t: Any) -> Any:
        module, found = part(t, "utils._contextlib"), list[Any]()

        class Noted(module._NoParamDecoratorContextManager):  # type: ignore[misc, name-defined]  # of either side
            def __enter__(self) -> None:
                found.append("in")

            def __exit__(self, *error: object) -> None:
                found.append("out")

        @Noted
        def plain() -> int:
            return len(found)

        @Noted()
        def several() -> Any:
            yield len(found)
            yield len(found)

        return plain(), list(several()), found

    assert said(tt) == said(torch)


def test_inputs_of_checkpoints() -> None:
    def said(t: Any, names: Any) -> Any:
        x, y = t.ones(2, requires_grad=True) * 2, t.ones(2)
        made = names.detach_variable((x, y, 3))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            names.check_backward_validity((x, 3))
            names.check_backward_validity((y, 3))
        with pytest.raises(RuntimeError) as error:
            names.detach_variable([x])
        shown = [(v.requires_grad, v.is_leaf) if hasattr(v, "is_leaf") else v for v in made]
        return shown, [str(w.message) for w in seen], str(error.value)

    assert said(tt, _further) == said(torch, part(torch, "utils.checkpoint"))


def test_groups_of_no_processes() -> None:
    for name in ("group", "GroupMember"):
        assert attribute("torch.distributed", name).WORLD is getattr(torch.distributed, name).WORLD


def test_partial_functions_in_scripts() -> None:
    root, total = functools.partial(tt.sqrt), functools.partial(tt.sum, dim=0)

    def f(x: tt.Tensor) -> tt.Tensor:
        return total(root(x)) + 1

    assert tt.jit.script(f)(tt.tensor([[4.0, 9.0], [1.0, 0.0]])).tolist() == [4.0, 4.0]


def test_functions_of_users_in_scripts() -> None:
    held = functools.partial(functools.partial(scaled, by=3), plus=1.0)

    def f(x: tt.Tensor) -> tt.Tensor:
        return held(x)

    assert tt.jit.script(f)(tt.ones(2)).tolist() == [4.0, 4.0]


def scaled(x: tt.Tensor, by: int = 1, plus: float = 2.0) -> tt.Tensor:
    return x * by + plus


def test_weights_given_to_a_recurrent_layer_in_place_of_its_parameters() -> None:
    def said(t: Any) -> Any:
        layer = t.nn.GRU(2, 3)
        layer._flat_weights = [w.detach() * 0 for w in layer._flat_weights]
        return layer(t.ones(1, 1, 2))[0].tolist(), [*layer.state_dict()]

    assert said(tt) == said(torch)


def test_the_class_of_all_tensors_as_a_type_is_the_default_type() -> None:
    for t in SIDES:
        kinds = [str(t.ones(2).bool().type(kind).dtype) for kind in (t.Tensor, "torch.Tensor")]
        assert kinds == ["torch.float32"] * 2


def test_an_expanded_distribution_that_hands_its_checks_to_its_base() -> None:
    def said(t: Any) -> Any:
        class Handing(t.distributions.Independent):  # type: ignore[misc, name-defined]  # PyTorch's base or ours
            _validate_args = property(
                lambda self: self.base_dist._validate_args,
                lambda self, value: setattr(self.base_dist, "_validate_args", value),
            )

        base = t.distributions.Normal(t.zeros(2, 3), 1.0, validate_args=True)
        new = Handing(base, 1).expand(t.Size([4, 2]))
        index = t.nn.ModuleList([t.nn.ReLU()])._get_abs_string_index(-1)
        return new.batch_shape, new.event_shape, new._validate_args, index

    assert said(tt) == said(torch)


def test_modules_of_devices_and_hooks_of_parameters() -> None:
    def said(t: Any) -> Any:
        utils, seen = part(t, "_utils"), []
        with pytest.raises(RuntimeError) as error:
            utils._get_device_module("nothing")
        handle = t.nn.modules.module.register_module_parameter_registration_hook(
            lambda module, name, p: seen.append(name)
        )
        for hook in part(t, "nn.modules.module")._global_parameter_registration_hooks.values():
            hook(None, "weight", None)
        handle.remove()
        return utils._get_device_module("cpu") is t.cpu, str(error.value), seen

    assert said(tt) == said(torch)
    assert part(tt, "_utils")._get_available_device_type() is (
        "cuda" if tt.cuda.is_available() else None
    )
