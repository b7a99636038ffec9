#!/usr/bin/env python3
"""Text of a rented machine cannot control the terminal; files and pipes keep every byte.

usage: hostile_text_test.py RILLE"""
import glob, os, shutil, subprocess, sys, tempfile

from tap import check, finish
from terminal import on_terminal

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-hostile-text-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", TERM="xterm-256color")
CLIPBOARD, REPORT, TITLE, C1 = "\x1b]52;c;ZWNobyBoaQ==\x07", "\x1b[6n", "\x1b]0;root@prod\x1b\\", "\u009b6n"
RED = "\x1b[1;31mred\x1b[0m"
HOSTILE = CLIPBOARD + REPORT + TITLE + C1 + "\x9b" + "\x08\x7f" + RED + " ü €\n"

try:
    quoted = "".join(f"\\{b}" if b > 126 or b < 32 or b == 92 else chr(b) for b in HOSTILE.encode())
    open(root + "/box.lua", "w").write(f"""local rille = require "rille"
local box = rille.rent("box", {{ provider = "local", gpu = "cpu" }})
box:exec("say", {{ argv = {{ "printf", "%s", "{quoted}" }} }})
box:release()
""")
    open(root + "/fails.lua", "w").write(f'error("{quoted}")\n')
    for script, code in (("box.lua", 0), ("fails.lua", 1)):
        shown = on_terminal([rille, "run", script], 100, env, root)
        rest = shown.replace("\x1b[K", "")
        for color in ("\x1b[1;31m", "\x1b[0m", "\x1b[1m", "\x1b[2m"):
            rest = rest.replace(color, "")
        check(f"{script}: colors pass", RED in shown, shown)
        check(f"{script}: no other escape passes", not any(c in rest for c in "\x1b\x9b\x07"), rest)
        check(f"{script}: they are shown", all(t in rest for t in ("^[]52;c;ZWNobyBoaQ==^G", "^[[6n", "^H^?")), rest)
        check(f"{script}: letters stay", " ü €" in rest, rest)
    r = subprocess.run([rille, "run", "box.lua"], env=env, capture_output=True, cwd=root, timeout=60)
    check("a pipe gets every byte", HOSTILE.encode() in r.stdout, (r.stdout, r.stderr))
    logs = b"".join(open(f, "rb").read() for f in glob.glob(root + "/home/runs/*/log"))
    check("the run's log keeps every byte", HOSTILE.encode() in logs, logs)
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
