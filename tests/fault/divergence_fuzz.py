#!/usr/bin/env python3
"""Scripts that are changed between a kill and the resume: each change of what has been executed must be called a
divergence before any effect, no other change may be, and the unchanged script goes on to the result of an undisturbed
run. usage: divergence_fuzz.py RILLE [COUNT [FIRST_SEED]]; a failure prints the command that repeats it."""
import copy, json, os, random, shutil, subprocess, sys, tempfile

rille = os.path.abspath(sys.argv[1])
count = int(sys.argv[2]) if len(sys.argv) > 2 else 20
first = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(1 << 30)
seen = {}  # how often each branch was reached


class Failed(Exception):
    pass


def sometimes(what):
    seen[what] = seen.get(what, 0) + 1


# --- scripts: a list of operations, each {op, name, ...}; spawn, scope and map have a body of their own.

def make_body(dice, names, depth, size):
    body = []
    for _ in range(dice.randint(1, size)):
        kinds = ["step"] * 6 + ["sleep", "now", "random"] + (["spawn", "map", "scope"] if depth < 2 else [])
        op = {"op": dice.choice(kinds), "name": f"n{len(names)}", "args": dice.randrange(9)}
        names.append(op["name"])
        if op["op"] in ("spawn", "map", "scope"):
            op["body"] = make_body(dice, names, depth + 1, 3)
            op["width"] = dice.randint(2, 3)
        body.append(op)
    return body


def all_bodies(body):
    yield body
    for op in body:
        if "body" in op:
            yield from all_bodies(op["body"])


def durable(op):
    return op["op"] in ("step", "sleep", "random", "die")


def lua(body, indent=""):
    out = []
    for op in body:
        name, args = op["name"], op["args"]
        if op["op"] == "step":
            out.append(f'sum(do_("{name}", {args}))')
        elif op["op"] == "random":
            out.append(f'sum(do_("{name}", math.random(1, 1000000), {args}))')
        elif op["op"] == "die":
            out.append("die()")
        elif op["op"] == "sleep":
            out.append(f'rille.sleep("{name}", "{args + 1}ms")')
        elif op["op"] == "now":
            out.append("rille.now()")
        elif op["op"] == "scope":
            out.append(f'rille.scope("{name}", function()\n{lua(op["body"], indent + "  ")}\n{indent}end)')
        elif op["op"] == "spawn":
            inner = lua(op["body"], indent + "  ")
            out.append(f'local {name} = rille.spawn("{name}", function()\n{inner}\n{indent}end)')
        elif op["op"] == "map":
            items = ", ".join(str(i + 1) for i in range(op["width"]))
            inner = lua(op["body"], indent + "  ")
            out.append(f'rille.map("{name}", {{ {items} }}, function(i)\n{inner}\n{indent}end)')
    return "\n".join(indent + line for line in out)


def source(body, root):
    return f'''local rille = require "rille"
local total = 0
local function sum(n) total = total + n end
local function note(word) local f = io.open("{root}/did", "a"); f:write(word, "\\n"); f:close() end
local function do_(name, args, value)
  if args == 0 then return rille.step(name, function() note(name) return value or args end) end
  return rille.step(name, {{ args = args }}, function() note(name) return value or args end)
end
local function die()
  rille.step("die", function()
    if not io.open("{root}/survive") then os.execute("sleep 0.03; kill -9 $PPID") end
  end)
end
rille.scope("all", function()
{lua(body, "  ")}
end)
return total
'''


# --- changes. Each gives the operations whose record it contradicts, if they are in it.

def mutate(dice, body):
    changed = copy.deepcopy(body)
    bodies = [b for b in all_bodies(changed) if any(durable(op) and op["op"] != "die" for op in b)]
    if not bodies:
        return None
    where = dice.choice(bodies)
    at = dice.choice([i for i, op in enumerate(where) if durable(op) and op["op"] != "die"])
    op = where[at]
    how = dice.choice(["rename", "args", "drop", "insert", "swap"])
    touched = [op["name"]]
    if how == "rename":
        op["name"] = "renamed"
    elif how == "args":
        if op["op"] == "random":
            return None
        op["args"] += 10
    elif how == "drop":
        del where[at]
    elif how == "insert":
        where.insert(at, {"op": "step", "name": "inserted", "args": 1})
    elif how == "swap":
        other = at + 1
        if other >= len(where) or not durable(where[other]):
            return None
        where[at], where[other] = where[other], where[at]
    return how, touched, changed


# --- one seed

def one(seed):
    dice = random.Random(seed)
    root = tempfile.mkdtemp(prefix="rille-diverge-")
    env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1")

    def run(*words):
        r = subprocess.run([rille, "--json", *words], env=env, capture_output=True, text=True, timeout=120, cwd=root)
        return r.returncode, json.loads(r.stdout) if r.stdout.strip() else None, r.stderr

    def did():
        return open(root + "/did").read() if os.path.exists(root + "/did") else ""

    def write(name, body):
        open(f"{root}/{name}.lua", "w").write(source(body, root))
        return f"{root}/{name}.lua"

    def check(ok, what, detail=""):
        if not ok:
            raise Failed(f"{what}: {detail}\n{open(root + '/script.lua').read()}")

    names = []
    body = make_body(dice, names, 0, 6)
    where = dice.choice(list(all_bodies(body)))
    where.insert(dice.randint(0, len(where)), {"op": "die", "name": "die", "args": 0})
    script = write("script", body)
    code, _, err = run("run", script)
    check(code == -9, "the runner should have been killed", err)
    entries = run("show", "last")[1]["entries"]
    done = {e["name"] for e in entries if e["state"] == "done"}
    begun = {e["name"] for e in entries if e["state"] == "started"}
    open(root + "/survive", "w").close()
    last = None
    for k in range(4):
        change = mutate(dice, body)
        if not change:
            continue
        how, touched, changed = change
        if touched[0] in begun - done:
            continue  # begun, not executed: either answer is right
        if not any(n in done for n in touched):
            last = how, write("later", changed)
            continue
        before = did()
        code, out, err = run("resume", "last", "--with", write(f"changed{k}", changed))
        text = open(f"{root}/changed{k}.lua").read()
        caught = code == 1 and out["error"]["kind"] == "divergence"
        check(caught, f"{how} of {touched} was not caught", f"{out} {err}\n{text}")
        check(did() == before, f"{how} of {touched} was caught after an effect", text)
        sometimes("caught: " + how)
    if last and dice.random() < 0.5:
        code, out, err = run("resume", "last", "--with", last[1])
        check(code == 0, f"{last[0]} of what was not executed yet was refused", f"{out} {err}\n{open(last[1]).read()}")
        sometimes("a later change goes on")
    else:
        code, out, err = run("resume", "last")
        check(code == 0, "the unchanged script was refused", f"{out} {err}")
        resumed = out["result"]
        code, out, err = run("run", script)
        check(code == 0 and out["result"] == resumed, "another result than an undisturbed run's", f"{resumed} {out}")
        sometimes("unchanged")
    shutil.rmtree(root)


print(f"seeds {first} to {first + count - 1}", flush=True)
failures = 0
for seed in range(first, first + count):
    try:
        one(seed)
    except Failed as e:
        failures += 1
        print(f"not ok - seed {seed}: {e}\n# again: {' '.join(sys.argv[:2])} 1 {seed}", flush=True)
for what, n in sorted(seen.items()):
    print(f"# {what}: {n}")
if count >= 100:
    for what in ["caught: rename", "caught: args", "caught: drop", "caught: insert", "caught: swap", "unchanged",
                 "a later change goes on"]:
        if what not in seen:
            failures += 1
            print(f"not ok - never reached: {what}")
print(f"{'not ok' if failures else 'ok'} - {count} scripts")
sys.exit(failures != 0)
