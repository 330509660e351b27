"""Headless Chromium through the DevTools protocol: keys, scripts, pictures, and what went wrong."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

import websocket  # comes with JupyterLab's server

from tests.course.chromium import _QUIET, find

_KEYS = {
    "Enter": ("Enter", 13, "\r"),
    "Escape": ("Escape", 27, ""),
    "a": ("KeyA", 65, ""),
    "b": ("KeyB", 66, "b"),
    "d": ("KeyD", 68, "d"),
}
SHIFT, CONTROL = 8, 2


class Browser:
    """One page of a browser of its own; `with Browser() as page: page.open(address)`."""

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        self._profile = Path(tempfile.mkdtemp(prefix="toytorch-browser-"))
        flags = [flag for flag in _QUIET if not flag.startswith(("--window", "--hide-scroll"))]
        self._process = subprocess.Popen(
            [
                find(),
                *flags,
                f"--window-size={width},{height}",
                f"--user-data-dir={self._profile}",
                "--remote-debugging-port=0",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._numbers = itertools.count(1)
        self._requests: dict[str, str] = {}
        self.complaints: list[str] = []  # console errors, uncaught exceptions
        self.failed: list[str] = []  # requests that failed or were answered with an error
        self.outside: list[str] = []  # requests to another machine
        self._socket = websocket.create_connection(
            self._address(), suppress_origin=True, timeout=120
        )
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.size(width, height)
        self.version: str = self.call("Browser.getVersion")["product"]

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        try:
            self.call("Browser.close")
            self._socket.close()
        except (OSError, websocket.WebSocketException):
            pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        shutil.rmtree(self._profile, ignore_errors=True)

    # -- what one does with a page --------------------------------------------------------------

    def open(self, address: str) -> None:
        """Go to an address."""
        self.call("Page.navigate", url=address)

    def ask(self, script: str) -> Any:
        """The value of a JavaScript expression; promises are waited for."""
        got = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in got:
            details = got["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return got["result"].get("value")

    def until(self, script: str, seconds: float = 60) -> Any:
        """Ask again and again until the answer is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                got = self.ask(script)
            except RuntimeError:  # the page is on its way to another document
                got = None
            if got:
                return got
            time.sleep(0.05)
        raise TimeoutError(f"never true within {seconds:g} s: {script}")

    def press(self, key: str, modifiers: int = 0) -> None:
        """Press and release a key."""
        code, number, text = _KEYS[key]
        shared = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **shared)
        self.call("Input.dispatchKeyEvent", type="keyUp", **shared)

    def write(self, text: str) -> None:
        """Type text where the cursor is."""
        self.call("Input.insertText", text=text)

    def size(self, width: int, height: int) -> None:
        """Make the page so wide and high."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def picture(self, target: Path) -> None:
        """Save what can be seen as PNG."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(base64.b64decode(data))

    # -- the protocol ---------------------------------------------------------------------------

    def call(self, method: str, **params: Any) -> Any:
        """Send a command, wait for its result; events that come in between are taken in."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            said = json.loads(self._socket.recv())
            if said.get("id") == number:
                if "error" in said:
                    raise RuntimeError(f"{method}: {said['error']['message']}")
                return said["result"]
            self._take_in(said.get("method", ""), said.get("params", {}))

    def _address(self) -> str:
        """The socket of the only page."""
        file = self._profile / "DevToolsActivePort"
        for _ in range(600):
            if file.exists() and (lines := file.read_text().split()):
                listing = f"http://127.0.0.1:{lines[0]}/json/list"
                with urllib.request.urlopen(listing, timeout=10) as answer:
                    pages = [page for page in json.load(answer) if page["type"] == "page"]
                if pages:
                    return str(pages[0]["webSocketDebuggerUrl"])
            time.sleep(0.05)
        raise TimeoutError("Chromium did not open its DevTools port")

    def _take_in(self, event: str, what: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            url = what["request"]["url"]
            self._requests[what["requestId"]] = url
            if not url.startswith(("http://127.0.0.1", "data:", "blob:", "about:", "chrome")):
                self.outside.append(url)
        elif event == "Network.responseReceived" and what["response"]["status"] >= 400:
            self.failed.append(f"{what['response']['status']} {what['response']['url']}")
        elif event == "Network.loadingFailed" and not what.get("canceled"):
            url = self._requests.get(what["requestId"], "?")
            self.failed.append(f"{what['errorText']} {url}")
        elif event == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            said = details.get("exception", {}).get("description", details["text"])
            self.complaints.append(str(said)[:300])
        elif event == "Runtime.consoleAPICalled" and what["type"] == "error":
            words = [str(a.get("value", a.get("description", ""))) for a in what["args"]]
            self.complaints.append(" ".join(words)[:300])
        elif event == "Log.entryAdded" and what["entry"]["level"] == "error":
            entry = what["entry"]
            self.complaints.append(f"{entry['text']} {entry.get('url', '')}"[:300])
