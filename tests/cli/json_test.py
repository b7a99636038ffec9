#!/usr/bin/env python3
"""--json on every command, before and after its name: standard output is one JSON value, whatever happens, and nothing
else. A command that this test does not know fails it. usage: json_test.py RILLE"""
import json, os, re, shutil, signal, subprocess, sys, tempfile

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-json-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", RILLE_THREADS="1")


def read(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def command(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=60, cwd=root,
                       stdin=subprocess.DEVNULL)
    return r.returncode, r.stdout, r.stderr


def test(*words, code=0, has=None, bare=False):
    """Both orders; `has`: a key of the object, or of the first in the list."""
    for order in ([["--json", *words], [*words, "--json"]] if not bare else [["--json", *words]]):
        got, out, err = command(*order)
        value = read(out)
        first = value[0] if isinstance(value, list) and value else value
        check(" ".join(order), got == code and value is not None and (not has or has in first), (got, out[:300], err))
    return value


try:
    open(root + "/waits.lua", "w").write("""local rille = require "rille"
print("a line of the script's own")
local box = rille.rent("box", { gpu = "cpu" })
local v = rille.signal("go", { timeout = "10m" })
return { answer = v }
""")
    open(root + "/fails.lua", "w").write('error("on purpose")\n')
    open(root + "/ends.lua", "w").write('local rille = require "rille"\nrille.step("s", function() return 1 end)\n'
                                        'rille.step("t", function() return 2 end)\nreturn { x = 1 }\n')
    commands = re.findall(r"^  (\w+)  ", command("--help")[1], re.M)
    check("the list of commands is known", set(commands) == set(
        "cancel suspend "
        "run resume fork ps invalidate show logs leases release gc watch schedule cost budget audit offers signal "
        "quotas simulate plan doctor top repl agent rm cp checkpoint data completion volume check "
        "init exec attach report serve metrics estimate".split()), commands)

    test("run", "ends.lua", has="result", bare=True)
    done = json.loads(command("--json", "ps")[1])[0]["id"]
    test("ends.lua", has="result", bare=True)
    test("-e", "return 5", has="result", bare=True)
    test("run", "fails.lua", code=1, has="error", bare=True)
    test("nothing.lua", code=2, has="error", bare=True)
    waits = subprocess.Popen([rille, "--json", "run", "waits.lua"], env=env, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, cwd=root)
    while not json.loads(command("leases", "--json")[1]):
        pass
    waits.send_signal(signal.SIGTERM)
    out, err = waits.communicate(timeout=30)
    check("a run that is suspended says so, and the script's own lines go elsewhere",
          (read(out) or {}).get("state") == "suspended" and "a line of" in err, (out, err))
    run = read(out)["run"]

    test("ps", has="id")
    test("ps", "--state", "done", has="id")
    test("completion", "bash", has="text")
    open(root + "/wrong.lua", "w").write("local rille = require 'rille'\nrille.rnet()\n")
    test("check", "wrong.lua", code=1, has="message")
    test("check", "nothing.lua", code=1, has="error")
    test("init", "project", has="made", bare=True)
    test("cp", "nothing", "s3://bucket/x", code=1, has="error")
    test("checkpoint", code=2, has="error")
    test("checkpoint", "ls", "nothing", code=1, has="error")
    test("checkpoint", "verify", ".", code=1, has="error")
    test("checkpoint", "cp", "nothing", "to", code=1, has="error")
    test("checkpoint", "convert", "nothing", "x.safetensors", code=1, has="error")
    open(root + "/table.csv", "w").write("a,b\n1,x\n")
    test("data", code=2, has="error")
    test("data", "build", "table.csv", "--to", "columns", has="columns")
    test("show", run, has="entries")
    test("report", run, has="story")
    test("metrics", run)
    test("logs", run)
    test("leases", has="id")
    test("volume", "ls")
    test("volume", "rm", "nothing", code=1, has="error")
    test("cost")
    test("cost", run)
    test("budget", "set", "--month", "50", has="scope")
    test("budget", has="limit_micros")
    test("audit", has="events")
    test("offers", has="provider")
    test("offers", "--history")
    test("offers", "--list", has="list_price_of")
    test("estimate", "--gpu", "H100", "--hours", "8", has="plans")
    test("quotas")
    test("schedule", "add", "nightly", "0 3 * * *", "ends.lua", bare=True)
    test("schedule", has="name")
    test("schedule", "remove", "nightly", bare=True)
    test("signal", run, "other", "1", has="signal")
    test("plan", "ends.lua")
    test("simulate", "ends.lua", "-n", "2", has="runs")
    test("doctor")
    test("doctor", "--provider", "local", has="checks")
    test("doctor", "--provider", "aws", "--policy", has="policy")
    test("doctor", "--live", "local", has="steps")
    test("top", "--count", "1", "--interval", "10ms")
    test("gc", has="released")
    served = subprocess.Popen([rille, "serve", "--listen", "127.0.0.1:0", "--json"], env=env, stdout=subprocess.PIPE,
                              text=True, cwd=root)
    line = served.stdout.readline()
    served.send_signal(signal.SIGINT)
    check("serve: its address", "address" in (read(line) or {}) and served.communicate(timeout=30)[0] == "", line)
    code, out, err = command("watch", "--once", "--json")
    check("watch: one event per line", code == 0 and all(read(line) for line in out.splitlines()), (out, err))
    test("fork", done, "--from", "main/t#1", has="run", bare=True)
    test("invalidate", done, "main/t#1", has="run", bare=True)
    test("resume", done, has="result", bare=True)
    test("release", run, has="released", bare=True)
    test("rm", run, has="error", code=1)
    test("rm", done, has="removed", bare=True)
    test("rm", "nothing", code=1, has="error")
    for words in (["resume", "nothing"], ["show", "nothing"], ["release", "nothing"], ["signal", "nothing", "a", "1"],
                  ["fork", "nothing", "--from", "x"], ["invalidate", "nothing", "x"], ["cost", "nothing"]):
        test(*words, code=1, has="error")
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
