"""The names of `torch.hub`: models from the network run other people's code, and are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from toytorch.facts.composed import called

__all__ = [
    "download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url",
    "set_dir",
]  # fmt: skip

_folder = ""


def get_dir() -> str:
    """Where downloads would be kept."""
    return _folder or str(Path.home() / ".cache" / "toytorch" / "hub")


def set_dir(d: object) -> None:
    """Sets that folder."""
    global _folder
    _folder = str(d)


def _refusing(name: str) -> Callable[..., NoReturn]:
    def function(*args: object, **kwargs: object) -> NoReturn:
        raise RuntimeError(
            f"torch.hub.{name} is not available: toytorch loads nothing from the "
            "network. Download the weights yourself and read them with torch.load, or "
            "use toytorch.vision.models, which travel with the package."
        )

    return called(name, "Raises RuntimeError: it would load something from the network.", function)


load, list, help = map(_refusing, ("load", "list", "help"))
load_state_dict_from_url = _refusing("load_state_dict_from_url")
download_url_to_file = _refusing("download_url_to_file")
