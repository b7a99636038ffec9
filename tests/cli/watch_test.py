#!/usr/bin/env python3
"""`rille watch` and `rille schedule` with the real command. usage: watch_test.py RILLE"""
import json, os, random, re, shutil, signal, sqlite3, subprocess, sys, tempfile, time

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-watch-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", ROOT=root)


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=60, cwd=root)
    return r.returncode, r.stdout + r.stderr


def script(name, source):
    open(f"{root}/{name}.lua", "w").write('local rille = require "rille"\n' + source)
    return f"{root}/{name}.lua"


def lines(name):
    path = f"{root}/{name}"
    return open(path).read().split() if os.path.exists(path) else []


def runs(**like):
    found = json.loads(subprocess.run([rille, "ps", "--json", "-n", "1000"], env=env, capture_output=True,
                                      text=True).stdout)
    return [r for r in found if all(r.get(k) == v for k, v in like.items())]


def until(what, condition, seconds=40):
    """Looks until it holds; the last value either way."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return value


def watch(*words):
    return subprocess.Popen([rille, "watch", *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, cwd=root, start_new_session=True)


mark = """
local function mark(name, text)
  local f = io.open(os.getenv "ROOT" .. "/" .. name, "a") f:write(text or "x", "\\n") f:close()
end
local function there(name)
  local f = io.open(os.getenv "ROOT" .. "/" .. name)
  if f then f:close() end
  return f ~= nil
end
"""

tick = script("tick", mark + """
local args = rille.args { name = "ticks" }
rille.step("mark", { effect = "once" }, function() mark(args.name, rille.run_id) end)""")

number = script("number", "rille.args { steps = 3 }")
for words, code, text in (
        (["schedule", "add", "n", "never", tick], 2, "is not a time plan"),
        (["schedule", "add", "n", "0 25 * * *", tick], 2, "'25' is not a valid hour"),
        (["schedule", "add", "n", "every 1h", "nothing.lua"], 2, "there is no script"),
        (["schedule", "add", "a b", "every 1h", tick], 2, "cannot be the name"),
        (["schedule", "add", "n", "every 1h", tick, "x"], 2, "is not an option for the script"),
        (["schedule", "add", "--missed", "all", "n", "every 1h", tick], 2, "cannot be combined with overlap"),
        (["schedule", "add", "n", "every 1h", tick, "--nmae", "x"], 2, "did you mean --name?"),
        (["schedule", "add", "n", "every 1h", number, "--steps", "ten"], 2, "--steps ten: expected a number"),
        (["schedule", "remove", "n"], 1, "there is no schedule"),
        (["schedule", "add", "nightly", "0 3 * * *", tick, "--name", "night"], 0, "T03:00:00Z"),
        (["schedule", "add", "nightly", "0 4 * * *", tick], 1, "there is a schedule"),
        (["schedule", "remove", "nihgtly"], 1, "did you mean nightly"),
        (["schedule"], 0, "nightly"),
        (["watch", "--gc", "soon"], 2, "soon"),
        (["watch", "--gc", "1ms"], 2, "one second or more")):
    got, out = run(*words)
    check(" ".join(words[:4]), got == code and text in out, (got, out))
listed = json.loads(run("schedule", "--json")[1])
check("a schedule as data", len(listed) == 1 and listed[0]["args"] == {"name": "night"}, listed)
check("and removed", run("schedule", "remove", "nightly")[0] == 0 and "no schedules yet" in run("schedule")[1])

# What is due starts; Ctrl-C ends the watch, and no run with it.
waits = script("waits", 'return rille.signal("go")')
run("schedule", "add", "tick", "every 1s", tick)
run("schedule", "add", "waits", "every 1s", waits)
w = watch()
check("runs start by themselves", until("ticks", lambda: len(lines("ticks")) >= 2), lines("ticks"))
check("a run that is under way", until("waiting", lambda: runs(script=waits, state="running")), runs())
by_then = len(lines("ticks"))
check("and others go on", until("two more ticks", lambda: len(lines("ticks")) >= by_then + 2), lines("ticks"))
code, out = run("watch", "--once")
check("one watch per home", code == 1 and f"process {w.pid} already runs rille watch" in out, out)
os.killpg(w.pid, signal.SIGINT)
out = w.communicate(timeout=30)[0]
check("Ctrl-C ends it well", w.returncode == 0 and "runs that it has started go on" in out, (w.returncode, out))
check("it says what it starts", "started run tick-2" in out, out)
check("a tick passes while the last run goes on", "waits is not run for" in out, out)
waiting = runs(script=waits, state="running")
check("its runs go on", len(waiting) == 1, waiting)
run("signal", waiting[0]["id"], "go", "7")
check("to their end", until("done", lambda: runs(id=waiting[0]["id"], state="done")), runs(id=waiting[0]["id"]))
check("ids are made of the time", re.fullmatch(r"waits-\d{8}T\d{6}Z", waiting[0]["id"]), waiting)
check("what a started run prints is kept", os.path.exists(f"{root}/home/runs/{waiting[0]['id']}/watch.log"))
run("schedule", "remove", "waits")

run("schedule", "add", "--overlap", "cancel", "again", "every 1s", waits)
w = watch()
check("the next one ends the last one", until("cancelled", lambda: runs(script=waits, state="cancelled")), runs())
w.send_signal(signal.SIGTERM)
out = w.communicate(timeout=30)[0]
run("schedule", "remove", "again")
check("and says so", w.returncode == 0 and "cancelled run again-2" in out and "the next one is due" in out, out)
for r in runs(script=waits, state="running"):
    run("signal", r["id"], "go")
until("done", lambda: not runs(script=waits, state="running"))

fails = script("fails", 'error("the disk is on fire")')
run("schedule", "add", "fails", "every 1s", fails)
w = watch()
check("a run fails, and the next one begins", until("two", lambda: len(runs(script=fails)) >= 2), runs(script=fails))
w.send_signal(signal.SIGTERM)
out = w.communicate(timeout=30)[0]
run("schedule", "remove", "fails")
check("the watch says why", re.search(r"run fails-\w+: failed: .*the disk is on fire", out), out)

# An altered journal names another process, or a group: in 32 bits 2 ** 32 - N is -N, the group of process N.
run("schedule", "add", "--overlap", "cancel", "altered", "every 1s", waits)
w = watch()
until("running", lambda: runs(script=waits, state="running"))
w.send_signal(signal.SIGTERM)
w.communicate(timeout=30)
altered = runs(script=waits, state="running")[0]["id"]
for named, program in ((lambda process: process, ["sleep", "1000"]),
                       (lambda process: 2 ** 32 - process, ["sleep", "1000"]),
                       (lambda process: process, ["sh", "-c", "read x", "rille"])):
    bystander = subprocess.Popen(program, stdin=subprocess.PIPE, start_new_session=True)
    pid = named(bystander.pid)
    with sqlite3.connect(root + "/home/journal.db") as db:
        db.execute("update runs set pid = ? where id = ?", (pid, altered))
    db.close()
    said = until("due", lambda: [out for out in [run("watch", "--once")[1]] if f"run {altered}" in out])
    check(f"process {pid} ({program[0]}) is not one of Rille's and gets no signal", said and
          "not the `rille` command" in said[0] and "cancelled" not in said[0] and bystander.poll() is None, said)
    code, out = run("cancel", altered)
    check("neither by rille cancel", code == 1 and "not the `rille` command" in out and bystander.poll() is None, out)
    bystander.kill()
    bystander.wait()
run("schedule", "remove", "altered")
run("signal", altered, "go")
until("done", lambda: not runs(script=waits, state="running"))

# Killed again and again, it starts each tick once.
rng = random.Random(5)
for _ in range(12):
    w = watch("--json")
    time.sleep(rng.uniform(0.05, 0.6))
    w.kill()
    w.communicate()
run("schedule", "remove", "tick")
check("what it had begun is begun by the next",
      until("done", lambda: (run("watch", "--once"), not [r for r in runs(script=tick) if r["state"] != "done"])[1]),
      runs())
ticks = lines("ticks")
check("each tick ran once", len(ticks) == len(set(ticks)) and len(ticks) >= 3, ticks)
check("and each is a run", sorted(ticks) == sorted(r["id"] for r in runs(script=tick)), (ticks, runs()))

# Runs whose process died.
dies = script("dies", mark + """
rille.step("first", function() mark("first") end)
rille.step("second", function() if not there("survives") then os.execute("kill -9 $PPID") end mark("second") end)""")
code, out = run("run", dies)
check("a process dies", code == -9 and runs(script=dies)[0]["state"] == "interrupted", (code, runs()))
open(dies, "a").write("\n-- edited\n")
code, out = run("--json", "watch", "--once")
check("a run whose script has changed is left alone", "given_up" in out and "has changed since it began" in out, out)
code, out = run("watch", "--once")
check("that is said once", "left alone" not in out, out)
text = open(dies).read()
open(dies, "w").write(text.replace("\n-- edited\n", ""))
open(root + "/survives", "w").close()
code, out = run("watch", "--once", "--no-resume")
check("nothing is resumed where that is not wished", "resumed" not in out, out)
code, out = run("watch", "--once")
check("a run is resumed", "resumed run" in out, out)
check("and ends", until("done", lambda: runs(script=dies, state="done")), runs(script=dies))
check("what was done is not done again", lines("first") == ["x"] and lines("second") == ["x"], lines("first"))

# A run that was suspended is left to people, until it is handed over: then once.
waits = script("waits", """
print("ready")
local v = rille.signal("go")
rille.signal("on")
return v""")
p = subprocess.Popen([rille, "run", waits], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                     cwd=root)
p.stdout.readline()
p.send_signal(signal.SIGTERM)
p.wait(timeout=30)
held = [r["id"] for r in runs(state="suspended") if r["script"] == waits][0]


def state():
    return [r["state"] for r in runs(id=held)][0]


code, out = run("watch", "--once")
check("a suspended run is left alone", code == 0 and held not in out and state() == "suspended", out)
code, out = run("watch", "--take", held)
check("it is handed over, and nothing else happens", code == 0 and "goes on with it" in out and
      "nothing watches now" in out and state() == "suspended", out)
run("signal", held, "go", "5")
code, out = run("watch", "--once")
check("the watch resumes it", code == 0 and "resumed run " + held in out, out)
check("and it goes on", until("past go", lambda: any(
    e["name"] == "go" for e in json.loads(run("show", held, "--json")[1])["entries"])) and
      state() == "running", state())
code, out = run("watch", "--take", held)
check("what runs cannot be handed over", code == 1 and "is not suspended" in out, out)
os.kill(int(open(f"{root}/home/runs/{held}/lock").read()), signal.SIGTERM)
check("suspended once more", until("suspended", lambda: state() == "suspended"), state())
code, out = run("watch", "--once")
check("it is left to people again", code == 0 and held not in out and state() == "suspended", out)
code, out = run("watch", "--take", held, "--json")
check("as data", code == 0 and json.loads(out[:out.rindex("}") + 1]) == {"handed_over": True, "run": held}, out)
run("signal", held, "on", "1")
code, out = run("watch", "--once")
check("and comes to its end", until("done", lambda: state() == "done"), (out, state()))
check("a run that is over cannot be handed over", run("watch", "--take", held)[0] == 1)

shutil.rmtree(root)
finish()
