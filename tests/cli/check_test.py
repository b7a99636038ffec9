#!/usr/bin/env python3
"""`rille check` finds mistakes without running a script, and none in right scripts; `rille init` makes a project that
passes it and runs. usage: check_test.py RILLE ROOT"""
import os, re, shutil, subprocess, sys, tempfile

from tap import check, finish

rille, root = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
home = tempfile.mkdtemp(prefix="rille-check-")
env = dict(os.environ, RILLE_HOME=home + "/home", XDG_CONFIG_HOME=home + "/config", NO_COLOR="1")


def command(*words):
    done = subprocess.run([rille, *words], env=env, cwd=home, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def problems(source):
    open(home + "/x.lua", "w").write(source)
    return command("check", "x.lua")[1]


HEAD = 'local rille = require "rille"\nlocal box = rille.rent("a", { gpu = "cpu" })\n'
WRONG = [  # line, the message, its hint
    ("rille.trian {}", "3:7: rille.trian does not exist", "train"),
    ('box:stge("x", "y")', "3:5: Instance has no method 'stge'", "stage"),
    ('rille.rent("b", { gpuu = "any" })', "3:19: rille.rent: there is no option 'gpuu'", "gpu"),
    ('rille.offers { zone = "x" }', "3:16: rille.offers: there is no option 'zone'", ""),
    ('rille.step("s", function() rille.rent("b") end)', "3:34: rille.rent in the body of a step", "before or after"),
    ('box:call("c", function() rille.step("s", print) end)', "3:32: rille.step in a function that runs on a machine",
     "in the workflow"),
    ('local nn = require "rille.nn"\nlocal m = nn.mpl { 1, 2 }', "4:14: rille.nn.mpl does not exist", "mlp"),
    ('local opt = rille.optim.adamw(x, { lrr = 1 })', "rille.optim.adamw: there is no option 'lrr'", "lr"),
    ('rille.device():rnd { 2 }', "Device has no method 'rnd'", "rand"),
    ('box:exec("e", { argv = "pip install torch" })', "3:24: Instance:exec: argv is a table, not a text",
     '{ "sh", "-c", "pip install torch" }'),
    ("x = = 1", "3:1: unexpected symbol near '='", ""),
]
RIGHT = [
    'local rille = { trian = print } rille.trian()',
    'local function f(box) box:stge() end f { stge = print }',
    'rille.step("s", function() rille.sleep("1s") return rille.now() end)',
    'box = { stge = function() end } box:stge()',
    'print(rille.home .. "x", box.name)',
    'box:exec("e", { argv = ("a b"):gmatch("%a") })',
    'local options = { gpuu = 1 } print(options.gpuu)',
    'box:call("c", { args = 1 }, function(n) return n end)',
    '-- rille.trian()\nlocal text = "rille.trian()" print([[rille.trian()]])',
    'local o = rille.offers { gpu = "H100" } or {} print(o[1])',
]
try:
    for source, message, hint in WRONG:
        out = problems(HEAD + source)
        check(message, message in out and hint in out and len(out.splitlines()) == 1, out)
    for source in RIGHT:
        check("nothing is said of: " + source[:50], problems(HEAD + source) == "", problems(HEAD + source))
    check("a file that is not there", command("check", "none.lua")[0] == 1)
    scripts = [f"{root}/workflows/{name}" for name in os.listdir(root + "/workflows") if name.endswith(".lua")]
    code, out, _ = command("check", *scripts)
    check("nothing is said of the workflows", code == 0 and out == "", out)
    count = 0
    for folder, _, names in os.walk(root + "/docs"):
        for name in names:
            if name.endswith(".md"):
                for block in re.findall(r"```lua\n(.*?)```", open(f"{folder}/{name}").read(), re.S):
                    open(f"{home}/{count}.lua", "w").write(block)
                    count += 1
    code, out, err = command("check", *[f"{i}.lua" for i in range(count)])
    check("nor of the examples in docs", count > 200 and code == 0, out + err)

    code, out, err = command("init", "project")
    check("init makes a project", code == 0 and "next: rille run project/main.lua" in out, out + err)
    check("which passes the check", command("check", "project/main.lua")[0] == 0)
    code, out, err = command("run", "project/main.lua", "--steps", "20")
    check("and runs", code == 0 and "loss" in out, out + err)
    check("annotations lie where the editor looks", os.path.exists(home + "/project/.rille/meta/instance.lua"))
    open(home + "/project/main.lua", "w").write("-- mine\n")
    code, out, err = command("init", "project")
    check("a second time leaves files as they are", code == 0 and "left project/main.lua as it is" in out and
          open(home + "/project/main.lua").read() == "-- mine\n", out + err)
    open(home + "/file", "w")
    check("a folder that is a file", command("init", "file")[0] == 1)
finally:
    shutil.rmtree(home, ignore_errors=True)
finish()
