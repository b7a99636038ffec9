#!/usr/bin/env python3
"""Makes the golden journals of this format anew: each script is killed in its step `die`, and the rows of its journal
are written to format-N/NAME.sql, beside the result of an undisturbed run. Those of formats that were released stay as
they are; only make those of the one that is still changing. usage: make.py RILLE"""
import json, shutil, subprocess, sys, time

from golden import Home, folder, here, scripts, tables


def literal(v):
    if v is None:
        return "NULL"
    return str(v) if isinstance(v, (int, float)) else "'" + v.replace("'", "''") + "'"


def rows(db):
    for table in tables:
        found = db.execute(f"SELECT * FROM {table}")
        columns = ",".join(c[0] for c in found.description)
        for row in found:
            yield f"INSERT INTO {table}({columns}) VALUES({','.join(map(literal, row))});\n"


def run(home, name):
    """Runs the script to its end, or to its death, and sends it the message that it waits for."""
    words = [home.rille, "run", f"{home.root}/{name}.lua"] + (["--n", "5"] if name == "steps" else [])
    p = subprocess.Popen(words, env=home.env, cwd=home.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if name == "fibers":
        while home.run("signal", "last", "go", '{"answer": 42}').returncode and p.poll() is None:
            time.sleep(0.02)
    return p.wait()


for name in scripts:
    for dying in (True, False):
        home = Home(sys.argv[1])
        for file in scripts + ["child_of"]:
            shutil.copy(f"{here}/{file}.lua", home.root)
        if not dying:
            home.survive()
        code = run(home, name)
        if code != (-9 if dying else 0):
            raise SystemExit(f"{name} ended with {code}")
        if dying:
            open(f"{folder}/{name}.sql", "w").writelines(rows(home.journal()))
        else:
            runs = json.loads(home.run("ps", "--json").stdout)
            open(f"{folder}/{name}.json", "w").write(json.dumps(runs[0]["result"]) + "\n")
        home.remove()
    print("made", name)
