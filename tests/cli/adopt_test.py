#!/usr/bin/env python3
"""Machines that one run has rented and others use: `adopt` of rille.rent, `rille exec` and `rille attach`.
usage: adopt_test.py RILLE"""
import json, os, shutil, signal, subprocess, sys, tempfile, time

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-adopt-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


def rille_(*words, input=None):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=120, cwd=root, input=input)
    return r.returncode, r.stdout, r.stderr


def script(name, source):
    open(f"{root}/{name}.lua", "w").write('local rille = require "rille"\n' + source)
    return f"{root}/{name}.lua"


def run(source, *words):
    code, out, err = rille_("run", *words, script("script", source))
    return code, out + err


def leases():
    return json.loads(rille_("leases", "--json")[1])


def until(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return value


CPU = '{ gpu = "cpu", provider = "local", ttl = "2h", orphan_after = "2h" }'
ADOPT = '{ adopt = true, gpu = "cpu", provider = "local" }'
try:
    # A detached machine.
    code, out = run(f"""local box = rille.rent("keep", {CPU})
box:exec("note", {{ argv = {{ "sh", "-c", "mkdir sub; echo from the first run > sub/note" }} }})
box:detach("1h")""")
    kept = leases()
    check("a machine is detached", code == 0 and len(kept) == 1 and kept[0]["detached"], (out, kept))
    code, out = run(f'rille.rent("keep", {CPU})')
    check("its name rents no second machine", code == 1 and len(leases()) == 1 and
          f"'keep' is rented already: run {kept[0]['run']} has detached it until 20" in out, out)
    check("and the error has the ways out", 'rille.rent("keep", { adopt = true })' in out and
          f"rille release {kept[0]['id']}" in out, out)
    code, out, err = rille_("exec", "keep", "--", "cat", "sub/note")
    check("exec runs a program on it", (code, out) == (0, "from the first run\n"), (code, out, err))
    code, out, err = rille_("exec", "keep", "--cwd", "sub", "--", "ls", "-1")
    check("in a folder", (code, out) == (0, "note\n"), (code, out, err))
    check("with its exit code", rille_("exec", kept[0]["id"], "--", "sh", "-c", "exit 7")[0] == 7)
    check("or its signal", rille_("exec", "keep", "sh", "-c", "kill -9 $$")[0] == 137)
    code, out, err = rille_("--json", "exec", "keep", "--", "echo", "hi")
    check("as data", code == 0 and json.loads(out)["result"] == {"code": 0, "output": "hi\n", "signal": 0}, (out, err))
    for words, status, text in ((["exec", "kepe", "--", "ls"], 1, "did you mean keep?"),
                                (["exec", "keep"], 2, "the program is missing"),
                                (["exec", "keep", "--", "no-such-program"], 1, "no-such-program"),
                                (["attach", "other"], 1, "nothing that is rented is called 'other'")):
        code, out, err = rille_(*words)
        check(" ".join(words), code == status and text in err, (code, err))
    code, out, err = rille_("attach", "keep",
                            input='print(box.name, box:exec("x", { argv = { "cat", "sub/note" } }).code)')
    check("attach is the prompt with it", code == 0 and "keep\t0" in out and "from the first run" in out, (out, err))

    # Scripts use it, are killed and resumed, and leave it.
    die = f"""rille.step("die", {{ retry = 3 }}, function()
  local f = io.open("{root}/died")
  if not f then io.open("{root}/died", "w"):close() os.execute("kill -9 $PPID") os.execute("sleep 5") end
  f:close()
end)"""
    code, out = run(f"""local box = rille.rent("keep", {ADOPT})
print(box:call("read", function() return io.open("sub/note"):read() end))
box:stage("script.lua", "staged.lua")
for _, verb in ipairs {{ "replace", "resize" }} do
  local ok, err = pcall(box[verb], box, {{}})
  print(verb, ok, err.code)
end
print(pcall(rille.rent, "keep"))
{die}
print(#box:exec("again", {{ argv = {{ "cat", "staged.lua" }} }}).output > 100)""")
    check("a script uses it", code == -9 and "from the first run" in out and
          f"uses keep (local) of run {kept[0]['run']}" in out, out)
    check("and cannot replace it", "replace\tfalse\tborrowed" in out and "resize\tfalse\tborrowed" in out, out)
    check("nor rent its name", "false\tstate: 'keep' is rented already" in out, out)
    code, out, err = rille_("resume", "last")
    check("it is found again when the run is resumed", code == 0 and out.rstrip().endswith("true"), out + err)
    now = leases()
    check("and stays", len(now) == 1 and now[0]["id"] == kept[0]["id"] and now[0]["detached"] and
          now[0]["machine"] == kept[0]["machine"], now)
    code, out = run('rille.rent("keep", { adopt = true, gpu = "H100" })')
    check("a machine that does not fit is an error", code == 1 and "does not fit the options" in out, out)
    code, out = run('rille.rent("keep", { adopt = 5 })')
    check("so is another kind of value", code == 1 and
          "adopt = 5: expected true, false or the id of a lease" in out, out)
    code, out = run(f'rille.rent("keep", {ADOPT})', "--grant", "process", "--grant", "providers=local")
    check("it needs all grants", code == 1 and "needs the grant all" in out, out)

    # A live machine of a run that goes on.
    owner = script("owner", f"""local box = rille.rent("live", {CPU})
print("begun")
for i = 1, 3 do
  rille.signal("go " .. i)
  print(box:exec("own " .. i, {{ argv = {{ "echo", "own " .. i }} }}).code)
end""")

    def start(*words):
        p = subprocess.Popen([rille, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             cwd=root)
        return p

    p = start("run", owner)
    until("live", lambda: [l for l in leases() if l["name"] == "live" and l["state"] == "live"])
    mine = [r["id"] for r in json.loads(rille_("ps", "--json", "--state", "running")[1])][0]
    code, out = run(f"""local box = rille.rent("live", {ADOPT})
print(box:exec("hello", {{ argv = {{ "sh", "-c", "echo hello > hello; echo done" }} }}).output)
local ok, err = pcall(box.release, box)
print(ok, err.message)
print(pcall(box.detach, box, "1h"))""")
    check("another run uses it", code == 0 and "done" in out, out)
    check("but does not end it", f"box:release: 'live' belongs to run {mine}, and is only used here" in out and
          "box:detach: 'live' belongs to run" in out, out)
    rille_("signal", mine, "go 1")
    check("its own run goes on", until("signal 2", lambda: "go 2" in json.dumps(
        json.loads(rille_("show", mine, "--json")[1])["entries"])), rille_("show", mine))
    p.kill()
    p.communicate()
    code, out, err = rille_("exec", "live", "--", "cat", "hello")
    check("exec works while no process runs it", (code, out) == (0, "hello\n"), (code, out, err))
    p = start("resume", mine)
    rille_("signal", mine, "go 2")
    until("signal 3", lambda: "go 3" in json.dumps(json.loads(rille_("show", mine, "--json")[1])["entries"]))
    code, out, err = rille_("exec", "live", "--", "cat", "hello")
    check("and after it was resumed", (code, out) == (0, "hello\n"), (code, out, err))
    e = start("exec", "live", "--", "sh", "-c", "echo begun; trap 'echo asked; exit' TERM; sleep 100 & wait")
    while e.stdout.readline() not in ("begun\n", ""):
        pass
    e.send_signal(signal.SIGINT)
    out = e.communicate(timeout=60)[0]
    check("Ctrl-C ends the program, not the machine", e.returncode == 130 and
          [l for l in leases() if l["name"] == "live"], (e.returncode, out))

    # A name that several have.
    code, out = run(f'rille.rent("live", {CPU}):detach("1h")')
    both = [l for l in leases() if l["name"] == "live"]
    code, out = run(f'rille.rent("live", {ADOPT})')
    check("several leases of a name are listed", len(both) == 2 and code == 1 and
          "2 leases are called 'live'" in out and all(l["id"] in out for l in both), out)
    check("also by exec", "2 leases have the name 'live'" in rille_("exec", "live", "ls")[2])
    other = [l for l in both if l["run"] != mine][0]
    code, out = run(f'print(rille.rent("live", {{ adopt = "{other["id"]}" }}).machine)')
    check("an id names one", code == 0 and other["machine"] in out, out)
    code, out = run('rille.rent("live", { adopt = "l-000000000000" })')
    check("an unknown one is an error", code == 1 and "no live lease 'live' has the id l-000000000000" in out, out)
    rille_("signal", mine, "go 3")
    out = p.communicate(timeout=60)[0]
    check("the owner ends well, and releases its own", p.returncode == 0 and
          [l["id"] for l in leases() if l["name"] == "live"] == [other["id"]], out)
    code, out = run(f'rille.rent("live", {ADOPT}):release()')
    check("a detached one can be released", code == 0 and not [l for l in leases() if l["name"] == "live"], out)
    code, out = run(f'print("machine", rille.rent("live", {ADOPT}).machine)')
    check("without one it rents, and releases at the end", code == 0 and "machine\ti-" in out and
          not [l for l in leases() if l["name"] == "live"], out)
    code, out, err = rille_("release", "keep")
    check("nothing is left", code == 0 and leases() == [], (err, leases()))
finally:
    rille_("release", "keep")
    rille_("release", "live")
    shutil.rmtree(root, ignore_errors=True)
finish()
