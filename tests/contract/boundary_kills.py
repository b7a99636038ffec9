#!/usr/bin/env python3
"""Kills a runner at its first boundary (boundary.c: a commit, a request, a piece of an answer), resumes it, then at its
second, and so on until one ends before it is killed. It rents a machine of a fake, makes a call there and releases it.
After each: the result is right, nothing that costs money is alive, nothing was rented twice under one tag. In the end
the ledger is the fake's bill.

The machine itself is a folder here (stubs/ssh), with a real agent in it. With --resize it becomes another type between
two calls. With --no-disk no disk is asked for. With --volume the machine gets a volume, which is made before it and
deleted after it.
usage: boundary_kills.py RILLE BOUNDARY_SO PROVIDER [--every K] [--first N] [--resize] [--no-disk] [--volume]"""
import argparse, collections, json, os, signal, subprocess, sys, time
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here))
from bills import Bills
from user import User

p = argparse.ArgumentParser()
p.add_argument("rille")
p.add_argument("shim")
p.add_argument("provider")
p.add_argument("--every", type=int, default=1, help="only each K-th boundary")
p.add_argument("--first", type=int, default=1)
p.add_argument("--resize", action="store_true")
p.add_argument("--no-disk", action="store_true", help="ask for none: the provider's usual one is billed")
p.add_argument("--volume", action="store_true")
o = p.parse_args()
user = User(o.rille, o.provider, "--start", "0.02")
user.ask("set", end=0.01)
# A GB of disk costs a tenth an hour, and an address two: as much as a machine, so that its time is seen in the bill of
# a second. Vast tells the one; those that charge for the other are known.
user.ask("set", disk_price=73.0)
if o.provider != "vast":
    user.beside = dict(disk_price={o.provider: 73.0})
ADDRESS = o.provider in ("aws", "azure", "gcp")
if ADDRESS:
    user.ask("set", address_price=2.0)
    user.beside["address_price"] = {o.provider: 2.0}
DISK = o.provider not in ("lambda", "kubernetes")  # nothing to be ordered there
# Then it makes a group for the cluster, which the fake counts.
for name in dict(aws=("security_group", "subnet"), azure=("security_group", )).get(o.provider, ()):
    del user.told["settings"][name]
log = Path(user.root, "boundaries")
machines = Path(user.root, "machines")
base = dict(STUB_MACHINES=str(machines), PATH=f"{here}/stubs:{os.environ['PATH']}", RILLE_THREADS="1")
# aws is billed by the GiB, the ledger counts GB: of ten both are the same number.
PLACE = dict(azure=', region = "eastus"', kubernetes=', region = "zone-a"', runpod=', region = "US-KS-2"')
VOLUME = 'local disk = rille.volume("disk", { provider = "%s", size = "%s"%s })\n' % (
    o.provider, "10GB" if o.provider == "aws" else "20GB", PLACE.get(o.provider, ""))
SCRIPT = """
%slocal box = rille.rent("box", { provider = "%s", gpu = "A100", ttl = "2h", %sunguarded = true, price = %s,
                               cluster = "gang", gpu_check = false })
local sum = box:call("sum", { args = 20 }, function(n) return n + 22 end)
%s
box:release()
%sreturn sum
"""
RESIZE = """
box:resize { type = "%s", price = %s }
box:call("more", { args = 20 }, function(n) return n + 22 end)
"""
NAMES = dict(c="commit", s="request", r="answer")
failures, killed, resumed, began = [], collections.Counter(), 0, time.time()
over = {}  # volume, or another object -> when its run had ended for good
spans = {}  # machine -> (when its runner was killed or None, when its run had ended for good), by the fake's clock


def offers(*words):
    rows = json.loads(user.rille("offers", "--refresh", "--json", "--provider", o.provider, *words)[1])
    return sorted((r for r in rows if "price_per_hour" in r), key=lambda r: r["price_per_hour"])


def prices():
    """What the cheapest machine costs an hour, in the provider's currency, which the ledger then takes for dollars (a
    cluster of one's own costs nothing); and what it becomes, as lines of the script."""
    found = offers("--gpu", "A100")
    first = found[0] if found else dict(price_per_hour=0)
    if not o.resize:
        return first["price_per_hour"], ""
    other = next(r for r in offers() if r["region"] == first["region"] and r["id"] != first["id"] and "+" not in r["id"]
                 and not r.get("spot"))
    type = other["id"].partition("/")[2]
    return first["price_per_hour"], RESIZE % (type, other["price_per_hour"])


def newest():
    rows = json.loads(user.rille("ps", "--json", "-n", "1", env=user.env(**base))[1] or "[]")
    return (rows[0]["id"], rows[0]["state"]) if rows else ("", "")


def agents():
    """Processes of machines of this test."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"RILLE_INSTANCE={machines}".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def end_agents():
    for pid in agents():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def check_secrets():
    for pid in agents():
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if any(s.encode() in environ for s in user.secrets):
            failures.append("a secret stands in the environment of an agent")


def settled():
    """The fake's state, once what it has said to be gone has also ended: that takes it a hundredth of a second."""
    for _ in range(50):
        state = user.ask("state")
        if not state["alive"]:
            break
        time.sleep(0.02)
    return state


def one(n, only=""):
    """False: it ended before its n-th boundary, or its n-th of that letter."""
    global resumed
    before, made = newest(), len(user.ask("state")["machines"])
    log.unlink(missing_ok=True)
    shim = dict(base, LD_PRELOAD=os.path.abspath(o.shim), BOUNDARY_PORT=str(user.told["port"]), BOUNDARY_KILL=str(n),
                BOUNDARY_LOG=str(log), BOUNDARY_ONLY=only)
    disk = 'disk = "100GB", ' if DISK and not o.no_disk else ""
    before_it, after_it = (VOLUME, "disk:delete()\n") if o.volume else ("", "")
    if o.volume:
        disk += "volumes = { data = disk }, "
    code, out, err = user.run(SCRIPT % (before_it, o.provider, disk, cost, then, after_it), env=user.env(**shim))
    check_secrets()
    letters = log.read_text() if log.exists() else ""
    where = f"boundary {n} ({NAMES.get(letters[-1:], '?')})"
    if code != -signal.SIGKILL:
        if code != 0 or (letters.count(only) if only else len(letters)) >= n:
            failures.append(f"{where}: ended with {code}: {out[-900:]} {err[-900:]}")
        if check_end("not killed", None, made) == 0 and code == 0:
            failures.append("the run that was not killed rented no machine")
        return False
    at = time.time()
    killed[NAMES[letters[-1]]] += 1
    id, state = newest()
    if (id, state) != before and state not in ("done", "failed", "cancelled"):
        resumed += 1
        code, out, err = user.rille("--json", "resume", id, env=user.env(**base), timeout=300)
        result = json.loads(out).get("result") if out else None
        if code != 0 or result != 42:
            failures.append(f"{where}: resumed with {code}: {out[-900:]} {err[-900:]}")
    elif id != before[0] and state != "done":
        failures.append(f"{where}: the run is {state}")
    check_end(where, at, made)
    return True


def check_end(where, killed_at, made):
    """What is true after each run. Gives how many machines it has had."""
    end, state = time.time(), settled()
    if state["alive"]:
        failures.append(f"{where}: {state['alive']} things that cost money are alive: {user.rille('leases')[1]}")
    new = state["machines"][made:]
    if len(new) > 1:
        failures.append(f"{where}: {len(new)} machines for one rent")
    spans.update({m["id"]: (killed_at, end) for m in new})
    for volume in state["objects"]:
        over.setdefault(volume["id"], end)
    return len(new)


def check_bills():
    """The ledger beside the fake's bill, part by part, and what there is to say of it."""
    bills = Bills(user)
    bills.compare(spans, ("sum", "more") if o.resize else None)
    failures.extend(bills.compare_volumes(over))
    names = [v["tag"] for v in bills.volumes()]
    if o.volume and (not names or len(set(names)) != len(names)):
        failures.append(f"no volume, or two under one tag: {names}")
    for part, wanted in (("disk", DISK), ("address", ADDRESS)):
        if wanted and not any(m["bills"][part] for m in bills.state["machines"]):
            failures.append(f"no {part} was billed")
    return f"of {bills.equal} their own time costs the same to the last micro, the ledger is up to {bills.above} above"


try:
    cost, then = prices()
    n = o.first
    while not failures and one(n):
        n += o.every
        end_agents()
    for letter, name in NAMES.items():  # what each K-th has passed over
        if not failures and not killed[name]:
            one(1, letter)
            end_agents()
    never = sorted(set(NAMES.values()) - set(killed))
    if never and not failures:
        failures.append(f"never killed at: {', '.join(never)}: does {o.shim} see them?")
    tags = [m["tag"] for m in user.ask("state")["machines"]]
    if len(set(tags)) != len(tags):
        failures.append(f"rented twice under one tag: {sorted(t for t in tags if tags.count(t) > 1)}")
    told = check_bills()
    leaks = user.leaks()
    if leaks:
        failures.append(f"a secret stands in {leaks}")
    print(f"{o.provider}: killed at {sum(killed.values())} boundaries ({dict(killed)}), {resumed} resumed, "
          f"{len(tags)} machines, {told}, "
          f"{len(user.ask('state')['calls'])} calls, {time.time() - began:.0f} s")
finally:
    end_agents()
    for f in failures[:5]:
        print("WRONG:", f)
    if failures:
        print("kept:", user.root)
    user.close(keep=bool(failures))
sys.exit(bool(failures))
