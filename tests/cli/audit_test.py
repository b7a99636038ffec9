#!/usr/bin/env python3
"""`rille audit`: what was done for money, and that an altered trail is noticed. usage: audit_test.py RILLE"""
import json, os, shutil, sqlite3, subprocess, sys, tempfile

from tap import check, finish

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-audit-")
home = root + "/home"
env = dict(os.environ, RILLE_HOME=home, XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")


def run(*words):
    r = subprocess.run([rille, *words], env=env, capture_output=True, text=True, timeout=60, cwd=root)
    return r.returncode, r.stdout, r.stderr


def alter(sql):
    with sqlite3.connect(home + "/journal.db") as db:
        db.execute(sql)
    db.close()


try:
    code, out, err = run("audit")
    check("an empty trail", (code, out) == (0, "no events yet\n"), out + err)

    open(root + "/a.lua", "w").write('local rille = require "rille"\nrille.rent("box", { gpu = "cpu" })\n')
    check("a run that rents", run("run", "a.lua")[0] == 0)
    code, out, err = run("audit", "last")
    words = [line.split()[2] for line in out.splitlines()[1:-1]]
    words = [w for w in words if w in ("rent", "live", "released")]
    check("its rent, its machine and its release are there, in order",
          code == 0 and words == ["rent", "live", "released"], out + err)
    head = out.split()[-1]
    check("the last hash is shown", len(head) == 64 and "the trail is whole" in out, out)
    data = json.loads(run("audit", "--json")[1])
    check("as JSON", "error" not in data and data["head"] == head and data["events"][-1]["hash"] == head, data)

    check("a second run", run("run", "a.lua")[0] == 0)
    check("the hash that was kept is still there", run("audit", "--kept", head)[0] == 0)
    check("a beginning of it is enough", run("audit", "--kept", head[:8])[0] == 0)
    check("but not less", run("audit", "--kept", head[:7])[0] != 0)
    later = json.loads(run("audit", "--json")[1])["head"]
    alter("DELETE FROM events WHERE id=(SELECT max(id) FROM events)")
    check("rows cut off do not show by themselves", run("audit")[0] == 0)
    code, out, err = run("audit", "--kept", later)
    check("but with the kept hash they do", code == 1 and "no row of the audit trail has the hash" in err and
          "removed" in err, err)
    alter("UPDATE events SET data=replace(data,'box','fox') WHERE id=2")
    code, out, err = run("audit")
    check("an altered row is named", code == 1 and "broken at row 2" in err, err)
    check("and in JSON", "row 2" in json.loads(run("audit", "--json")[1])["error"]["message"])
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
