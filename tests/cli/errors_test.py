#!/usr/bin/env python3
"""A new user's mistakes and accidents: each gives one clear structured message, a sensible exit
code, and no lost lease.
usage: errors_test.py RILLE"""
import http.server, json, os, re, shutil, signal, subprocess, sys, tempfile, threading, time

import need
from tap import check, finish

need.own_mounts()
rille = os.path.abspath(sys.argv[1])
repository = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
quickstart = repository + "/workflows/quickstart.lua"
root = tempfile.mkdtemp(prefix="rille-errors-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")
small = "--layers 1 --width 32 --heads 2 --every 5".split()
text = root + "/text.txt"
os.mkfifo(root + "/pipe")
open(text, "w").write("The quick brown fox jumps over the lazy dog. " * 3000)


def run(*words, stdin=None, **more):
    r = subprocess.run([rille, *words], env=dict(env, **more), capture_output=True, text=True, errors="replace",
                       timeout=120, cwd=root, stdin=stdin)
    return r.returncode, r.stdout + r.stderr


def script(source, *words):
    path = root + "/script.lua"
    open(path, "w").write('local rille = require "rille"\n' + source)
    return run("run", path, *words)


def nothing_rented():
    return "nothing is rented" in run("leases")[1]


def expect(name, result, code, *patterns):
    got, out = result
    missing = [p for p in patterns if not re.search(p, out)]
    errors = len(re.findall(r"^error \(", out, re.M))
    check(name, got == code and not missing and errors == 1 and nothing_rented(), (got, missing, errors, out[-900:]))


BOX = 'local box = rille.rent("b", { gpu = "any" })\n'
try:
    expect("a misspelt option of rent", script('rille.rent("b", { gpuu = "any" })'), 1, "invalid", "gpuu",
           "did you mean.*gpu", "script.lua:2")
    expect("a misspelt option of a call", script(BOX + 'box:call("f", { arg = 1 }, function() end)'), 1, "arg",
           "did you mean.*args")
    expect("a word for options", script('rille.rent("b", "any")'), 1, 'got "any"', 'gpu = "any" }')
    expect("a command line for argv", script(BOX + 'box:exec("ls -l")'), 1, "a table with argv, got nothing",
           'argv = { "ls", "-l" }')
    TENSOR = 'local x = rille.device("cpu"):ones { 2, 3 }\n'
    expect("PyTorch's way to a size", script(TENSOR + "return x.shape[1]"), 1, "attempt to index field 'shape'",
           r"hint: 'shape' is a function: .* x:shape\(\)\[1\]")
    expect("a tensor compared with a number", script(TENSOR + "return x < 2"), 1, "attempt to compare",
           r"hint: .*x:lt\(2\)")
    expect("nor the other way round", script(TENSOR + "return 2 < x"), 1, r"hint: .*x:lt\(2\)")
    before = run("ps", "--json")
    expect("a misspelt argument of the script", script('rille.args { steps = 3 }', "--stepz", "4"), 2, "stepz",
           "did you mean --steps", "no run is kept")
    expect("an argument of the wrong type", script('rille.args { steps = 3 }', "--steps", "many"), 2, "--steps many",
           "number")
    check("neither leaves a run", run("ps", "--json") == before)
    expect("one that is found after a step is a failed run", script('rille.step("a", function() end)\nrille.args {}',
                                                                    "--x"), 1, "no argument --x")
    check("which is kept", json.loads(run("ps", "--json")[1])[0]["state"] == "failed")
    code, out = script('print("fine")', "--stepz", "4")
    check("unused options are reported", code == 0 and "has read its options (--stepz)" in out, out)
    code, out = script('rille.args()', "--stepz", "4")
    check("but not when they are read", code == 0 and "has read" not in out, out)
    expect("an argument given twice", script('rille.args { steps = 3 }', "--steps", "4", "--steps=5"), 2,
           "--steps is given twice", "a,b,c")
    expect("a misspelt option of a command", run("ps", "--bogus"), 2, "ps does not take '--bogus'",
           "options: --help -h -n --all --state --version --json -e$")
    expect("a misspelt command", run("aduit"), 2, "there is no script 'aduit'", "did you mean.*rille audit")
    kept = json.loads(run("ps", "--json")[1])
    asked = script('rille.step("no", function() end)\nrille.args { steps = 3, lr = 1e-3, fast = false, to = "x" }\n'
                   'rille.rent("b", {})', "--help")
    listed = all(re.search(p, asked[1], re.M) for p in (r"^--steps NUMBER +3$", r"^--fast +false$", r"^--to TEXT +x$"))
    check("--help lists what a script takes", asked[0] == 0 and listed and nothing_rented(), asked)
    check("--help keeps no run", kept == json.loads(run("ps", "--json")[1]))
    expect("an error in a called function has both sides' frames", script("""
local box = rille.rent("b", { gpu = "any" })
local function top()
  local r = box:call("go", { args = 3 }, function(n)
    local function inner() error("bad " .. n) end
    inner()
  end)
  return r
end
top()"""), 1, r"(?s)bad 3.*:6: in function 'inner'\n.*:7: in the function at line 5\n  in the call 'go'\n.*:5: "
           r"in function 'top'\n.*:11: in the main chunk")
    script('local f = rille.spawn("f", function() return rille.step("tail", function() return 1 end) end)\nf:wait()')
    check("a step that is a tail call has a place", "script.lua:2" in run("show", "last")[1], run("show", "last")[1])
    open(root + "/remote.json", "w").write('{"remote": {"url": "http://127.0.0.1:1", "traits": {"token_lifetime": 5}}}')
    run_remote = lambda path: run("offers", RILLE_PROVIDERS=root + path)
    check("settings of a provider with an unknown trait", re.search("error \\(config\\).*token_lifetime = 5",
          run_remote("/remote.json")[1]), run_remote("/remote.json"))
    check("settings of a provider that are not there", "no-remote.json" in run_remote("/no-remote.json")[1])
    expect("a misspelt verb", script('rille.stpe("a", function() end)'), 1, "stpe", "did you mean.*step")
    expect("a misspelt global", script('prnt("x")'), 1, "prnt", "did you mean.*print")
    expect("a missing data file", run("run", quickstart, "--data", root + "/none.txt", *small), 1, "none.txt",
           "no such file")
    expect("an unreachable URL", run("run", quickstart, "--data", "http://127.0.0.1:9/x.txt", *small), 1, "network",
           "127.0.0.1:9")
    expect("a URL's secret is not shown", script(BOX + 'box:stage("http://user:hunter2@127.0.0.1:9/x", "x")'), 1,
           "network")
    check("and is nowhere in the output",
          "hunter2" not in script(BOX + 'pcall(function() box:stage("http://user:hunter2@127.0.0.1:9/x", "x") end)')[1])
    expect("a wrong checksum", script(BOX + f'box:stage("{text}", "x", {{ sha256 = ("0"):rep(64) }})'), 1,
           "integrity", "0000")
    expect("a syntax error", script("local x = = 2"), 1, "script.lua:2", "unexpected symbol")
    code, out = script(BOX + 'local function inner(a) return a.missing.field end\n'
                       'box:call("f", { args = { x = 1 } }, function(a)\n  return inner(a)\nend)')
    expect("an error inside a called function names its line", (code, out), 1, "script.lua:3", "missing")
    expect("an upvalue that cannot be shipped",
           script(BOX + 'local co = coroutine.create(function() end)\nbox:call("f", function() return co end)'),
           1, "'co'", "script.lua:")
    expect("an upvalue that the function assigns",
           script(BOX + 'local n = 0\nbox:call("f", function() n = n + 1 end)'), 1, "'n'")
    expect("a step that assigns an outer local", script('local n = 0\nrille.step("s", function() n = 1 end)'), 1,
           "state", "'n'")
    expect("a step that changes a captured table",
           script('local t = {}\nrille.step("s", function() t[#t + 1] = 1 end)'), 1, "state", "'t'")
    expect("an effect outside of a step", script('io.open("x", "w")'), 1, "io")
    expect("shapes that do not fit",
           script('rille.step("s", function() local d = rille.device(); d:randn{2,3}:matmul(d:randn{4,5}) end)'),
           1, r"\[2, 3\]", r"\[4, 5\]")
    for words, *patterns in (("run", "FILE is required", "usage: rille run FILE"), ("show", "RUN is required"),
                             ("leases --al", "--al", "did you mean --all"), ("ps -n x", "-n", "x", "usage: rille ps"),
                             ("ps -n -3", "-3", "1 to 1000000"), ("run --steps 5", "--steps", "after it"),
                             ("gc foo", "'foo'", "usage: rille gc"), ("-e", "-e needs a value"),
                             ("budget set --mouth 2", "rille budget set", "did you mean --month"),
                             ("schedule ad", "'ad'", "did you mean `rille schedule add`"),
                             ("fork last", "--from is required", "usage: rille fork RUN --from TEXT"),
                             ("-v", "'-v'", "did you mean --version"), ("version", "did you mean .* `rille --version`"),
                             ("-e print() x.lua", "the script file 'x.lua' cannot be run too")):
        expect(f"usage: rille {words}", run(*words.split()), 2, *patterns)
    code, out = run("--json", "show")
    check("a usage error in JSON", code == 2 and json.loads(out)["error"]["kind"] == "invalid", out)
    code, out = run("run", root + "/nothing.lua")
    check("a script that is not there is a usage error", code == 2 and "nothing.lua" in out, out)
    code, out = run("resume", "20200101")
    check("a run that is not there", code == 1 and "no run '20200101'" in out, out)
    check("an unknown flag of the command", run("ps", "--bogus")[0] == 2)
    code, out = run("offers", "--gpu", "A100")
    check("offers: only this machine was asked", code == 0 and "only this machine is set up" in out, out)
    expect("a home that is no folder", run("ps", RILLE_HOME="/dev/null"), 1, "make directory '/dev/null'",
           "RILLE_HOME names the folder")
    bare = {name: value for name, value in env.items() if name not in ("HOME", "RILLE_HOME", "XDG_STATE_HOME")}
    done = subprocess.run([rille, "ps"], env=bare, capture_output=True, text=True)
    expect("no home at all", (done.returncode, done.stdout + done.stderr), 1, "HOME is not set", "RILLE_HOME names")

    expect("a pipe is refused", script(BOX + f'box:stage("{root}/pipe", "x")'), 1, "invalid", "neither a file nor")
    expect("a dimension is counted from 1", script('rille.step("s", function() rille.device():randn{2,3}:sum(5) end)'),
           1, "no dimension 5 in a tensor with 2")
    expect("an element of a tensor", script('rille.step("s", function() return rille.device():randn{2,3}[3] end)'), 1,
           r"position 3 in dimension 1 of \[2, 3\]", "positions count from 1")
    expect("a call without its name", script(BOX + "box:call(function() end)"), 1, r"box:call: expected its name",
           r'hint: box:call\("name"')
    expect("a model without its sizes", script('rille.nn.gpt { layers = 1, heads = 1, width = 8 }'), 1,
           "context is needed")
    expect("a price below nothing", script('rille.rent("b", { gpu = "any", max_price = -1 })'), 1, "max_price", "-1")
    expect("no offer at the price", script('rille.rent("b", { gpu = "A100", max_price = 0.5 })'), 1,
           r"max_price = \$0.5")
    expect("a raised table without a message", script('error { code = 5, "x" }'), 1, r'\[1\] = "x"', "code = 5")
    expect("an argument without its value", script('rille.args { times = 3 }', "--times"), 2, "--times has no value",
           "a number")
    expect("a box that is released", script(BOX + 'box:release()\nbox:call("f", function() end)'), 1, "released")

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(404)

        def log_message(self, *_):
            pass

    web = http.server.HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    missing = script(BOX + f'box:stage("http://127.0.0.1:{web.server_port}/nope", "x")')
    expect("a URL that is not there", missing, 1, r"error \(invalid\).*status 404", "check the URL")
    check("its page is not shown", "<" not in missing[1], missing[1])
    web.shutdown()

    # Standard output is data with --json, and text that is lost on it is no success.
    open(root + "/hello.lua", "w").write('print("hello")\nreturn 7\n')
    for words in (("run", root + "/hello.lua"), ("-e", 'print("hello"); return 7')):
        r = subprocess.run([rille, "--json", *words], env=env, capture_output=True, text=True)
        check(f"--json {words[0]}: standard output is JSON, what is printed goes to standard error",
              json.loads(r.stdout).get("result", 7) == 7 and "hello" in r.stderr, (r.stdout, r.stderr))
    for words in (("run", root + "/hello.lua"), ("ps",), ("--help",)):
        with open("/dev/full", "w") as full:
            r = subprocess.run([rille, *words], env=env, stdout=full, stderr=subprocess.PIPE, text=True)
        check(f"lost output is an error: {words[0]}", r.returncode == 1 and r.stderr.count("No space left") == 1,
              (r.returncode, r.stderr))
    check("the run went on to its end", "done" in run("show", "last")[1], run("show", "last")[1])
    r = subprocess.run(f"'{rille}' ps | true", shell=True, env=env, capture_output=True, text=True)
    check("a reader that left is no error", r.stderr == "", r.stderr)

    # A disk that is full while a checkpoint is written: the earlier one stays whole, and nothing is lost.
    disk = root + "/disk"
    os.mkdir(disk)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "none", disk], check=True)
    full = """
local box = rille.rent("b", { gpu = "any" })
local r = box:call("train", function()
  local model = rille.nn.gpt { layers = 1, heads = 2, width = 32, context = 16 }
  rille.checkpoint.save({ model }, { step = 1 })
  local filler = io.open("filler", "w")
  for _ = 1, 128 do filler:write(("x"):rep(262144)) end
  filler:flush()
  local ok, err = pcall(rille.checkpoint.save, { model }, { step = 2 })
  filler:close()
  os.remove("filler")
  rille.checkpoint.load({ model }, "checkpoints")
  return { saved = ok, kind = err.kind, message = err.message }
end)
print(r.saved, r.kind, r.message)
"""
    open(root + "/full.lua", "w").write('local rille = require "rille"\n' + full)
    code, out = run("run", root + "/full.lua", RILLE_HOME=disk)
    check("a full disk while checkpointing: one io error, and the checkpoint before it is whole",
          code == 0 and re.search(r"false\s+io\s+.*No space left", out), (code, out[-900:]))

    # A disk that is full where the record is written: the run stops there, and goes on once there is room.
    for size, count, what in ((100000, 40, "a large result"), (40000, 150, "many small ones")):
        open(root + "/record.lua", "w").write(f"""local rille = require "rille"
rille.step("first", function() io.open("{root}/effects", "a"):write("first\\n") end)
rille.step("fill", function()
  if io.open("{root}/filled") then return end  -- that it was is perhaps not in the record
  io.open("{root}/filled", "w"):close()
  local f = io.open("{disk}/fill", "w")
  for _ = 1, 8000 do f:write(("x"):rep(4096)) f:flush() end
  f:close()
end)
for i = 1, {count} do
  local ok = pcall(rille.step, "train", function() return (tostring(i % 10)):rep({size}) end)
  assert(ok, "the script has seen it")
end
return "end"
""")
        home = f"{disk}/{size}"
        code, out = run("run", root + "/record.lua", RILLE_HOME=home)
        check(f"a full disk under the record, {what}: the run stops",
              code == 1 and "stops here: its record cannot be written" in out and disk in out and
              "free some space" in out and "rille resume" in out, (code, out[-900:]))
        states = run("ps", "-n", "1", RILLE_HOME=home)[1]
        check("it is no failed one", re.search("suspended|interrupted", states), states)
        os.remove(disk + "/fill")
        code, out = run("resume", "last", RILLE_HOME=home)
        check("with room it goes on to its end", code == 0 and open(root + "/effects").read() == "first\n",
              (code, out[-900:]))
        os.remove(root + "/effects")
        os.remove(root + "/filled")
        shutil.rmtree(home)
    subprocess.run(["umount", disk])

    def training(*more):
        p = subprocess.Popen([rille, "run", quickstart, "--data", text, "--steps", "4000", *small, *more], env=env,
                             cwd=root,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        lines = []
        for line in p.stdout:
            lines.append(line)
            if re.match(r"step +\d+ +loss", line):
                return p, lines
        raise AssertionError("never trained: " + "".join(lines))

    def until(p, words):
        seen = ""
        for line in p.stdout:
            seen += line
            if words in line:
                break
        return seen

    def rest_of(p, lines):
        lines.append(p.stdout.read())
        return p.wait(timeout=60), "".join(lines)

    p, lines = training()
    p.send_signal(signal.SIGINT)
    code, out = rest_of(p, lines)
    check("Ctrl-C while training cleans up",
          code == 130 and "interrupted by Ctrl-C" in out and "released" in out and nothing_rented(), (code, out[-600:]))
    p, lines = training()
    p.send_signal(signal.SIGINT)
    lines.append(until(p, "interrupted: cleaning up"))
    p.send_signal(signal.SIGINT)
    code, out = rest_of(p, lines)
    check("Ctrl-C twice stops at once and releases",
          code == 130 and "cancelled at once" in out and nothing_rented(), (code, out[-600:]))
    p, lines = training()
    p.send_signal(signal.SIGINT)
    lines.append(until(p, "interrupted: cleaning up"))
    for _ in range(3):
        p.send_signal(signal.SIGINT)
        time.sleep(0.02)
    code, out = rest_of(p, lines)
    check("impatience does not stop the release", code == 130 and nothing_rented(), (code, out[-600:]))

    p, lines = training()
    second = run("resume", "last")
    check("a second runner on the same run is refused, naming the first",
          second[0] == 1 and str(p.pid) in second[1] and "being run" in second[1], second)
    p.send_signal(signal.SIGHUP)
    code, out = rest_of(p, lines)
    check("a closed terminal suspends and says how to go on", code == 129 and "rille resume" in out, (code, out[-600:]))
    check("and keeps what is rented", "live" in run("leases")[1])
    code, out = run("release", "last")
    check("which can be given back by hand", code == 0 and nothing_rented(), out)

    path = root + "/stuck.lua"
    open(path, "w").write('local rille = require "rille"\n' + BOX + 'rille.defer(function() print("stuck") '
                          'while true do pcall(function() while true do end end) end end)\n'
                          'print("waiting") rille.sleep("100s")\n')
    p = subprocess.Popen([rille, "run", path], env=env, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True)
    lines = []
    for sign in ("waiting", "stuck"):
        while sign not in (lines[-1] if lines else ""):
            lines.append(p.stdout.readline())
        p.send_signal(signal.SIGINT)
    code, out = rest_of(p, lines)
    check("a second Ctrl-C ends a cleanup that hangs, and releases",
          code == 130 and "cancelled at once" in out and "released b" in out and nothing_rented(), (code, out))

    p = subprocess.Popen([rille, "-e", BOX + "print('rented') rille.sleep('100s')"], env=env, cwd=root,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    p.stdout.readline()
    p.kill()
    p.wait()
    code, out = run("resume", "last", stdin=subprocess.DEVNULL)
    check("a killed session that is resumed without a terminal gives back what it held",
          code == 0 and "released b" in out and nothing_rented(), (code, out))

    path = root + "/edited.lua"
    open(path, "w").write('local rille = require "rille"\nlocal a = rille.step("a", function() return 1 end)\n'
                           'rille.sleep("30s")\nreturn a\n')
    p = subprocess.Popen([rille, "run", path], env=env, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True)
    p.stdout.readline()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and '"sleep"' not in run("show", "last", "--json")[1]:
        time.sleep(0.05)
    p.kill()
    p.wait()
    open(path, "w").write('local rille = require "rille"\nreturn rille.step("other", function() return 2 end)\n')
    q = subprocess.Popen([rille, "resume", "last"], env=env, cwd=root, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)
    first = [q.stdout.readline() for _ in range(2)]
    check("an edited script: the pinned one goes on, with a note", "has changed" in "".join(first), first)
    q.send_signal(signal.SIGINT)
    code = q.wait(timeout=30)
    check("and can be cancelled", code == 130, code)
    check("nothing is rented at the end", nothing_rented())
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
