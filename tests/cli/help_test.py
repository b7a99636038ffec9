#!/usr/bin/env python3
"""`rille --help`, the help of each command, and the manual beside them. usage: help_test.py RILLE SOURCES"""
import os, pathlib, re, shutil, subprocess, sys, tempfile

from tap import check, finish

rille, sources = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])
root = tempfile.mkdtemp(prefix="rille-help-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=60, cwd=root,
                       stdin=subprocess.DEVNULL)
    return r.returncode, r.stdout + r.stderr


try:
    code, page = run("--help")
    groups = {title: re.findall(r"^  (\w+) +(.*)$", text, re.M)
              for title, text in re.findall(r"^(\w[^\n]*):\n((?:  .*\n)+)", page, re.M) if title != "Options"}
    texts = dict(pair for group in groups.values() for pair in group)
    check("the page has groups", code == 0 and len(groups) >= 4 and len(texts) >= 28, page)
    check("it fits a terminal of 80 columns", max(map(len, page.splitlines())) <= 80, page)
    check("a group is in order", all([n for n, _ in g] == sorted(n for n, _ in g) for g in groups.values()), groups)
    check("each command stands there once", len(re.findall(r"^  \w", page, re.M)) == len(texts), page)

    for name, text in texts.items():
        if name == "agent":  # reads its words itself
            continue
        code, out = run(name, "--help")
        check(f"{name} --help", code == 0 and out.startswith(text + "\n") and f"Usage: rille {name}" in out, out)
    code, out = run("schedule", "--help")
    check("schedule --help names its commands", re.search(r"^  add .*\n  remove ", out, re.M), out)
    check("rille help", run("help") == (0, page), run("help"))
    check("rille help COMMAND", run("help", "ps") == run("ps", "--help"), run("help", "ps"))
    check("rille help COMMAND COMMAND", run("help", "budget", "set") == run("budget", "set", "--help"))

    completed = re.search(r"compgen -W '([^']*) --json", run("completion", "bash")[1])[1].split()
    check("completion has the same commands", completed == [n for n in texts if n != "agent"], completed)

    open(root + "/takes.lua", "w").write('local rille = require "rille"\nrille.args { seed = 0, n = 0 }\n')
    code, out = run("plan", "takes.lua", "--seed", "4")
    check("an option that plan does not have is the script's", code == 0 and "rents nothing" in out, out)
    code, out = run("simulate", "takes.lua", "--n", "4", "--runs=2", "--", "--seed", "3")
    check("options of simulate may stand among the script's", code == 0 and "2 runs of takes.lua" in out, out)
    code, out = run("schedule", "--json", "add", "a", "every 6h", "takes.lua", "--seed", "1")
    check("a flag may stand before a nested command", code == 0 and '"name": "a"' in out, out)
    code, out = run("-e", "return 1", "ps")
    check("-e and a command", code == 2 and
          "-e CODE is the whole script, so the script file 'ps' cannot be run too" in out, out)

    manual = (sources / "docs/manual/running.md").read_text()
    unnamed = [n for n in texts if f"`rille {n}" not in manual]
    check("the manual names each command", not unnamed, unnamed)
    codes = re.findall(r"^  \w+ = (\d+),", (sources / "bindings/cli/exit.hpp").read_text(), re.M)
    missing = [c for c in codes if not re.search(rf"^\| {c} \|", manual, re.M)]
    check("the manual has each exit code", len(codes) >= 6 and not missing, (codes, missing))
finally:
    shutil.rmtree(root)
finish()
