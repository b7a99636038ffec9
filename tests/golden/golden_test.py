#!/usr/bin/env python3
"""Journals that earlier builds wrote and were killed over go on with this one, to the result of an undisturbed run: the
rows in a journal of this build, and in one with each earlier schema (format-1/schema-DATE.sql), which this build brings
up to date. A journal with an unknown schema is refused.
usage: golden_test.py RILLE"""
import glob, json, os, sys

from golden import Home, folder, scripts

rille = sys.argv[1]
results = []


def check(name, ok, *notes):
    results.append(ok)
    print(f"{'ok' if ok else 'not ok'} {len(results)} - {name}")
    if not ok:
        print(*(f"# {note}" for note in notes), sep="\n")


def made_with(schema):
    """A home whose journal an earlier build made: no schema means this build."""
    home = Home(rille)
    if schema:
        for file in glob.glob(home.root + "/home/journal.db*"):
            os.remove(file)
        home.journal().executescript(open(schema).read())
    return home


def layout(home):
    """The columns, with type, NOT NULL, default and key, of each table, and the indices."""
    db = home.journal()
    tables = [name for name, in db.execute("SELECT name FROM sqlite_schema WHERE type='table' ORDER BY name")]
    columns = {t: sorted(row[1:] for row in db.execute(f"PRAGMA table_info({t})")) for t in tables}
    return columns, db.execute("SELECT sql FROM sqlite_schema WHERE type='index' ORDER BY name").fetchall()


def resumes(name, schema, title):
    home = made_with(schema)
    db = home.journal()
    rows = open(f"{folder}/{name}.sql").read()
    db.executescript("BEGIN;" + rows + "COMMIT;")
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
    check(f"{name}: {len(recorded)} entries of format-1 in {title}", result == expected and kept,
          f"got {result}, expected {expected}; record kept: {kept}", r.stdout, r.stderr,
          "If the format was changed before its release on purpose: tests/golden/make.py build/release/rille")
    home.remove()


def comes_up_to_date(schema, title):
    home, new = made_with(schema), made_with(None)
    for again in "", ", and stays so":
        r = home.run("ps")
        check(f"{title} gets the tables of this build{again}", r.returncode == 0 and layout(home) == layout(new),
              r.stdout, r.stderr, layout(home), layout(new))
    mark = "PRAGMA application_id"
    check("it has this build's fingerprint", home.journal().execute(mark).fetchone() ==
          new.journal().execute(mark).fetchone())
    home.remove()
    new.remove()


def refuses_an_unknown_schema():
    home = made_with(None)
    home.journal().execute("PRAGMA application_id=12345").connection.commit()
    r = home.run("ps")
    said = r.stdout + r.stderr
    check("a journal of an unknown development version is refused, with the way out",
          r.returncode != 0 and "was written by another development version of Rille" in said and
          "another RILLE_HOME" in said, said)
    home.remove()


schemas = {f"a journal of {os.path.basename(file)[7:-4]}": file for file in sorted(glob.glob(folder + "/schema-*.sql"))}
for title, schema in {"a journal of this build": None, **schemas}.items():
    for script in scripts:
        resumes(script, schema, title)
    if schema:
        comes_up_to_date(schema, title)
refuses_an_unknown_schema()
print(f"1..{len(results)}")
sys.exit(not all(results))
