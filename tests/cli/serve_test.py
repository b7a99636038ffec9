#!/usr/bin/env python3
"""`rille serve`: its pages and its metrics say what the journal says, change when that changes, are for those with the
token alone, and no request changes anything. usage: serve_test.py RILLE"""
import hashlib, html.parser, http.client, json, os, shutil, signal, socket, ssl, subprocess, sys, tempfile

import exposition
from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-serve-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", RILLE_THREADS="1")
started = []


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=120, cwd=root)
    return r.returncode, r.stdout, r.stderr


def script(name, body):
    with open(f"{root}/{name}", "w") as f:
        f.write('local rille = require "rille"\n' + body)


class Served:
    """One `rille serve`."""

    def __init__(self, *words):
        self.process = subprocess.Popen([rille, "serve", "--json", *words], env=env, cwd=root, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.append(self.process)
        self.address = json.loads(self.process.stdout.readline())["address"]
        self.scheme, rest = self.address.split("://")
        self.host, self.token, _ = rest.split("/")
        self.port = int(self.host.rsplit(":", 1)[1])

    def ask(self, path, method="GET", token=None, context=None, body=None, **headers):
        """(status, body, headers) of the path below the token."""
        if context:
            to = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=context)
        else:
            to = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        start = "/" + (self.token if token is None else token) if token != "" else ""
        to.request(method, start + path, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = to.getresponse()
        out = answer.status, answer.read().decode(), dict(answer.getheaders())
        to.close()
        return out

    def data(self, path):
        status, body, _ = self.ask(path)
        return json.loads(body) if status == 200 else (status, body)

    def monitored(self):
        return exposition.read(self.ask("/metrics")[1])

    def end(self):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, err


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.inside = [], {}, None
        self.feed(text)
        self.data = json.loads(self.texts["script#report"])

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.elements.append((tag, attributes))
        self.inside = tag + ("#" + attributes["id"] if tag == "script" and "id" in attributes else "")

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside:
            self.texts[self.inside] = self.texts.get(self.inside, "") + data


def files():
    """What every file of the home has, but for the index that SQLite's readers share."""
    out = {}
    for at, _, names in os.walk(root + "/home"):
        for name in names:
            if not name.endswith("-shm"):
                with open(os.path.join(at, name), "rb") as f:
                    out[os.path.join(at, name)] = hashlib.sha256(f.read()).hexdigest()
    return out


def without_time(report):
    """What does not change by time alone."""
    return dict(report, environment=dict(report["environment"], made=""))


try:
    script("done.lua", """
for i = 1, 5 do rille.metric("loss", 5 / i, { step = i }) end
rille.metric("odd \\"name\\" \\\\", -1 / 0)
rille.step("s", function() return 7 end)
""")
    script("fails.lua", 'error("</script><script>alert(1)</script>")\n')
    run("run", "done.lua")
    run("run", "fails.lua")
    ids = {r["script"].split("/")[-1]: r["id"] for r in json.loads(run("ps", "--json")[1])}
    done, failed = ids["done.lua"], ids["fails.lua"]

    served = Served("--listen", "127.0.0.1:0")
    check("the address has a token of 24 random bytes", served.scheme == "http" and len(served.token) == 48 and
          served.host.startswith("127.0.0.1:"), served.address)
    mode = os.stat(root + "/home/serve.token").st_mode & 0o777
    check("which is kept for its owner alone", mode == 0o600, oct(mode))
    before = files()

    # The list.
    status, body, headers = served.ask("/")
    page = Page(body)
    check("the list is a page", status == 200 and headers["Content-Type"] == "text/html; charset=utf-8", headers)
    check("of every run", [(r["id"], r["state"], r["name"]) for r in page.data["runs"]] ==
          [(failed, "failed", "fails.lua"), (done, "done", "done.lua")], page.data)
    check("and of what is rented", page.data["leases"] == [] and page.data["home"] == root + "/home", page.data)
    check("that asks for its news", dict(page.elements[[e[0] for e in page.elements].index("body")][1]) ==
          {"data-live": "list.json"}, page.elements)
    check("its data are the same", served.data("/list.json") == page.data)

    # A run's page is that of `rille report`.
    for id_ in (done, failed):
        status, body, headers = served.ask("/run/" + id_)
        page, report = Page(body), json.loads(run("report", id_, "--json")[1])
        check("a run's page has the report", status == 200 and len(page.data) == 1 and
              without_time(page.data[0]) == without_time(report), body[:300])
        data = served.data(f"/run/{id_}.json")
        check("and so have its data", without_time(data[0]) == without_time(report), data)
    policy = [a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"][0]
    check("its policy lets it ask its own server alone", "default-src 'none'" in policy and
          policy.endswith("; connect-src 'self'") and "unsafe" not in policy, policy)
    check("a file's policy lets it ask nobody", "connect-src" not in run("report", done, "--html", "-")[1])
    check("texts are texts", [t for t, _ in page.elements].count("script") == 2, page.elements)
    status, body, _ = served.ask(f"/run/{done},{failed}")
    check("two runs are compared", [r["run"]["id"] for r in Page(body).data] == [done, failed], body[:300])
    for wrong in ("/run/nothing", "/run/", "/run/,", "/run/" + ",".join([done] * 21), "/run/../list.json", "/x",
                  "/list.json/", "//"):
        status, body, _ = served.ask(wrong)
        check(f"{wrong[:40]} is no page", status == 404 and body.strip(), (status, body))
    check("the address without its last / leads there", served.ask("")[::2][1].get("Location") == f"/{served.token}/")

    # Data have a version.
    for path in ("/list.json", f"/run/{done}.json"):
        status, body, headers = served.ask(path)
        version = headers["ETag"]
        check(f"{path[:9]}: what is known is not sent again",
              served.ask(path, If_None_Match=version)[:2] == (304, ""), version)
    run("run", "done.lua")
    status, body, headers = served.ask("/list.json")
    check("a new run is a new version", headers["ETag"] != version and len(json.loads(body)["runs"]) == 3, body[:300])

    # Who may ask.
    wrong = ("0" if served.token[0] != "0" else "1") + served.token[1:]
    for token in (wrong, "", served.token[:-1], served.token + "0", "%" + served.token[1:], served.token.upper() + "x"):
        for path in ("/", "/list.json", f"/run/{done}", "/metrics"):
            status, body, _ = served.ask(path, token=token)
            if status != 403 or "rille serve" not in body:
                check(f"{token} {path} is refused", False, (status, body))
    check("without the token every path is refused", True)
    check("a monitor may send it as a header", served.ask("/metrics", token="",
          Authorization="Bearer " + served.token)[0] == 200)
    check("a wrong one is refused", served.ask("/metrics", token="", Authorization="Bearer " + wrong)[0] == 403)
    for host in ("rebound.example", "10.0.0.1", f"127.0.0.1.rebound.example:{served.port}"):
        status, body, _ = served.ask("/", Host=host)
        check(f"the name {host} is refused", status == 403 and "not a name of this server" in body, (status, body))
    check("localhost is a name of it", served.ask("/", Host=f"localhost:{served.port}")[0] == 200)
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        status, body, headers = served.ask("/", method=method, body=b"")
        check(f"{method} is refused", status == 405 and headers["Allow"] == "GET, HEAD", (status, body))
    check("HEAD has the head alone", served.ask("/", method="HEAD")[:2] == (200, ""))
    for name, value in (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
                        ("X-Frame-Options", "DENY"),
                        ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Resource-Policy", "same-origin")):
        check(f"every answer has {name}: {value}", all(served.ask(path, token=t)[2].get(name) == value
              for path, t in (("/", None), ("/x", None), ("/", wrong))))

    # A run that goes on.
    run("rm", json.loads(run("ps", "--json")[1])[0]["id"])
    script("goes_on.lua", """
local box = rille.rent("box", { gpu = "cpu", provider = "local" })
rille.metric("loss", 3)
rille.signal("first")
rille.metric("loss", 2)
rille.signal("second")
""")
    process = subprocess.Popen([rille, "run", "goes_on.lua"], env=env, cwd=root, stderr=subprocess.DEVNULL)
    started.append(process)

    def waits_for(name):
        """The data of the page once the run waits for that signal."""
        while process.poll() is None:
            listed = served.data("/list.json")["runs"][0]
            if listed["name"] == "goes_on.lua":
                data = served.data(f"/run/{listed['id']}.json")[0]
                if [e["name"] for e in data["entries"] if e.get("open") and e["kind"] == "signal"] == [name]:
                    return data
        raise RuntimeError("the run has ended")

    report = waits_for("first")
    live = report["run"]["id"]
    path = f"/run/{live}.json"
    loss = lambda report: [p[2] for s in report["series"] if s["name"] == "loss" for p in s["points"]]
    check("a page shows a run that goes on", report["run"]["state"] == "running" and loss(report) == [3], report["run"])
    listed = served.data("/list.json")
    check("the list shows what is rented", [(l["name"], l["state"], l["run"]) for l in listed["leases"]] ==
          [("box", "live", live)], listed["leases"])
    found = served.monitored()
    states = {labels["state"]: value for labels, value in found["rille_runs"]}
    counted = [s["state"] for s in json.loads(run("ps", "--json", "--all", "-n", "1000")[1])]
    check("metrics: runs by state", {s: n for s, n in states.items() if n} == {s: counted.count(s) for s in counted},
          (states, counted))
    check("metrics: leases", found["rille_leases"] == [({"provider": "local", "state": "live"}, 1)],
          found["rille_leases"])
    metric = {(l["run"], l["name"]): (l["source"], v) for l, v in found["rille_metric"]}
    check("metrics: the last values", metric[live, "loss"] == ("script", 3) and
          metric[done, "loss"] == ("script", 1) and metric[done, 'odd "name" \\'] == ("script", float("-inf")), metric)
    run("signal", live, "first")
    report = waits_for("second")
    check("the page has its news", loss(report) == [3, 2], report["series"])
    metric = {(l["run"], l["name"]): v for l, v in served.monitored()["rille_metric"]}
    check("and so has the monitor", metric[live, "loss"] == 2, metric)
    version = served.ask(path)[2]["ETag"]
    process.send_signal(signal.SIGKILL)
    process.wait()
    status, body, headers = served.ask(path, If_None_Match=version)
    check("a killed run is interrupted, although it wrote nothing", status == 200 and
          json.loads(body)[0]["run"]["state"] == "interrupted", (status, body[:200]))
    states = {labels["state"]: value for labels, value in served.monitored()["rille_runs"]}
    check("metrics: interrupted", (states["interrupted"], states["running"]) == (1, 0), states)
    run("release", live)

    # GPUs, as an agent reports them.
    at = 1732787700000000
    with open(f"{root}/home/runs/{done}/metrics/call-1.jsonl", "w") as f:
        f.write('{"source":{"generation":1,"key":"main/c#1","lease":"trainer"}}\n')
        for gpu in (0, 1):
            for name, value in (("gpu_utilization", 90 + gpu), ("gpu_memory_bytes", (gpu + 1) << 30),
                                ("gpu_power_watts", 300.5)):
                f.write(json.dumps({"at_us": at, "gpu": gpu, "name": name, "value": value}) + "\n")
    found = served.monitored()
    gpus = {name: {l["gpu"]: v for l, v in samples} for name, samples in found.items() if name.startswith("DCGM_")}
    check("metrics: GPUs under the names and in the units of DCGM's exporter", gpus == {
        "DCGM_FI_DEV_GPU_UTIL": {"0": 90, "1": 91}, "DCGM_FI_DEV_FB_USED": {"0": 1024, "1": 2048},
        "DCGM_FI_DEV_POWER_USAGE": {"0": 300.5, "1": 300.5}}, gpus)

    # No request changes anything.
    before = files()
    for path in ("/", "/list.json", f"/run/{done}", f"/run/{done},{failed}.json", "/metrics", "/x"):
        for method in ("GET", "HEAD", "POST", "DELETE"):
            served.ask(path, method=method)
    check("no request changes a file", files() == before, set(files().items()) ^ set(before.items()))
    code, err = served.end()
    check("Ctrl-C ends it", code == 0, (code, err))

    # Started again.
    again = Served("--listen", f"127.0.0.1:{served.port}")
    check("the same address once more", again.address == served.address, (again.address, served.address))
    code, out, err = run("serve", "--listen", f"localhost:{served.port}")
    check("one address serves one", code == 1 and f"127.0.0.1:{served.port}" in err and "already in use" in err, err)
    # A client that says nothing holds up nobody.
    with socket.create_connection(("127.0.0.1", again.port)) as silent:
        silent.sendall(b"GET / HT")
        check("a silent client holds up nobody", again.ask("/")[0] == 200)
    for what, said in (("say nothing", b"GET / HT"), ("were refused", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")):
        others = [socket.create_connection(("127.0.0.1", again.port)) for _ in range(64)]
        for other in others:
            other.sendall(said)
        try:
            status = again.ask("/")[0]
        except OSError as e:
            status = e
        check(f"nor do 64 that {what}", status == 200, status)
        for other in others:
            other.close()
    again.process.send_signal(signal.SIGTERM)
    check("SIGTERM ends it", again.process.wait(timeout=30) == 0)

    # Mistakes.
    for words, why in ((["--listen", "7455"], "not an address with a port"),
                       (["--listen", "127.0.0.1"], "not an address with a port"),
                       (["--listen", "127.0.0.1:x"], "not an address with a port"),
                       (["--listen", "127.0.0.1:70000"], "not an address with a port"),
                       (["--listen", "::1:80"], "not an address with a port"),
                       (["--listen", "example.org:80"], "not an address with a port"),
                       (["--certificate", "x.pem"], "--key")):
        code, out, err = run("serve", *words)
        check(f"serve {' '.join(words)} is refused", code == 2 and why in err and not out, (code, err))
    code, out, err = run("serve", "--listen", "0.0.0.0:0")
    check("off the loopback without TLS is refused", code != 0 and "--certificate" in err and
          "0.0.0.0 can be reached from other machines" in err, (code, err))
    open(root + "/home/serve.token", "w").write("abc\n")
    code, out, err = run("serve", "--listen", "127.0.0.1:0")
    check("a broken token is not used", code == 1 and "serve.token" in err and "remove the file" in err, (code, err))
    os.remove(root + "/home/serve.token")

    # TLS.
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=rille test", "-addext", "subjectAltName=IP:127.0.0.1,DNS:board.example",
                    "-keyout", root + "/key.pem", "-out", root + "/cert.pem"], check=True, capture_output=True)
    secure = Served("--listen", "0.0.0.0:0", "--certificate", "cert.pem", "--key", "key.pem")
    context = ssl.create_default_context(cafile=root + "/cert.pem")
    check("https off the loopback", secure.scheme == "https" and secure.ask("/", context=context)[0] == 200,
          secure.address)
    check("a new token", secure.token != served.token)
    check("with the names of the certificate", secure.ask("/", context=context, Host="board.example:1")[0] == 200 and
          secure.ask("/", context=context, Host="localhost")[0] == 403)
    said = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{secure.port}", "-tls1_1", "-cipher",
                           "DEFAULT@SECLEVEL=0"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    check("TLS 1.1 is refused", said.returncode and "alert protocol version" in said.stderr, said.stderr)
    check("it ends", secure.end()[0] == 0)
    code, out, err = run("serve", "--certificate", "cert.pem", "--key", "cert.pem", "--listen", "127.0.0.1:0")
    check("a key that is none", code == 1 and "the key cert.pem" in err, (code, err))
finally:
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()
    shutil.rmtree(root, ignore_errors=True)
finish()
