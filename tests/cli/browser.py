"""Chromium without a window, driven over a pipe by its DevTools protocol
(https://chromedevtools.github.io/devtools-protocol)."""
import json, os, select, subprocess, time


class Browser:
    def __init__(self, program, folder):
        command_end, self.commands = os.pipe()
        self.answers, answer_end = os.pipe()

        def place():  # Chromium reads commands from descriptor 3 and answers on 4
            high = [os.dup(command_end), os.dup(answer_end)]
            for to, from_ in ((3, high[0]), (4, high[1])):
                os.dup2(from_, to)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1200,900",
             "--disable-dev-shm-usage", "--no-first-run", "--user-data-dir=" + folder, "--remote-debugging-pipe",
             "about:blank"], pass_fds=(3, 4), preexec_fn=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(command_end)
        os.close(answer_end)
        self.number, self.held, self.complaints = 0, b"", []
        page = self.ask("Target.createTarget", session=None, url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", session=None, targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(domain + ".enable")

    def message(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self.held:
            ready, _, _ = select.select([self.answers], [], [], max(0, end - time.monotonic()))
            data = os.read(self.answers, 1 << 20) if ready else b""
            if not data:
                raise AssertionError("the browser does not answer")
            self.held += data
        text, _, self.held = self.held.partition(b"\0")
        return json.loads(text)

    def ask(self, method, session="", **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if session == "":
            request["sessionId"] = self.session
        os.write(self.commands, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message(60)
            if answer.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.complaints.append(json.dumps(answer["params"])[:400])
            if answer.get("id") != self.number:
                continue
            if "error" in answer:
                raise AssertionError(f"{method}: {answer['error']}")
            return answer["result"]

    def open(self, address):
        self.ask("Page.navigate", url=address)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def value(self, expression):
        """Of a JavaScript expression."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']}"[:600])
        return result["result"].get("value")

    def until(self, expression, seconds=20):
        """The expression's value, once it is true."""
        end = time.monotonic() + seconds
        while True:
            value = self.value(expression)
            if value or time.monotonic() > end:
                return value
            time.sleep(0.05)

    def middle(self, selector, across=0.5):
        """Scrolls to an element; the place in the window, `across` of its width."""
        box = self.value(f"""(() => {{ const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{ block: "center" }}); const b = e.getBoundingClientRect();
            return [b.left, b.top, b.width, b.height]; }})()""")
        return box[0] + box[2] * across, box[1] + box[3] / 2

    def hover(self, selector, across=0.5):
        x, y = self.middle(selector, across)
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector):
        x, y = self.middle(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, selector, text):
        self.click(selector)
        self.ask("Input.insertText", text=text)

    def key(self, name):
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def nameless(self):
        """Controls and pictures that a screen reader could not name."""
        nodes = self.ask("Accessibility.getFullAXTree")["nodes"]
        roles = ("button", "link", "textbox", "searchbox", "combobox", "checkbox", "image", "application")
        asked = [n for n in nodes if not n.get("ignored") and n.get("role", {}).get("value") in roles]
        return [n["role"]["value"] for n in asked if not n.get("name", {}).get("value", "").strip()], len(asked)

    def end(self):
        try:
            self.ask("Browser.close", session=None)
        except (AssertionError, OSError):
            self.process.kill()
        self.process.wait(30)
