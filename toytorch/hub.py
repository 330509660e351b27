"""Weights from the network, and models from a folder with a `hubconf.py`, like `torch.hub`.

Files of weights are kept where PyTorch keeps them, so that what one package has fetched the other
finds. Code is run from a folder that the program names, and never fetched.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import os
import re
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn
from urllib.parse import urlparse
from urllib.request import Request, urlopen

__all__ = [
    "download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url",
    "set_dir",
]  # fmt: skip

CHUNK = 128 * 1024  # bytes read at once
HASH = re.compile(r"-([a-f0-9]*)\.")  # of "resnet18-f37072fd.pth"
SOURCES = ("github", "local")
_folder: str | None = None


def get_dir() -> str:
    """The folder of downloads: $TORCH_HOME/hub, where TORCH_HOME is $XDG_CACHE_HOME/torch."""
    if _folder is not None:
        return _folder
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    home = os.environ.get("TORCH_HOME", os.path.join(cache, "torch"))
    return os.path.join(os.path.expanduser(home), "hub")


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets that folder."""
    global _folder
    _folder = os.path.expanduser(d)


@contextlib.contextmanager
def _bar(total: int | None, shown: bool) -> Iterator[Any]:
    """A function that is told of bytes read, and shows them where tqdm is installed."""
    try:
        from tqdm import tqdm  # an optional package
    except ImportError:
        yield lambda count: None
        return
    with tqdm(total=total, disable=not shown, unit="B", unit_scale=True, unit_divisor=1024) as bar:
        yield bar.update


def download_url_to_file(
    url: str, dst: str, hash_prefix: str | None = None, progress: bool = True
) -> None:
    """Fetches a file; it has its name only once it is whole.

    hash_prefix    the first digits of its SHA-256
    Raises RuntimeError where the digits are others, and what urllib raises.
    """
    target = os.path.expanduser(dst)
    request = Request(url, headers={"User-Agent": "torch.hub"})
    with urlopen(request) as source:
        length = source.headers.get("Content-Length")
        digest = hashlib.sha256()
        handle, partial = tempfile.mkstemp(dir=os.path.dirname(target) or ".", suffix=".partial")
        try:
            with os.fdopen(handle, "wb") as file, _bar(length and int(length), progress) as told:
                while chunk := source.read(CHUNK):
                    file.write(chunk)
                    digest.update(chunk)
                    told(len(chunk))
            found = digest.hexdigest()
            if hash_prefix is not None and found[: len(hash_prefix)] != hash_prefix:
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
            os.replace(partial, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.remove(partial)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> dict[str, Any]:
    """The object saved in a file of the network, which is fetched once.

    model_dir      where it is kept: `get_dir()/checkpoints`
    check_hash     whether the name tells the first digits of the file's SHA-256, `name-<digits>.ext`
    """
    from toytorch import load as load_file  # below it: the package's first names

    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    kept = os.path.join(folder, name)
    if not os.path.exists(kept):
        sys.stdout.write(f'Downloading: "{url}" to {kept}\n')
        digits = HASH.search(name) if check_hash else None
        download_url_to_file(url, kept, digits and digits[1], progress)
    more: dict[str, Any] = {"map_location": map_location, "weights_only": weights_only}
    if zipfile.is_zipfile(kept):
        with zipfile.ZipFile(kept) as archive:
            members = archive.infolist()
            if len(members) == 1:  # an old file, packed once more
                warnings.warn(
                    "Falling back to the old format < 1.6. This support will be deprecated in favor of "
                    "default zipfile format introduced in 1.6. Please redo torch.save() to save it in "
                    "the new zipfile format.",
                    FutureWarning,
                    stacklevel=2,
                )
                return load_file(io.BytesIO(archive.read(members[0])), **more)
    return load_file(kept, **more)


def _refuse(name: str) -> NoReturn:
    raise RuntimeError(
        f"torch.hub.{name} is not available: toytorch runs no code from the network. Fetch the "
        "repository yourself (git clone), look at it, and say "
        "torch.hub.load(folder, model, source='local')."
    )


def _hubconf(folder: Path) -> ModuleType:
    """The module `hubconf.py` of a folder; RuntimeError where packages are missing that it names."""
    spec = importlib.util.spec_from_file_location("hubconf.py", folder / "hubconf.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    needed = getattr(module, "dependencies", ())
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: str | bool | None = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """What the function `model` of a folder's `hubconf.py` returns.

    Raises RuntimeError for source="github", which would run code from the network, and where there
    is no such function.
    """
    if source.lower() not in SOURCES:
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source.lower() == "github":
        _refuse("load")
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    folder = Path(repo_or_dir)
    sys.path.insert(0, str(folder))
    try:
        function = getattr(_hubconf(folder), model, None)
        if not callable(function):
            raise RuntimeError(f"Cannot find callable {model} in hubconf")
        return function(*args, **kwargs)
    finally:
        sys.path.remove(str(folder))


def list(github: str, *args: object, **kwargs: object) -> NoReturn:
    """Raises RuntimeError: it would run code from the network."""
    _refuse("list")


def help(github: str, model: str, *args: object, **kwargs: object) -> NoReturn:
    """Raises RuntimeError: it would run code from the network."""
    _refuse("help")
