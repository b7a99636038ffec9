#!/usr/bin/env python3
"""Journals that earlier builds wrote and were killed over go on with this one, to the result of an undisturbed run.
usage: golden_test.py RILLE"""
import json, sys

from golden import Home, folder, scripts

failures = 0
for n, name in enumerate(scripts, 1):
    home = Home(sys.argv[1])
    db = home.journal()
    db.executescript("BEGIN;" + open(f"{folder}/{name}.sql").read() + "COMMIT;")
    run = db.execute("SELECT id FROM runs WHERE parent='' OR parent IS NULL").fetchone()[0]
    recorded = db.execute("SELECT id, value, error FROM entries").fetchall()
    db.close()
    home.survive()
    expected = json.load(open(f"{folder}/{name}.json"))
    r = home.run("--json", "resume", run)
    try:
        result = json.loads(r.stdout)["result"]
    except (ValueError, KeyError):
        result = None
    after = home.journal().execute("SELECT id, value, error FROM entries").fetchall()
    kept = set(recorded) <= set(after) and len(after) > len(recorded)
    ok = result == expected and kept
    failures += not ok
    print(f"{'ok' if ok else 'not ok'} {n} - {name}: {len(recorded)} entries of format-1")
    if not ok:
        print(f"# got {result}, expected {expected}; record kept: {kept}\n{r.stdout}{r.stderr}")
        print("# If the format was changed before its release on purpose: tests/golden/make.py build/release/rille")
    home.remove()
print(f"1..{len(scripts)}")
sys.exit(failures != 0)
