#!/usr/bin/env python3
"""What people type who come from SkyPilot, IPython, Julia and CuPy, and what helps them on. usage: newcomer_test.py
RILLE"""
import os, shutil, subprocess, sys, tempfile, time

from prompt import Prompt
from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-newcomer-")
home = root + "/home"
env = dict(os.environ, RILLE_HOME=home, XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", RILLE_DEVICE="cpu")


def command(*words):
    return subprocess.run([rille, *words], cwd=root, env=env, capture_output=True, text=True)


def script(name, text):
    with open(f"{root}/{name}", "w") as f:
        f.write('local rille = require "rille"\n' + text)
    return name


def test_commands():
    for words, hint in (("status", "rille ps"), ("launch", "rille run"), ("down", "rille release"),
                        ("show-gpus", "rille offers --list"), ("ssh", "rille attach")):
        r = command(words)
        check(f"rille {words} names the command", r.returncode == 2 and f"`{hint}`" in r.stderr, r.stderr)
    r = command("offers", "H100")
    check("a stray word leads to the options", "rille offers --help" in r.stderr, r.stderr)
    r = command("exec", "box", "echo hi > f.txt")
    check("a line for the shell needs a shell", "-- sh -c 'echo hi > f.txt'" in r.stderr, r.stderr)
    for words, hint in ((("schedule", "ls"), "`rille schedule` lists them"), (("volume", "list"), "`rille volume ls`")):
        r = command(*words)
        check(f"{' '.join(words)} leads to the list", r.returncode == 2 and hint in r.stderr, r.stderr)
    r = command("-e", 'rille.rent("a", { use_spot = true })')
    check("an option's part", "did you mean spot" in r.stderr, r.stderr)
    os.mkdir(root + "/project")
    r = subprocess.run([rille, "init"], cwd=root + "/project", env=env, capture_output=True, text=True)
    check("init without a folder takes this one", r.returncode == 0 and os.path.exists(root + "/project/main.lua"),
          r.stdout + r.stderr)


def test_transfers():
    os.makedirs(root + "/data")
    open(root + "/data/words.txt", "w").write("ebb and flow\n")
    name = script("names.lua", """
local box = rille.rent("b", { gpu = "cpu" })
box:stage("data/words.txt")
box:stage("data/")
box:exec("work", { argv = { "sh", "-c", "mkdir out; cat words.txt data/words.txt > out/both.txt" } })
box:get("out")
box:get("out/both.txt")
print(pcall(box.get, box, ".."))
""")
    r = command(name)
    both = "ebb and flow\n" * 2
    check("stage and get take the name that a thing has", r.returncode == 0 and
          open(root + "/out/both.txt").read() == both and open(root + "/both.txt").read() == both, r.stdout + r.stderr)
    check("what has no name is refused", "'..' has no name to give it there" in r.stdout, r.stdout)


def test_names():
    r = command("-e", 'rille = require "rille"; print(pcall(function() return rille.nn.ReLU end))')
    check("a layer of PyTorch's that is a method", "x:relu()" in r.stdout, r.stdout + r.stderr)
    r = command("-e", 'require "rille".metric("loss", 0.5, 3)')
    check("the step of a metric is an option", "{ step = 3 }" in r.stderr, r.stdout + r.stderr)


def test_simulation():
    name = script("short.lua", """
local box = rille.rent("b", { gpu = "H100:8", spot = true, ttl = "2h" })
box:call("work", { sim = { duration = "6h" } }, function() end)
""")
    r = command("simulate", name, "-n", "5")
    check("runs that all fail have no cost to expect, but each has one", "no run ended well" in r.stdout and
          "P50" not in r.stdout and "$0.00" not in r.stdout and "on average, first with seed" in r.stdout, r.stdout)
    check("a spot machine costs what some provider asks for one", "on spot azure's list price" in r.stdout, r.stdout)


def test_habits(p):
    for entry, hint in (("import numpy as np", "require"), ("def f(x):", "function f(x)"),
                        ("f(x) = x^2", "function f(x)"), ("x += 1", "x = x + 1"), ("1 != 2", "~="),
                        ("2**3", "^ is the power"), ("%timeit f()", ":bench"), ("@time f()", ":time"),
                        ("math.max(axis=1)", "braces"), ('k = "a" .. [[ s[i[0]] = 1; ]]', "[=["),
                        ("t = {}; t[1,2]", "t[1][2]"), ("plot({1})", "rille.plot"), ("len({1})", "#t"),
                        ("print(True)", "true"), ("np", "rille.device()"), ("ls", "!ls")):
        out = p.enter(entry)
        check(f"{entry}: how it is said here", "hint: " in out and hint in out.partition("hint: ")[2], out)
    out = p.enter("n")
    check("one letter is not taken for another", "did you mean" not in out, out)
    check("help alone helps", "rille.rent" in p.enter("help"))
    check("as x? does", "rents an instance" in p.enter("rille.rent?").lower())
    check("and x?? shows the source", "function nn.mlp" in p.enter("rille.nn.mlp??"))
    out = p.enter(":apropos checkpoint")
    check("no line of it is wider than the terminal", max(map(len, out.split("\n"))) <= 80, out)
    check("?name tells of others that are called so", "?Device:tensor" in p.enter("?tensor"))
    p.enter("m = rille.nn.mlp { 2, 8, 1 }")
    check("?m of a model lists its layers", "Linear: 24 parameters" in p.enter("?m"))
    p.enter("d = rille.device('cpu')")
    p.enter("a = d:randn { 1200, 1200 }")
    out = p.enter(":time b = a:matmul(a):matmul(a)")
    check(":time waits for what a variable gets", " ms" in out or " s" in out.replace(" us", ""), out)
    out = p.enter("t = {}; for i = 1, 1000 do t[i] = i end; t")
    check("a long list says how much it leaves out", "... 960 more" in out, out)


def test_interrupts(p):
    for i in range(4):
        p.key(b"!sleep 50\n")
        time.sleep(0.5)
        p.interrupt()
        out = p.prompt()
        check(f"Ctrl-C ends a command of the shell, time {i + 1}", "leave the session" not in out, out)


kernels = r'''
k = d:kernel [=[
__global__ void f(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = i * 2;
}
__global__ void hang(float* x, int n) { while (n) x[0] += 1; }
]=]
'''


def test_kernels(p):
    lines = [line for line in kernels.strip().split("\n")]
    lines[0] = lines[0].replace("d:kernel [=[", "d:kernel([=[")
    lines[-1] = ']=], { name = "f" })'
    p.key(b"\x1b[200~" + "\n".join(lines).encode() + b"\x1b[201~\n")
    p.prompt(120)
    made = p.number - 1
    p.enter('box = rille.rent("keep", { gpu = "cpu" })')
    p.enter("x = d:zeros { 100 }")
    p.enter("k:launch({ grid = 4096, block = 256 }, x, 100)")
    out = p.enter("x")
    check("a write out of bounds names kernel, argument and line", "kernel f: reaches x[" in out and
          f"which has 100 elements (entry {made}:4)" in " ".join(out.split()), out)
    check("the session goes on, with its box", "live" in p.enter("box"))
    out = p.enter("k(4, 64, x, 100)")
    check("a kernel that is called leads to launch", "k:launch(" in out, out)
    p.key(b"\x1b[200~" + "\n".join(lines).replace('"f"', '"hang"').replace("k =", "h =").encode() + b"\x1b[201~\n")
    p.prompt(120)
    p.enter("y = d:zeros { 4 }")
    p.key(b"h:launch({ grid = 1, block = 1 }, y, 1); y:sum():item()\n")
    p.interrupt()
    out = p.prompt(10)
    check("Ctrl-C ends a kernel without an end", "cancelled" in out, out)
    check("and what follows is computed", p.enter("d:ones { 4 }:sum():item()").strip().endswith("4"))
    p.enter("z = d:zeros { 4 }")
    out = p.enter("h:launch({ grid = 1, block = 1 }, z, 0); z:sum():item()")
    check("the kernel can be launched again", out.strip().endswith("0"), out)
    p.enter("box:release()")


try:
    test_commands()
    test_transfers()
    test_names()
    test_simulation()
    prompt = Prompt(rille, home, directory=root, env={"RILLE_DEVICE": "cpu"})
    test_habits(prompt)
    test_interrupts(prompt)
    test_kernels(prompt)
    prompt.key(b"exit()\n")
    check("exit() leaves", prompt.end() == 0)
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
