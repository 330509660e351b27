"""The names of `torch.hub`: models from the network run other people's code, and are refused."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

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


def _refuse(name: str) -> NoReturn:
    raise RuntimeError(
        f"torch.hub.{name} is not available: toytorch loads nothing from the "
        "network. Download the weights yourself and read them with torch.load, or "
        "use toytorch.vision.models, which travel with the package."
    )


def load(repo_or_dir: str, model: str, *args: object, **kwargs: object) -> NoReturn:
    """Raises RuntimeError: it would run code from the network."""
    _refuse("load")


def list(github: str, *args: object, **kwargs: object) -> NoReturn:
    """Raises RuntimeError."""
    _refuse("list")


def help(github: str, model: str, *args: object, **kwargs: object) -> NoReturn:
    """Raises RuntimeError."""
    _refuse("help")


def load_state_dict_from_url(url: str, *args: object, **kwargs: object) -> NoReturn:
    """Raises RuntimeError."""
    _refuse("load_state_dict_from_url")


def download_url_to_file(url: str, dst: str, *args: object, **kwargs: object) -> NoReturn:
    """Raises RuntimeError."""
    _refuse("download_url_to_file")
