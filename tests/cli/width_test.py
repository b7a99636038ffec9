#!/usr/bin/env python3
"""Tables on a terminal keep to its width; in a pipe they are whole. usage: width_test.py RILLE"""
import json, os, re, shutil, subprocess, sys, tempfile

from tap import check, finish
from terminal import on_terminal

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-width-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", TERM="xterm")


def piped(*words):
    return subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=60, cwd=root).stdout


def shown(columns, *words):
    return on_terminal([rille, *words], columns, env, root).splitlines()



try:
    name = "a_script_whose_name_is_longer_than_people_like_to_read_in_a_table"
    open(f"{root}/{name}.lua", "w").write("""local rille = require "rille"
rille.rent("a box that has a name of some length", { gpu = "cpu" })
os.exit(1)""")
    subprocess.run([rille, "run", name + ".lua"], env=env, capture_output=True, timeout=60, cwd=root)
    subprocess.run([rille, "-e", 'rille.rent("a box that has a name of some length", { gpu = "cpu" }):detach("5m")'],
                   env=env, capture_output=True, timeout=60)
    for words, kept, dropped in ((["ps"], "RUN", "COST"), (["leases", "--all"], "LEASE", "MACHINE"),
                                 (["offers"], "PROVIDER", "CPUS")):
        whole = piped(*words)
        check(f"{words[0]}: in a pipe it is whole", kept in whole and dropped in whole and "no room" not in whole and
              "…" not in whole, whole)
        for columns in (200, 80, 60, 40):
            lines = shown(columns, *words)
            table = [line for line in lines if not line.startswith(("no room for", "a box that has a name of"))]
            check(f"{words[0]} on {columns} columns", table and kept in table[0] and
                  (columns < 60 or all(len(line) <= columns for line in table)), lines)
        lines = shown(40, *words)
        check(f"{words[0]}: what is left out is named", any(re.match(r"no room for .*: in a pipe", line)
                                                           for line in lines), lines)
    # Words that are longer than the room stand alone on their line.
    lines = shown(80, "doctor")
    check("doctor: a sentence is wrapped", lines and all(len(line) <= 80 or " " not in line[25:].strip()
                                                         for line in lines), lines)
    words = [sorted(re.sub(r"[\d.]+ [GM]B free|FOUND|WITHOUT IT", "", text).split())
             for text in (" ".join(lines), piped("doctor"))]
    check("doctor: nothing is lost", words[0] == words[1], lines)
    lines = shown(200, "leases", "--all")
    whole, shown_whole = (re.sub(r"\b\dm\d\ds\b", "4m59s", text)  # the time left passes between the two commands
                          for text in (piped("leases", "--all"), "\n".join(lines) + "\n"))
    check("where there is room nothing is cut", shown_whole == whole, lines)
    lines = shown(80, "ps")
    check("a path keeps its end", any(line.endswith("_in_a_table.lua") and "…" in line for line in lines), lines)
finally:
    for lease in json.loads(piped("leases", "--json")):
        piped("release", lease["id"])
    shutil.rmtree(root)
finish()
