#!/usr/bin/env python3
"""Text of a rented machine cannot control the terminal; files and pipes keep every byte.

usage: hostile_text_test.py RILLE"""
import glob, json, os, shutil, subprocess, sys, tempfile

from tap import check, finish
from terminal import on_terminal

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-hostile-text-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", TERM="xterm-256color")
CLIPBOARD, REPORT, TITLE, C1 = "\x1b]52;c;ZWNobyBoaQ==\x07", "\x1b[6n", "\x1b]0;root@prod\x1b\\", "\u009b6n"
RED = "\x1b[1;31mred\x1b[0m"
# Hidden text, written in every way that a terminal may read so; and the color number 8, which is gray.
HIDDEN = ["8", "0;8", "008", ";8;", "58;5;8", "38;8", "38;5;1;8", "38;2;1;2;3;8", "48;5", "4294967304"]
GRAY = "\x1b[38;5;8mgray\x1b[0m\x1b[48;2;8;8;8mgray\x1b[0m"
CONCEAL = "".join(f"\x1b[{n}mhidden" for n in HIDDEN)
HOSTILE = CLIPBOARD + REPORT + TITLE + C1 + "\x9b" + "\x08\x7f" + CONCEAL + GRAY + RED + " ü €\n"


def in_lua(text):
    return "".join(f"\\{b:03}" if b > 126 or b < 32 or b == 92 else chr(b) for b in text.encode())


def script(name, source):
    open(f"{root}/{name}", "w").write(f'local rille = require "rille"\n{source}')
    return name


try:
    says = """local box = rille.rent("box", {{ provider = "local", gpu = "cpu" }})
box:exec("say", {{ argv = {{ "printf", "%s", "{}" }} }})
box:release()
"""
    script("box.lua", says.format(in_lua(HOSTILE)))
    script("fails.lua", f'error("{in_lua(HOSTILE)}")\n')
    for name in ("box.lua", "fails.lua"):
        shown = on_terminal([rille, "run", name], 100, env, root)
        rest = shown.replace("\x1b[K", "")
        for color in ("\x1b[1;31m", "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[38;5;8m", "\x1b[48;2;8;8;8m"):
            rest = rest.replace(color, "")
        check(f"{name}: colors pass", RED in shown and GRAY in shown, shown)
        check(f"{name}: no other escape passes", not any(c in rest for c in "\x1b\x9b\x07"), rest)
        check(f"{name}: they are shown", all(t in rest for t in ("^[]52;c;ZWNobyBoaQ==^G", "^[[6n", "^H^?")), rest)
        check(f"{name}: so is what would hide text", all(f"^[[{n}mhidden" in rest for n in HIDDEN), rest)
        check(f"{name}: letters stay", " ü €" in rest, rest)

    # A program may rewrite the line that it began. No text rewrites a line of Rille's own, or colors it.
    OVER, DARK = "50 %\r\x1b[2Kover", "\x1b[30;40mdark"
    shown = on_terminal([rille, "run", script("bar.lua", says.format(in_lua(OVER + DARK)))], 100, env, root, True)
    check("a progress bar of a program passes", OVER in shown, shown)
    note = shown.index("released box")
    check("Rille's next line is another line, and not in its color",
          "\x1b[0m" in shown[shown.index(DARK):note] and "\n" in shown[shown.index(DARK):note], shown)
    run = subprocess.run([rille, "ps", "--json", "-n", "1"], env=env, capture_output=True, text=True, cwd=root)
    shown = on_terminal([rille, "logs", json.loads(run.stdout)[0]["id"]], 100, env, root, True)
    check("and in the log, too", OVER in shown, shown)
    shown = on_terminal([rille, "run", script("quotes.lua", f'error("{in_lua(OVER + DARK)}")')], 100, env, root, True)
    check("in an error it is shown", "50 %^M^[[2Kover" in shown, shown)
    check("whose color ends with it", DARK + "\x1b[0m" in shown, shown)

    # The progress line, which is cut to the terminal's width, and what is printed while it is shown.
    working = script("working.lua", 'rille.progress { what = "\\27[30;40m" .. ("x"):rep(300) }\n')
    shown = on_terminal([rille, "run", working], 100, env, root)
    check("the progress line is cut, without colors", "x" * 99 in shown and "x" * 100 not in shown and
          "\x1b[30;40m" not in shown, shown)
    working = script("lines.lua", 'rille.progress { what = "two\\nlines" }\n')
    shown = on_terminal([rille, "run", working], 100, env, root)
    check("it is one line", "two lines" in shown, shown)
    working = script("dark.lua", f'rille.progress {{ what = "working" }}\nprint "{in_lua(DARK)}"\n')
    shown = on_terminal([rille, "run", working], 100, env, root)
    again = shown.find("working", shown.index(DARK))
    check("it is drawn again in its own color", again > 0 and "\x1b[0m" in shown[shown.index(DARK):again], shown)
    r = subprocess.run([rille, "run", "box.lua"], env=env, capture_output=True, cwd=root, timeout=60)
    check("a pipe gets every byte", HOSTILE.encode() in r.stdout, (r.stdout, r.stderr))
    logs = b"".join(open(f, "rb").read() for f in glob.glob(root + "/home/runs/*/log"))
    check("the run's log keeps every byte", HOSTILE.encode() in logs, logs)
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
