"""Headless Chromium by its DevTools protocol over a pipe: no driver, no WebSocket, nothing from PyPI.

As a program it takes the picture of some sections of a page: chromium.py PAGE.html PICTURE.png FIRST LAST
"""

import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Chromium:
    def __init__(self, profile):
        to_browser, self._to = os.pipe()
        self._from, from_browser = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]

        def arrange():  # the browser reads commands from 3 and answers on 4
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self._process = subprocess.Popen(
            [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
             "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=arrange, pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        self._text, self._number, self.events = b"", 0, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = None
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def _next(self, deadline):
        while b"\0" not in self._text:
            ready = select.select([self._from], [], [], max(0, deadline - time.monotonic()))[0]
            if not ready:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self._from, 1 << 20)
            if not piece:
                raise ConnectionError("the browser has ended")
            self._text += piece
        message, self._text = self._text.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, /, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            answer = self._next(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, event):
        deadline = time.monotonic() + 60
        while not any(one.get("method") == event for one in self.events):
            self.events.append(self._next(deadline))

    def open(self, path, width, height=900, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("Page.loadEventFired")

    def settle(self):
        """Until what was asked of the page is drawn."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0))))")

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def move_to(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def complaints(self):
        """What the console shows as errors, and requests that went anywhere but to the file."""
        self.value("0")  # whatever is under way arrives before its answer
        said = [one for one in self.events if one.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")]
        asked = [one for one in self.events if one.get("method") == "Network.requestWillBeSent"
                 and not one["params"]["request"]["url"].startswith("file:")]
        return said + asked

    def picture(self, path, first="body", last="body", margin=0):
        """From the top of the element `first` to the bottom of `last`, both selectors."""
        top, bottom, width = self.value(f"(() => {{ const of = name => document.querySelector(name).getBoundingClientRect();"
                                        f"return [of({first!r}).top + scrollY, of({last!r}).bottom + scrollY, document.documentElement.clientWidth]; }})()")
        clip = {"x": 0, "y": max(0, top - margin), "width": width, "height": bottom - top + 2 * margin, "scale": 1}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]))

    def print_to(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"]))


def main(page, picture, first, last):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, Chromium(profile) as browser:
        browser.open(pathlib.Path(page), 784)
        browser.picture(pathlib.Path(picture), "#" + first, "#" + last, margin=28)


if __name__ == "__main__":
    main(*sys.argv[1:])
