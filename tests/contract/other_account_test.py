#!/usr/bin/env python3
"""Who asks with keys of another account is told "not found" of what somebody else's run on: nothing is taken for gone
then, and its row stays. Keys that were replaced within one account are the same account's.

usage: other_account_test.py RILLE PROVIDER
"""
import sqlite3, sys
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli")]
from tap import check, finish
from user import User, errors_in

rille, provider = sys.argv[1:3]
RENT = 'local box = rille.rent("%s", { provider = "' + provider + '", unguarded = true, gpu = "A100", ttl = "2h" })\n' \
       'box:detach("1h")\nreturn box:describe().name\n'
ours, theirs = User(rille, provider), User(rille, provider, "--seed", "2")


def leases():
    db = sqlite3.connect(f"file:{ours.root}/home/rille/journal.db?mode=ro", uri=True)
    rows = {name: (id, state, owner) for name, id, state, owner in db.execute(
        "SELECT name,id,state,(SELECT owner FROM owners o WHERE o.lease=l.id) FROM leases l")}
    db.close()
    return rows


def alive():
    return [m["id"] for m in ours.ask("state")["machines"] if m["state"] != "gone"]


def elsewhere(*words):
    """The same home and workflows, with the keys and settings of the other account."""
    mine = {name: value for name, value in ours.env().items() if name not in ours.told["env"]}
    return ours.rille(*words, env=dict(mine, **theirs.told["env"]), settings=theirs.settings())


def settled():
    """Long enough after the rent that an empty list is a proof; the lag is that of User.settings."""
    import time
    time.sleep(2)


try:
    status, out, err = ours.run(RENT % "box")
    check("a machine is rented", status == 0 and len(alive()) == 1, (status, out, err))
    id, _, owner = leases()["box"]
    check("its row has whose it is", bool(owner), owner)
    asked = [c["operation"] for c in ours.ask("state")["calls"]]
    check("which is asked once", sum(o in ("GetCallerIdentity", "showUser") for o in asked) <= 1, asked)
    check("and holds no secret", not any(s in owner for s in ours.secrets), owner)
    settled()

    status, out, err = elsewhere("leases", "--all-providers")
    text = out + err
    check("the other account's list does not take it for vanished",
          "show the machine of" not in text and "rented" in text, text)
    status, out, err = elsewhere("gc")
    check("nor does gc", status == 3 and len(alive()) == 1 and leases()["box"][1] == "live", (status, out, err))
    status, out, err = elsewhere("release", id)
    errors = errors_in(out + err)
    check("a release says whose it is", status != 0 and [e[0] for e in errors] == ["auth"] and
          "set the key" in errors[0][2],
          (status, out, err))
    check("the machine runs on, and its row stays", len(alive()) == 1 and leases()["box"][1] == "releasing",
          (alive(), leases()))
    status, out, err = ours.rille("release", id)
    check("its own account ends it", status == 0 and not alive() and leases()["box"][1] == "released",
          (status, out, err, alive()))

    status, out, err = ours.run(RENT % "gone")
    id = leases()["gone"][0]
    ours.ask("vanish", id=alive()[0])
    settled()
    key = ours.told["temporary"] if provider in ("aws", "alibaba", "tencent", "huawei") else {}
    status, out, err = ours.rille("release", id, env=ours.env(**key))
    check("another key of the account may say that it is gone", status == 0 and leases()["gone"][1] == "released",
          (status, out, err))

    status, out, err = ours.run(RENT % "old")
    id = leases()["old"][0]
    db = sqlite3.connect(f"{ours.root}/home/rille/journal.db")
    db.execute("DELETE FROM owners WHERE lease=?", (id, ))
    db.commit()
    db.close()
    ours.ask("vanish", id=alive()[0])
    settled()
    status, out, err = ours.rille("release", id)
    check("a row without an owner is not checked", status == 0 and leases()["old"][1] == "released",
          (status, out, err))
    check("nothing secret was shown or written", not ours.leaks(), ours.leaks())
finally:
    ours.close()
    theirs.close()
finish()
