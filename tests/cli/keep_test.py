#!/usr/bin/env python3
"""What a session of the prompt keeps when it is killed, or its terminal closes. usage: keep_test.py RILLE"""
import json, os, shutil, signal, struct, subprocess, sys, tempfile, time

from prompt import Prompt
from tap import check, finish

rille = os.path.abspath(sys.argv[1])
home = tempfile.mkdtemp(prefix="rille-keep-")
cpu = dict(RILLE_DEVICE="cpu")


def kept(run, name):
    return f"{home}/runs/{run}/kept/{name}.safetensors"


def run_of(p):
    return p.enter(":runs").split("\n")[1].split()[0]


def until(what, seconds=20):
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.02)
    return what()


def holds(path, value):
    """Whether a file with one f32 tensor of one element has that value."""
    try:
        return struct.unpack("<f", open(path, "rb").read()[-4:])[0] == value
    except (OSError, struct.error):
        return False


def give_recipe(path, recipe):
    """Writes into a file of tensors how its model is made."""
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    head["__metadata__"]["recipe"] = recipe
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data[8 + size:])


def resumed():
    return Prompt(rille, home, "resume", "last", env=cpu)


try:
    p = Prompt(rille, home, env=cpu)
    p.enter("d = rille.device('cpu'); box = rille.rent('play', { gpu = 'cpu' })")
    p.enter("t = d:full { 1, value = 7 }; gone = d:ones { 1 }")
    p.enter("net = rille.nn.mlp { 4, 3, 2 }")
    p.enter("w = net:parameters()[1].tensor; w:detach():add_(1); sum = w:sum():item()")
    p.enter("huge = d:ones { 3e6 }; weight = d:ones { 2 }:requires_grad_()")
    run = run_of(p)
    p.enter("t:add_(1); gone = nil")
    check("a small tensor is written once it is computed, without being looked at",
          until(lambda: holds(kept(run, "t"), 8)))
    check("a variable that is gone is kept no longer", until(lambda: not os.path.exists(kept(run, "gone"))))
    before = os.stat(kept(run, "net")).st_mtime_ns
    p.enter("1 + 1")
    check("what did not change is not written again", os.stat(kept(run, "net")).st_mtime_ns == before)
    os.kill(p.pid, signal.SIGKILL)
    p.end()

    p = resumed()
    check("a machine is back in its variable", "it is in box" in p.banner and "'play'" in p.enter("box"), p.banner)
    check("tensors survive kill -9", "8" in p.enter("t:item()"), p.banner)
    check("models, too, with their weights",
          "true" in p.enter("net:parameters()[1].tensor:sum():item() == sum"), p.banner)
    check("a parameter stays one", "true" in p.enter("weight.requires_grad"))
    check("a large one is not, and the session says why and what keeps it",
          "not kept: huge: it has more than 8 MB: :suspend keeps it" in p.banner, p.banner)
    p.enter("d = rille.device('cpu')")
    p.enter("huge = d:full { 3e6, value = 2 }; t = 'text'; more = d:full { 1, value = 5 }")
    os.kill(p.pid, signal.SIGHUP)
    out = p.wait("rille resume")
    check("a hangup suspends", "suspended by signal 1" in out and p.end() == 129, out)

    subprocess.run([rille, "release", "play"], env=dict(os.environ, RILLE_HOME=home), capture_output=True)
    p = resumed()
    check("one that was released is told, not rented anew",
          "not kept: box: this session does not rent play any more" in p.banner and
          "nil" in p.enter("tostring(rawget(_G, 'box'))"), p.banner)
    check("a closed terminal loses nothing, large tensors included",
          "2" in p.enter("huge:mean():item()") and "not kept: huge" not in p.banner, p.banner)
    check("a variable that became a text stays one", '"text"' in p.enter("t") and "5" in p.enter("more:item()"))
    p.key(b"while true do end\n")
    time.sleep(0.3)
    os.kill(p.pid, signal.SIGTERM)
    out = p.wait("rille resume")
    check("SIGTERM ends the entry, and keeps the variables", "suspended by signal 15" in out and p.end() == 143, out)
    p = resumed()
    check("which come back", "5" in p.enter("more:item()"), p.banner)
    os.close(p.fd)
    os.waitpid(p.pid, 0)
    p = resumed()
    check("a terminal that is gone suspends the session", "5" in p.enter("more:item()"), p.banner)

    p.enter("d = rille.device('cpu')")
    p.enter('spin = d:kernel([[extern "C" __global__ void spin(float* x) '
            "{ volatile float* p = x; while (p[0] == 0.0f) {} }]])")
    p.enter("x = d:zeros { 1 }; spin:launch({ grid = 1, block = 1 }, x)")
    check("an entry behind a kernel without an end waits for nothing", "2" in p.enter("1 + 1"))
    os.kill(p.pid, signal.SIGKILL)
    p.end()
    p = resumed()
    check("a tensor that was not computed is told", "not kept: x: it was not computed" in p.banner, p.banner)
    check("beside those that were", "5" in p.enter("more:item()"))
    p.enter("d = rille.device('cpu')")
    p.enter('bad = d:kernel([[extern "C" __global__ void bad(float* x) { x[5] = 1; }]])')
    p.enter("y = d:zeros { 1 }; bad:launch({ grid = 1, block = 1 }, y)")
    time.sleep(0.3)
    check("keeping takes no error from the entry that looks", "reaches x[5]" in p.enter("y"))
    p.key(b":quit\n")
    check("the session ends well", p.end() == 0)

    # A home that somebody has changed.
    p = Prompt(rille, home, env=cpu)
    p.enter("x = rille.device('cpu'):ones { 2 }")
    p.enter("net = rille.nn.mlp { 4, 3, 2 }")
    p.enter("other = rille.nn.mlp { 4, 3, 2 }")
    p.enter("third = rille.nn.mlp { 4, 3, 2 }")
    run = run_of(p)
    p.key(b":suspend\n")
    p.end()
    os.mkdir(home + "/outside")
    shutil.copy(kept(run, "x"), home + "/outside/precious.safetensors")
    away = "../../../outside/precious"
    with open(f"{home}/runs/{run}/variables") as f:
        variables = json.load(f)
    variables["tensors"][away] = True
    with open(f"{home}/runs/{run}/variables", "w") as f:
        json.dump(variables, f)
    marker = home + "/executed"
    give_recipe(kept(run, "x"), f"os.execute('touch {marker}') x = nil")
    give_recipe(kept(run, "other"), f"other = rille.nn.mlp {{ 4, 3, os.execute('touch {marker}') }}")
    give_recipe(kept(run, "third"), f"""third = rille.nn.mlp("\\z\n", os.execute('touch {marker}'), "")""")
    p = Prompt(rille, home, "resume", run, env=cpu)
    p.enter("y = 1")
    p.enter("y")
    check("a name that leads out of the folder is no variable",
          f"not kept: {away}: its name is no name of Lua's" in p.banner, p.banner)
    check("nor is its file removed", os.path.exists(home + "/outside/precious.safetensors"))
    check("a recipe that no session writes is not run", not os.path.exists(marker) and
          all(f"not kept: {name}: no entry" in p.banner for name in ("x", "other", "third")), p.banner)
    check("the others come back", "variables: net" in p.banner and "2" in p.enter("net(rille.device('cpu'):ones "
          "{ 1, 4 }):size(2)"), p.banner)
    p.key(b":quit\n")
    p.end()
finally:
    shutil.rmtree(home, ignore_errors=True)
finish()
