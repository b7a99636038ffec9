#!/usr/bin/env python3
"""`rille report`: what the page and the trace say is what the journal says, whatever texts a run has.
usage: report_test.py RILLE"""
import base64, hashlib, html.parser, json, os, re, shutil, signal, subprocess, sys, tempfile, time

from remote_cloud import RentingCloud, offer, serve
from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-report-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", RILLE_THREADS="1")
HOSTILE = '</script><script>alert(1)</script><img src=x onerror=alert(2)>"\'&'
CONTROL = "\x1b]52;c;ZWNobyBoaQ==\x07\x1b[31mred\x1b[0m\u009b6n\u202ecod.exe\x08"


class Cloud(RentingCloud):
    stock = [offer("dollar", 3_200_000)]


server, remote = serve(Cloud)
remote["traits"].update(create_timeout_ms=500, visibility_lag_ms=0)
os.makedirs(root + "/config/rille")
with open(root + "/config/rille/providers.json", "w") as f:
    json.dump({"remote": remote}, f)


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=120, cwd=root)
    return r.returncode, r.stdout, r.stderr


def in_lua(text):
    return "".join(f"\\{b:03}" if b > 126 or b < 32 or b in (92, 34) else chr(b) for b in text.encode())


def script(name, body):
    with open(f"{root}/{name}", "w") as f:
        f.write('local rille = require "rille"\n' + body)


class Page(html.parser.HTMLParser):
    """The elements of a page with their attributes, and the texts of script, style and title."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.inside, self.text = [], {}, None, text
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


def page(*words):
    code, out, err = run("report", *words, "--html", "-")
    check(f"report {' '.join(words)} makes a page", code == 0 and out.startswith("<!doctype html>"), (code, err))
    return Page(out)


# A run that is killed while it waits, and then goes on.
script("story.lua", f"""
rille.budget {{ limit = 50 }}
rille.scope("work", function()
  local box = rille.rent("paid", {{ provider = "remote" }})
  rille.map("parts", {{ 1, 2 }}, function(i)
    rille.step("part", {{ retry = {{ attempts = 2, initial = "1ms" }} }}, function(try)
      if try < i then error("again") end
    end)
  end)
  box:release()
end)
local here = rille.rent("here", {{ provider = "local", gpu = "cpu" }})
here:exec("{in_lua(HOSTILE)}", {{ argv = {{ "printf", "%s", "{in_lua(CONTROL)}" }} }})
rille.step("trained", function() return {{ losses = {{ {{ step = 1, loss = 4.5 }},
    {{ step = 50, loss = 2.25 }} }} }} end)
pcall(rille.step, "{in_lua(CONTROL)}", function() error("{in_lua(HOSTILE + CONTROL)}") end)
print("{in_lua(HOSTILE)}")
rille.signal("go")
error("{in_lua(HOSTILE)} at last")
""")
try:
    said = open(root + "/said", "w+")
    process = subprocess.Popen([rille, "run", "story.lua", "--name", HOSTILE], env=env, cwd=root, stdout=said,
        stderr=said)
    while process.poll() is None:
        timeline = json.loads(run("show", "last", "--json")[1] or "{}").get("timeline", [])
        if timeline and timeline[-1]["kind"] == "signal":
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    said.seek(0)
    killed = page("last").data[0]
    check("a killed run is interrupted", killed["run"]["state"] == "interrupted" and
          "ended without a word" in killed["story"][-1]["text"], (killed["story"], said.read()))
    waits = [e for e in killed["entries"] if e.get("open")]
    check("what it waited for is not finished", [e["kind"] for e in waits] == ["signal"], waits)
    run("signal", "last", "go")
    code, out, err = run("resume", "last")
    check("it ends by its error", code == 1, (code, out, err))

    shown, whole = json.loads(run("show", "last", "--json")[1]), page("last")
    report = whole.data[0]
    check("of one run", len(whole.data) == 1 and report["run"]["id"] == shown["id"] and report["run"]["state"] ==
        "failed")
    check("every entry, with the journal's times",
          [(e["kind"], e["state"], e["attempt"], e["seconds"]) for e in report["entries"]] ==
          [(e["kind"], e["state"], e["attempt"], e["seconds"]) for e in shown["entries"]], report["entries"])
    check("names are kept", HOSTILE in [e["name"] for e in report["entries"]], [e["name"] for e in report["entries"]])
    leases = {l["name"]: l for l in json.loads(run("cost", "last", "--json")[1])}
    costs = {m["name"]: m["cost_micros"] for m in report["machines"]}
    check("every machine, with the ledger's cost", costs == {n: l["machines"][0]["cost_micros"] for n,
        l in leases.items()}
          and costs["paid"] == 3_200_000, (costs, leases))
    money = report["money"]
    check("the dollars over time add up", money["spent_micros"] == sum(p[2] for p in money["pieces"]) == 3_200_000 and
          money["limit_micros"] == 50_000_000, money)
    check("the loss that a training returned", report["series"] == [{
        "name": "loss", "source": "main/trained#1", "count": 2, "points": [[1, None, 4.5],
            [50, None, 2.25]]}], report["series"])
    story = [s["text"] for s in report["story"]]
    for part in ("began: ", "rented paid from remote at $3.20 per hour", "step main/parts[2]#1/part#1 failed",
                 "released paid", "resumed by process", "ended without a word", "failed: "):
        check(f"the story has '{part}'", any(part in s for s in story), story)
    check("in the order of time", [s["at"] for s in report["story"]] == sorted(s["at"] for s in report["story"]))
    check("the script, its log, its arguments", report["sources"][0]["text"] == open(root + "/story.lua").read() and
          HOSTILE in report["log"]["text"] and json.loads(report["run"]["args"])["name"] == HOSTILE, report["sources"])
    check("the error with its traceback", HOSTILE + " at last" in report["run"]["error"]["message"] and
          "story.lua" in report["run"]["error"]["traceback"], report["run"]["error"])
    check("the processes that ran it", report["environment"]["processes"] == 2, report["environment"])
    code, out, err = run("report", "last", "--json")
    same = json.loads(out)
    check("--json is the same", same["entries"] == report["entries"] and same["money"] == money, err)

    # Nothing in it can end its place, and no control character is left.
    tags = [tag for tag, _ in whole.elements]
    check("no element comes from a text", tags.count("script") == 2 and "img" not in tags and set(tags) == {
        "html", "head", "meta", "title", "style", "body", "main", "noscript", "p", "code", "script"}, tags)
    check("no control characters", not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]",
        whole.text) and
          "^[]52;c;" in whole.text and "\\\\u202ecod.exe" in whole.text)
    policy = next(a["content"] for tag, a in whole.elements if a.get("http-equiv") == "Content-Security-Policy")
    for what in ("script", "style"):
        hashed = base64.b64encode(hashlib.sha256(whole.texts[what].encode()).digest()).decode()
        check(f"the policy allows this {what} alone", f"{what}-src 'sha256-{hashed}'" in policy, policy)
    check("it loads nothing", "default-src 'none'" in policy and not any(
        name in a for _, a in whole.elements for name in ("src", "href")), whole.elements)

    code, out, err = run("report", "last", "--html", "x/y.html")
    check("a folder that is missing", code == 1 and "x/y.html" in err, err)
    code, out, err = run("report", "last")
    made = [f for f in os.listdir(root) if f.startswith("report-")]
    check("without a name it is here", code == 0 and made == [f"report-{shown['id']}.html"] and made[0] in err,
        (made, err))
    code, out, err = run("report", "nothing")
    check("a wrong run", code == 1 and "there is no run 'nothing'" in err, err)

    # The trace.
    code, out, err = run("report", "last", "--trace", "-")
    trace = json.loads(out)["traceEvents"]
    spans = {(e["name"], e["ts"], e["dur"]) for e in trace if e["ph"] == "X"}
    expected = {(e["key"], round(e["start"] * 1e6), round(e["seconds"] * 1e6)) for e in report["entries"]}
    expected |= {(m["name"], round(m["start"] * 1e6), round(m["seconds"] * 1e6)) for m in report["machines"]}
    check("the trace has every entry and machine", code == 0 and spans == expected, (spans, expected))
    tracks = {e["args"]["name"] for e in trace if e["ph"] == "M" and e["name"] == "thread_name"}
    check("a track for each fiber and machine", tracks == {e["fiber"] for e in report["entries"]} | {"paid 1",
        "here 1"}, tracks)
    check("the story as instants", [e["name"] for e in trace if e["ph"] == "i"] == story)

    # Two runs.
    script("two.lua", "local args = rille.args { n = 1 }\nrille.step('s', function() end)\nreturn args.n\n")
    run("run", "two.lua", "--n", "2")
    two = json.loads(run("ps", "--json")[1])[0]["id"]
    both = page(shown["id"], two)
    check("two runs are compared in one page", [r["run"]["id"] for r in both.data] == [shown["id"], two] and
          both.texts["title"].count(" and ") == 1, both.texts["title"])
    code, out, err = run("report", shown["id"], two, "--trace", "-")
    check("but a trace is of one", code == 1 and "--trace takes one run" in err, err)

    # A large one.
    script("large.lua", "for i = 1, 10000 do rille.step('s', function() return i end) end\n")
    run("run", "large.lua")
    large = page("last")
    check("10,000 steps", len(large.data[0]["entries"]) == 10_000 and len(large.text) < 6_000_000, len(large.text))

    # In a browser, where one is installed.
    browser = shutil.which("chromium")
    if browser:
        with open(root + "/page.html", "w") as f:
            f.write(whole.text)
        r = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + root +
            "/browser",
                            "--virtual-time-budget=5000", "--dump-dom", "file://" + root + "/page.html"],
                           capture_output=True, text=True, timeout=120)
        drawn = re.sub(r"<script.*?</script>", "", r.stdout, flags=re.S)
        check("it is drawn", "data-drawn-ms" in drawn, r.stderr[-2000:])
        check("with the journal's values", all(t in drawn for t in ("$3.20 of $50.00", ">loss</h3>",
            "resumed by process")), drawn[:3000])
        check("texts stay texts", "<img" not in drawn and "&lt;img src=x" in drawn)
        check("a row for each entry", drawn.count('<td class="mono">main/') >= len(report["entries"]),
            drawn.count("<td"))
finally:
    server.shutdown()
    shutil.rmtree(root, ignore_errors=True)
finish()
