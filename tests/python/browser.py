"""A page in headless Chromium, driven over the DevTools pipe: real clicks and keys, no other package needed."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium():
    """The browser's path, or None."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class Browser:
    """with Browser() as browser: browser.open(path); browser.evaluate("1 + 1")

    `requests` holds every URL the page asked for, `errors` what its script threw and what the policy refused.
    """

    def __init__(self, width=1280, height=800, dark=False):
        self.width, self.height, self.dark = width, height, dark
        self.requests, self.errors, self.dialogs = [], [], []
        self._id, self._buffer, self._events = 0, b"", []

    def __enter__(self):
        self._profile = tempfile.mkdtemp(prefix="opguard-browser-")
        read_command, self._out = os.pipe()
        self._in, write_answer = os.pipe()

        def channels():
            # Chromium reads commands from descriptor 3 and answers on 4.
            commands, answers = os.dup(read_command), os.dup(write_answer)
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self._process = subprocess.Popen(
            [chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe",
             "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
             f"--user-data-dir={self._profile}", f"--window-size={self.width},{self.height}", "about:blank"],
            preexec_fn=channels, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read_command)
        os.close(write_answer)
        self._session = None
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setDeviceMetricsOverride", width=self.width, height=self.height, deviceScaleFactor=1, mobile=False)
        if self.dark:
            self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        return self

    def __exit__(self, *_):
        try:
            self._session = None
            self.send("Browser.close")
            self._process.wait(10)
        except Exception:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        os.close(self._in)
        shutil.rmtree(self._profile, ignore_errors=True)

    # ---- The protocol.

    def send(self, method, **params):
        self._id += 1
        message = {"id": self._id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        wanted = self._id
        deadline = time.monotonic() + 60
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == wanted:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _receive(self, deadline):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._in, 1 << 20)
            if not part:
                raise EOFError("the browser has ended")
            self._buffer += part
        line, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(line)
        if "method" in message:
            self._note(message["method"], message["params"])
            self._events.append(message["method"])
        return message

    def _note(self, method, params):
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(params["message"])
            self._id += 1
            os.write(self._out, json.dumps({"id": self._id, "method": "Page.handleJavaScriptDialog", "params": {"accept": True},
                                            "sessionId": self._session}).encode() + b"\0")

    # ---- What a person does.

    def open(self, path):
        """Loads a file; returns the seconds until its script has run."""
        self.requests.clear(), self.errors.clear(), self._events.clear()
        start = time.monotonic()
        self.send("Page.navigate", url=Path(path).resolve().as_uri())
        while "Page.loadEventFired" not in self._events:
            self._receive(start + 60)
        return time.monotonic() - start

    def evaluate(self, expression):
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", str(answer)))
        return answer["result"].get("value")

    def settle(self):
        """Until two frames have been drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def click(self, selector, text=None):
        """In the middle of the first element, or of the first that holds `text`."""
        find = f"[...document.querySelectorAll({json.dumps(selector)})].filter(e => e.checkVisibility())"
        if text is not None:
            find += f".filter(e => e.textContent.includes({json.dumps(text)}))"
        box = self.evaluate(f"(() => {{ const e = {find}[0]; if (!e) return null; e.scrollIntoViewIfNeeded(); const b = e.getBoundingClientRect();"
                            " return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        assert box, f"nothing to click: {selector} {text or ''}"
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)
        self.settle()

    def key(self, key, code=None, number=0):
        special = {"Escape": 27, "Enter": 13, "ArrowDown": 40, "ArrowUp": 38}
        params = {"key": key, "code": code or key, "windowsVirtualKeyCode": special.get(key, number or ord(key[0].upper()))}
        if key not in special:
            params["text"] = key
        self.send("Input.dispatchKeyEvent", type="keyDown", **params)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def type(self, text):
        for character in text:
            self.key(character)
        time.sleep(0.15)  # the page waits for the end of a word
        self.settle()

    def screenshot(self, path, full=False):
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=full)
        Path(path).write_bytes(base64.b64decode(answer["data"]))
        return path
