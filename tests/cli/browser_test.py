#!/usr/bin/env python3
"""The report's page and the live pages in a headless Chromium: what is read, hovered and filtered there is what the
journal says. usage: browser_test.py RILLE. Needs Debian's chromium."""
import json, os, re, shutil, signal, subprocess, sys, tempfile, time

from browser import Browser
from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-browser-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", RILLE_DEVICE="cpu")
program = shutil.which("chromium")
if not program:
    print("the browser's tests need chromium: apt-get install chromium", file=sys.stderr)
    sys.exit(1)


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=300, cwd=root)
    return r.stdout if r.returncode == 0 else r.stdout + r.stderr


def script(name, text):
    with open(f"{root}/{name}", "w") as f:
        f.write('local rille = require "rille"\n' + text)


TRAINING = """
local box = rille.rent("trainer", { provider = "local", gpu = "cpu" })
box:call("train", function()
  local rille = require "rille"
  local model = rille.nn.linear(2, 1, { seed = 1 })
  local opt = rille.optim.sgd(model:parameters(), { lr = 0.1 })
  local x = rille.device():ones { 4, 2 }
  local function update(y)
    local loss = model(y):pow(2):mean()
    loss:backward()
    opt:step()
    return loss
  end
  return rille.train { steps = 60, checkpoint = { every = 10, state = { model, opt } }, update = update,
    data = { next = function() return x end } }
end)
for i = 1, 150 do rille.step(i % 50 == 0 and "rare" or "usual", function() return i end) end
pcall(rille.step, "broken", function() error("<img src=x>") end)
"""
ROWS = "document.querySelectorAll('#entries tbody tr').length"


def look_at_report(b, run_id):
    report = json.loads(run("report", run_id, "--json"))
    report = report[0] if isinstance(report, list) else report
    run("report", run_id, "--html", "page.html")
    b.open(f"file://{root}/page.html")
    check("the page is drawn", b.until("document.querySelector('[data-drawn-ms]') !== null"), b.complaints)
    shown = b.value("document.body.innerText")
    check("the head has the run and its state", run_id in shown and report["run"]["state"] in shown, shown[:400])
    story = b.value("[...document.querySelectorAll('#story li span')].map(e => e.textContent)")
    check("the story is the journal's", story == [s["text"] for s in report["story"]], story)
    written = [s for s in story if "checkpoint" in s]  # the runner may have seen the newest alone
    check("checkpoints that follow one another are one sentence", len(written) == 1 and
          re.fullmatch(r"\d checkpoints, steps \d+ to 60|checkpoint at step 60", written[0]), story)
    points = [p for s in report["series"] if s["name"] == "loss" for p in s["points"]]
    b.hover("figure[data-chart=loss] .plot", 0.999)
    readout = b.value("document.querySelector('figure[data-chart=loss] .readout').textContent")
    step, value = readout.split(": ")
    check("hovering a chart tells the point there", int(step) == points[-1][0] and
          abs(float(value.split()[0]) - points[-1][2]) <= 1e-2 * abs(points[-1][2]), (readout, points[-1]))
    b.key("Home")
    b.value("document.querySelector('figure[data-chart=loss] .plot').focus()")
    b.key("Home")
    readout = b.value("document.querySelector('figure[data-chart=loss] .readout').textContent")
    check("and so does a key", int(readout.split(": ")[0]) == points[0][0], readout)
    check("100 entries are shown first", b.value(ROWS) == 100, b.value(ROWS))
    b.type("#entries input[type=search]", "rare")
    found = [e for e in report["entries"] if "rare" in (e["key"] + e["kind"] + e["source"]).lower()]
    check("a filter by words", b.until(f"{ROWS} === {len(found)}") and len(found) == 3, (b.value(ROWS), len(found)))
    b.value("(() => { const s = document.querySelector('#entries input'); s.value = ''; "
            "s.dispatchEvent(new Event('input')); const t = document.querySelector('#entries select'); "
            "t.value = 'failed'; t.dispatchEvent(new Event('change')); })()")
    text = b.value("document.querySelector('#entries tbody').innerText")
    check("a filter by state; texts stay texts", b.value(ROWS) == 1 and "<img src=x>" in text and
          b.value("document.querySelectorAll('img').length") == 0, text)
    nameless, count = b.nameless()
    check("each control has a name for a screen reader", not nameless and count > 20, (nameless, count))
    b.ask("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=2, mobile=True)
    wide = b.until("document.documentElement.scrollWidth <= 360") or \
        b.value("document.documentElement.scrollWidth")
    check("on a phone nothing is wider than the screen", wide is True, wide)
    b.ask("Emulation.clearDeviceMetricsOverride")


def look_at_live_pages(b, run_id):
    served = subprocess.Popen([rille, "serve", "--json", "--listen", "127.0.0.1:0"], env=env, cwd=root, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        address = json.loads(served.stdout.readline())["address"]
        b.open(address)
        check("the list has the run", b.until(f"document.querySelector('#runs')?.innerText.includes('{run_id}')"))
        script("second.lua", 'rille.step("one", function() return 1 end)\nprint(rille.signal("go"))\n')
        waiting = subprocess.Popen([rille, "run", "second.lua"], env=env, cwd=root, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        check("a run that begins appears by itself",
              b.until("document.querySelectorAll('#runs tbody tr').length === 2"))
        second = json.loads(run("ps", "--json"))[0]["id"]
        b.open(address + "run/" + second)
        check("its page is live", b.until("document.body.innerText.includes('running')"))
        b.until(f"{ROWS} === 2")
        run("signal", "last", "go")
        waiting.wait(60)
        check("and tells its end", b.until("document.querySelector('h1').innerText.includes('done')"),
              b.value("document.querySelector('h1').innerText"))
    finally:
        served.send_signal(signal.SIGINT)
        served.wait(30)


browser = None
try:
    script("training.lua", TRAINING)
    said = run("run", "training.lua")
    first = json.loads(run("ps", "--json"))[0]["id"]
    browser = Browser(program, root + "/profile")
    look_at_report(browser, first)
    script("large.lua", "for i = 1, 10000 do rille.step('s', function() return i end) end\n")
    run("run", "large.lua")
    run("report", "last", "--html", "large.html")
    began = time.monotonic()
    browser.open(f"file://{root}/large.html")
    browser.until(f"{ROWS} === 100")
    print(f"# 10,000 steps are drawn after {time.monotonic() - began:.2f} s")
    run("rm", "last")
    look_at_live_pages(browser, first)
    check("the pages have no errors", browser.complaints == [], browser.complaints)
finally:
    if browser:
        browser.end()
    shutil.rmtree(root, ignore_errors=True)
finish()
