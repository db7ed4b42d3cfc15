#!/usr/bin/env python3
"""Opens the page of the leaderboard in Chromium, without a window, and uses it as a reader does.

    leaderboard_page.py PAGE [FOLDER]      prints `ok NAME` or `FAILED NAME`; FOLDER: screenshots at 1280 and 400 pixels

PAGE has at least two classes. Exit status 77: chromedriver is missing. It is driven by WebDriver over HTTP.
"""

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

WIDE = "return [document.documentElement.scrollWidth, window.innerWidth]"
ROWS = "return [...document.querySelectorAll('tr[data-name]')].filter(r => !r.hidden && r.closest('details').open).length"
TYPE = "const s = document.querySelector('input[type=search]'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))"


class Browser:
    def __init__(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.process = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{port}"
        words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        for _ in range(100):
            try:
                options = {"alwaysMatch": {"goog:chromeOptions": {"args": words}}}
                self.url += "/session/" + self.call("POST", "/session", {"capabilities": options})["sessionId"]
                return
            except OSError:
                time.sleep(0.2)
        raise SystemExit("chromedriver does not answer")

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def script(self, text, *words):
        return self.call("POST", "/execute/sync", {"script": text, "args": words})

    def click(self, selector):
        found = self.call("POST", "/element", {"using": "css selector", "value": selector})
        self.call("POST", f"/element/{next(iter(found.values()))}/click", {})

    def width(self, pixels, height=1200):
        values = {"width": pixels, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": values})

    def picture(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("GET", "/screenshot")))

    def close(self):
        self.call("DELETE", "")
        self.process.terminate()
        self.process.wait()


def use(browser, page, folder):
    def check(name, good):
        print(f"{'ok' if good else 'FAILED'} {name}", flush=True)

    browser.call("POST", "/url", {"url": "file://" + os.path.abspath(page)})
    for pixels in (1280, 400):
        browser.width(pixels)
        whole, seen = browser.script(WIDE)
        check(f"fits_{pixels}_pixels", whole <= seen == pixels)
        if folder:
            browser.width(pixels, browser.script("return document.documentElement.scrollHeight"))
            browser.picture(f"{folder}/{pixels}.png")
    first = browser.script("return document.querySelector('section').id")
    shown = f"return document.getElementById('{first}').offsetHeight > 0"
    browser.click(f"nav input[value={first}]")
    check("a_class_is_hidden", not browser.script(shown))
    browser.click(f"nav input[value={first}]")
    check("and_shown_again", browser.script(shown))
    check("workloads_are_folded", browser.script(ROWS) == 0)
    name = browser.script("return document.querySelector('tr[data-name]').dataset.name")
    browser.script(TYPE, name.upper())
    check("a_workload_is_found", browser.script(ROWS) >= 1)
    if folder:
        browser.picture(f"{folder}/found.png")
    browser.script(TYPE, "no such workload")
    check("none_is_found", browser.script(ROWS) == 0)
    check("the_count_says_so", browser.script("return document.querySelector('output').value").startswith("0 of "))
    browser.script(TYPE, "")
    check("all_are_folded_again", browser.script(ROWS) == 0)
    check("no_request_left_the_page", browser.script("return performance.getEntriesByType('resource').length") == 0)


def main():
    if not shutil.which("chromedriver"):
        print("chromedriver is not installed")
        sys.exit(77)
    browser = Browser()
    try:
        use(browser, sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
    finally:
        browser.close()


if __name__ == "__main__":
    main()
