"""`DistributedDataParallel`: there are no process groups, so it is refused when made."""

from __future__ import annotations

from toytorch.nn.modules.module import Module


class DistributedDataParallel(Module):
    """Raises ValueError: there is no process group. Programs import it before they ask."""

    def __init__(self, module: Module, *args: object, **kwargs: object) -> None:
        super().__init__()
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
