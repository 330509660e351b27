"""`torch.hub` of both packages, over files that a server of this process hands out."""

import hashlib
import threading
import zipfile
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler

import pytest

import toytorch
from tests.oracle import torch

PACKAGES = [toytorch] + ([torch] if torch is not None else [])
of_both = pytest.mark.parametrize("package", PACKAGES, ids=lambda p: p.__name__)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        self.server.asked.append(self.path)


@pytest.fixture
def server(tmp_path):
    folder = tmp_path / "server"
    folder.mkdir()
    with HTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        server.asked, server.folder = [], folder
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def kept(package, tmp_path, monkeypatch):
    """The folder of downloads, told by the variable that PyTorch reads."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    assert package.hub.get_dir() == str(tmp_path / "home" / "hub")
    return tmp_path / "home" / "hub" / "checkpoints"


@of_both
def test_weights_are_fetched_once(package, kept, server, capsys):
    package.save({"weight": package.ones(3)}, server.folder / "net.pth")
    digits = hashlib.sha256((server.folder / "net.pth").read_bytes()).hexdigest()[:8]
    (server.folder / "net.pth").rename(server.folder / f"net-{digits}.pth")
    url = f"{server.url}/net-{digits}.pth?download=true"
    for _ in range(2):
        found = package.hub.load_state_dict_from_url(url, check_hash=True, progress=False)
        assert found["weight"].tolist() == [1, 1, 1]
    assert len(server.asked) == 1
    assert [f.name for f in kept.iterdir()] == [f"net-{digits}.pth"]
    assert f'Downloading: "{url}" to {kept}' in capsys.readouterr().out
    found = package.hub.load_state_dict_from_url(
        url, str(kept.parent / "mine"), "cpu", False, file_name="other.pt", weights_only=True
    )
    assert found["weight"].tolist() == [1, 1, 1]
    assert (kept.parent / "mine" / "other.pt").exists()


@of_both
def test_a_wrong_file_is_not_kept(package, kept, server):
    (server.folder / "net-0123abcd.pth").write_bytes(b"something else")
    with pytest.raises(
        RuntimeError, match=r'invalid hash value \(expected "0123abcd", got "[0-9a-f]{64}"'
    ):
        package.hub.load_state_dict_from_url(
            f"{server.url}/net-0123abcd.pth", check_hash=True, progress=False
        )
    assert list(kept.iterdir()) == []
    with pytest.raises(OSError, match="404"):
        package.hub.download_url_to_file(f"{server.url}/none", str(kept / "none"), progress=False)
    assert list(kept.iterdir()) == []


@of_both
def test_a_file_packed_once_more(package, kept, server):
    package.save([package.ones(2)], server.folder / "a.pth", _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(server.folder / "b.pth", "w") as archive:
        archive.write(server.folder / "a.pth", "a.pth")
    with pytest.warns(FutureWarning, match="Falling back to the old format < 1.6"):
        found = package.hub.load_state_dict_from_url(f"{server.url}/b.pth", progress=False)
    assert found[0].tolist() == [1, 1]


@of_both
def test_models_of_a_folder(package, tmp_path):
    (tmp_path / "beside.py").write_text("SIZE = 3")
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['numpy']\nfrom beside import SIZE\n"
        "def net(more=0, **kwargs): return SIZE + more, kwargs\nnothing = 3\n"
    )
    load = partial(package.hub.load, str(tmp_path), source="local")
    assert load("net", 2, a=1) == (5, {"a": 1})
    for wrong, error, text in (
        ("absent", RuntimeError, "Cannot find callable absent in hubconf"),
        ("nothing", RuntimeError, "Cannot find callable nothing in hubconf"),
        (3, ValueError, "Invalid input: model should be a string of function name"),
    ):
        with pytest.raises(error, match=text):
            load(wrong)
    (tmp_path / "hubconf.py").write_text("dependencies = ['numpy', 'no_such_package']")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        load("net")
    with pytest.raises(ValueError, match='Unknown source: "gitlab"'):
        package.hub.load("a/b", "net", source="gitlab")


@of_both
def test_the_folder_of_downloads(package, tmp_path, monkeypatch):
    before = package.hub.get_dir()
    package.hub.set_dir(tmp_path)
    assert str(package.hub.get_dir()) == str(tmp_path)
    package.hub.set_dir(before)
    monkeypatch.setattr(package.hub, "_hub_dir" if package is torch else "_folder", None)
    monkeypatch.delenv("TORCH_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert package.hub.get_dir() == str(tmp_path / "cache" / "torch" / "hub")


@pytest.mark.parametrize("name", ["load", "list", "help"])
def test_code_of_the_network_is_refused(name):
    with pytest.raises(
        RuntimeError, match=f"torch.hub.{name} is not available: toytorch runs no code"
    ):
        getattr(toytorch.hub, name)("pytorch/vision", "resnet18")
