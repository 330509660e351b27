"""`GradScaler`: float16 gradients are kept from vanishing by a factor on the loss.

scaled = scaler.scale(loss); scaled.backward()      gradients times `scale`
scaler.step(optimizer)                              divides them, and skips the step if any
                                                    is inf or nan
scaler.update()                                     halves the scale after such a step, doubles
                                                    it after `growth_interval` good ones
"""

from __future__ import annotations

import enum
import inspect
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from toytorch.autograd.modes import no_grad
from toytorch.backends import base
from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.facts.device import device
from toytorch.facts.dtype import float16, float32, int32
from toytorch.facts.hints import Args, Kwargs
from toytorch.ops.creation.create import full

if TYPE_CHECKING:
    from toytorch.optim.optimizer import Optimizer


Known: TypeAlias = dict[str, Any]  # of an optimizer, see below


class OptState(enum.Enum):
    """How far an optimizer is with an iteration."""

    READY, UNSCALED, STEPPED = range(3)


READY, UNSCALED, STEPPED = OptState


def _refresh_per_optimizer_state() -> Known:
    """What is known of an optimizer before its iteration."""
    return {"stage": READY, "found_inf_per_device": {}}


LAZY = (
    "Attempted {} but _scale is None.  This may indicate your script did not use "
    "scaler.scale(loss or outputs) earlier in the iteration."
)


class GradScaler:
    """Scales losses, and unscales gradients before a step; Micikevicius et al. 2018.

    Disabled, or on "cuda" without a GPU (with a warning), all methods pass things through. Like
    `torch.amp.GradScaler`.

    >>> scaler = GradScaler("cpu", init_scale=8.)
    >>> w = torch.ones(1, requires_grad=True)
    >>> optimizer = torch.optim.SGD([w], lr=0.5)
    >>> scaler.scale(w.sum()).backward()
    >>> w.grad
    tensor([8.])
    >>> scaler.step(optimizer); scaler.update()
    >>> w.detach(), scaler.get_scale()
    (tensor([0.5000]), 8.0)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device, self._enabled = device, enabled
        if enabled and device == "cuda" and not base.of_kind("cuda").is_available():
            warned.at_call(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling."
            )
            self._enabled = False
        if self._enabled:
            if growth_factor <= 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if backoff_factor >= 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
            self._init_scale, self._init_growth_tracker = init_scale, 0
            self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
            self._growth_interval = growth_interval
            self._scale: Tensor | None = None
            self._growth_tracker: Tensor | None = None
            self._per_optimizer_states = self._fresh()

    @staticmethod
    def _fresh() -> dict[int, Known]:
        """By id of the optimizer: its stage since the last update, and on which devices gradients
        held inf or nan."""
        return defaultdict(_refresh_per_optimizer_state)

    # -- the loss ----------------------------------------------------------------------------------

    def scale(self, outputs: object) -> Any:
        """Outputs times the scale: a tensor, or tensors in lists and tuples."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_on(outputs.device).to(outputs.dtype)
        if not isinstance(outputs, Iterable):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        scaled = [self.scale(v) for v in outputs]
        return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled

    def _scale_on(self, where: device) -> Tensor:
        """The scale, made when a loss first says on what device."""
        if self._scale is None:
            self._scale = full((), self._init_scale, dtype=float32, device=where)
            self._growth_tracker = full((), self._init_growth_tracker, dtype=int32, device=where)
        return self._scale.to(where)

    def _need(self, what: str) -> Tensor:
        if self._scale is None:
            raise AssertionError(LAZY.format(what))
        return self._scale

    # -- the step ----------------------------------------------------------------------------------

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the gradients of an optimizer by the scale, so that they can be clipped."""
        if not self._enabled:
            return
        scale, known = self._need("unscale_"), self._per_optimizer_states[id(optimizer)]
        if known["stage"] is UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if known["stage"] is STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse, bad = 1.0 / scale.item(), dict[device, bool]()
        with no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    if p.grad.dtype is float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    bad.setdefault(p.grad.device, False)
                    bad[p.grad.device] |= not bool(p.grad.isfinite().all())
                    p.grad.mul_(inverse)
        known["stage"] = UNSCALED
        known["found_inf_per_device"] = {
            where: full((), float(found), device=where) for where, found in bad.items()
        }

    def step(self, optimizer: Any, *args: Tensor, **kwargs: Any) -> Any:
        """`optimizer.step()`, unless a gradient is inf or nan."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._need("step")
        known = self._per_optimizer_states[id(optimizer)]
        if known["stage"] is STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._let_step(optimizer, known, args, kwargs)
        if known["stage"] is READY:
            self.unscale_(optimizer)
        if not known["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = self._maybe_opt_step(optimizer, known, *args, **kwargs)
        known["stage"] = STEPPED
        return result

    def _maybe_opt_step(
        self, optimizer: Any, optimizer_state: Known, *args: Any, **kwargs: Any
    ) -> Any:
        """The step, if no gradient is inf or nan."""
        bad = any(bool(found) for found in optimizer_state["found_inf_per_device"].values())
        return None if bad else optimizer.step(*args, **kwargs)

    def _let_step(self, optimizer: Any, known: Known, args: Args, kwargs: Kwargs) -> Any:
        """The step of an optimizer that divides gradients by the scale itself."""
        passed = "grad_scaler" in inspect.signature(optimizer.step).parameters
        if passed:
            warned.at_call(
                "GradScaler is going to stop passing itself as a keyword argument to the passed "
                "optimizer. In the near future GradScaler registers `grad_scale: Tensor` and "
                "`found_inf: Tensor` to the passed optimizer and let the optimizer use them directly.",
                FutureWarning,
            )
            kwargs = {**kwargs, "grad_scaler": self}
        else:
            grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
            if known["stage"] is READY:
                good = all(bool(g.isfinite().all()) for g in grads if g is not None)
                scale = self._need("step")
                known["found_inf_per_device"] = {scale.device: full((), float(not good))}
            else:
                scale = None
            if scale is not None and hasattr(optimizer, "grad_scale"):
                scale = scale * optimizer.grad_scale
            optimizer.grad_scale = scale
            optimizer.found_inf = next(iter(known["found_inf_per_device"].values()))
        result = optimizer.step(*args, **kwargs)
        known["stage"] = STEPPED
        if not passed:
            del optimizer.grad_scale, optimizer.found_inf
        return result

    def update(self, new_scale: Tensor | float | None = None) -> None:
        """Goes on to the next iteration, with a scale that fits what was seen, or a new one."""
        if not self._enabled:
            return
        scale, tracker = self._need("update"), self._growth_tracker
        assert tracker is not None
        if new_scale is not None:
            if isinstance(new_scale, Tensor) and (
                new_scale.numel() != 1 or new_scale.requires_grad
            ):
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                    "torch.FloatTensor with requires_grad=False."
                )
            scale.fill_(float(new_scale))
        elif not (found := self._found_anywhere()):
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(map(bool, found)):
            scale.mul_(self._backoff_factor)
            tracker.fill_(0)
        elif tracker.item() + 1 == self._growth_interval:
            grown = scale * self._growth_factor
            if bool(grown.isfinite()):
                scale.copy_(grown)
            tracker.fill_(0)
        else:
            tracker.add_(1)
        self._per_optimizer_states = self._fresh()

    def _found_anywhere(self) -> list[Tensor]:
        states = self._per_optimizer_states.values()
        return [found for known in states for found in known["found_inf_per_device"].values()]

    def _found_inf_per_device(self, optimizer: Optimizer) -> dict[device, Tensor]:
        """By device: whether a gradient held inf or nan."""
        found: dict[device, Tensor] = self._per_optimizer_states[id(optimizer)][
            "found_inf_per_device"
        ]
        return found

    # -- what it knows -----------------------------------------------------------------------------

    def get_scale(self) -> float:
        """The scale; 1.0 if disabled."""
        if not self._enabled:
            return 1.0
        return float(self._init_scale) if self._scale is None else float(self._scale.item())

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by after `growth_interval` good steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets that factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after a step with inf or nan."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets that factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many good steps in a row make the scale grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets that number."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """The scale and the settings; empty if disabled."""
        if not self._enabled:
            return {}
        tracker = self._growth_tracker
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._init_growth_tracker
            if tracker is None
            else int(tracker.item()),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from "
                "a disabled instance of GradScaler."
            )
        self._init_scale = float(state_dict["scale"])
        self._growth_factor = float(state_dict["growth_factor"])
        self._backoff_factor = float(state_dict["backoff_factor"])
        self._growth_interval = int(state_dict["growth_interval"])
        self._init_growth_tracker = int(state_dict["_growth_tracker"])
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)
