#!/usr/bin/env python3
"""The provider `ssh` on a real sshd: the life of an instance, and calls by an agent that outlives its runner. What a
new user gets wrong: mistakes_here_test.py. usage: ssh_test.py RILLE [BUNDLE]"""
import json, os, shutil, signal, subprocess, sys, tarfile, tempfile, time
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli"), str(here.parent / "workflows"), str(here.parent / "support")]
import need
import signed_bundle
from places import PLACES
from sshd import Sshd, free_port
from tap import check, finish

need.met(PLACES["ssh"].missing)

rille = os.path.abspath(sys.argv[1])
root = tempfile.mkdtemp(prefix="rille-ssh-")
env = dict(os.environ, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", RILLE_THREADS="1",
           RILLE_PROVIDERS=root + "/providers.json")
BOX = 'local rille = require "rille"\nlocal box = rille.rent("b", { provider = "ssh", ttl = "1h" })\n'


def settings(host, *more, **ssh):
    Path(env["RILLE_PROVIDERS"]).write_text(json.dumps({"ssh": {"hosts": [host, *more], **ssh}}))


def run(*words, program=rille, **more):
    r = subprocess.run([program, *words], env=dict(env, **more), capture_output=True, text=True, timeout=120, cwd=root)
    return r.returncode, r.stdout, r.stderr


def script(source, *words, **more):
    Path(root, "script.lua").write_text(source)
    return run("--json", "run", root + "/script.lua", *words, **more)


def rented(host):
    folder = Path(host.folder, "rented")
    return sorted(p.name for p in folder.glob("i-*")) if folder.exists() else []


def marked(host):
    """Processes of instances of this sshd."""
    mark = f"RILLE_INSTANCE={host.folder}/rented".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def life(host):
    settings(host.settings(price=1.25), options=host.options())
    offers = json.loads(run("offers", "--json")[1])
    mine = next((o for o in offers if o.get("provider") == "ssh"), {})
    check("the host is offered with its price and processors",
          mine.get("price_per_hour") == 1.25 and mine.get("vcpus") == os.cpu_count() and mine.get("id") == "loop",
          offers)
    code, out, said = script(BOX + """
box:exec("make", { argv = { "sh", "-c", "echo made > made.txt" } })
local sum = box:call("sum", { args = { 3, 4 } }, function(list) return list[1] + list[2] end)
box:get("made.txt", "got.txt")
return { sum = sum, directory = box:call("where", function() return os.getenv("RILLE_INSTANCE") end) }""")
    result = json.loads(out).get("result", {}) if code == 0 else {}
    check("calls, programs and files work over ssh", result.get("sum") == 7, out + said)
    check("they ran in the host's folder", result.get("directory", "").startswith(host.folder + "/rented/i-"), result)
    check("after the run nothing is left", rented(host) == [] and marked(host) == [], (rented(host), marked(host)))

    code, out, said = script(BOX + """
local two = rille.try_rent("c", { provider = "ssh", ttl = "1h" })
return { second = two == nil }""")
    check("a host has one slot", code == 0 and json.loads(out)["result"] == {"second": True}, out + said)

    # Processes that hide: no environment, a session of their own.
    code, out, said = script(BOX + """
box:exec("hide", { argv = { "sh", "-c", "env -i setsid sleep 1733 & setsid sleep 1733 & sleep 0.2; echo $!" } })""")
    check("what a program left behind ends with the instance", code == 0 and marked(host) == [] and
          not [p for p in Path("/proc").glob("[0-9]*") if sleeping(p)], out + said)


def sleeping(entry):
    try:
        return (entry / "cmdline").read_bytes() == b"sleep\x001733\x00"  # no other test has this one
    except OSError:
        return False


def outlives(host):
    """The runner is killed while a call runs; the resumed one joins the same call."""
    settings(host.settings(), options=host.options())
    Path(root, "long.lua").write_text(BOX + """
local result = box:call("count", function()
  local file = io.open("count", "a") file:write("x") file:close()
  local until_s = os.time() + 4
  while os.time() < until_s do end
  file = io.open("count") return #file:read("*a")
end)
return result""")
    runner = subprocess.Popen([rille, "run", root + "/long.lua"], env=env, cwd=root, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while time.monotonic() < end and not list(Path(host.folder).glob("rented/i-*/work/count")):
        time.sleep(0.05)
    runner.kill()
    runner.wait()
    check("the instance outlives a killed runner", len(rented(host)) == 1 and marked(host), rented(host))
    code, out, said = run("--json", "resume", "last")
    check("the resumed run joins the call, which ran once", code == 0 and json.loads(out).get("result") == 1,
          out + said)
    check("and releases the instance", rented(host) == [] and marked(host) == [], (rented(host), marked(host)))

    Path(root, "lost.lua").write_text(BOX + 'rille.signal("go")')
    runner = subprocess.Popen([rille, "run", root + "/lost.lua"], env=env, cwd=root, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while time.monotonic() < end and not rented(host):
        time.sleep(0.05)
    runner.kill()
    runner.wait()
    code, out, said = run("release", "last")
    check("an instance whose runner is lost is released by its row", code == 0 and rented(host) == [], out + said)


def brings_itself(host, archive):
    """A host that does not see this machine's files gets the bundle: the runner's own program is hidden from it."""
    cache = root + "/cache"
    settings(host.settings(), options=[*host.options(), "-o", f"SetEnv=XDG_CACHE_HOME={cache}"])
    hidden = shutil.copy(rille, root + "/rille-that-moves")
    source = BOX + """
return { where = box:call("where", function()
  local maps = io.open("/proc/self/maps"):read("*a") return maps:match("%S+/bin/rille") end) }"""
    Path(root, "script.lua").write_text(source)
    # ssh's command starts anew from the file, the runner does not: so the file may go once it runs.
    wrapper = root + "/ssh"
    Path(wrapper).write_text(f'#!/bin/sh\nmv {hidden} {hidden}.away 2>/dev/null\n'
                             f'case "$*" in *"agent install"*"exit 70"*) echo look >>{root}/looks ;; esac\n'
                             f'exec {shutil.which("ssh")} "$@"\n')
    os.chmod(wrapper, 0o755)

    def bring(**bundle):
        Path(root, "looks").write_text("")
        done = subprocess.run([hidden, "--json", "run", root + "/script.lua"], capture_output=True, text=True,
                              timeout=300, cwd=root, env=dict(env, PATH=f"{root}:{env['PATH']}", **bundle))
        shutil.move(hidden + ".away", hidden)
        looks = Path(root, "looks").read_text().count("look")  # a bundle that does not fit is not tried again
        check("the host is asked once for an installed Rille", looks == 1, looks)
        where = json.loads(done.stdout).get("result", {}).get("where", "") if done.returncode == 0 else ""
        return where.startswith(cache + "/rille/"), done.stdout + done.stderr

    ok, said = bring(RILLE_BUNDLE=archive)
    check("the bundle is brought, and runs the call", ok, said)
    check("nothing half-made is left beside it", len(os.listdir(cache + "/rille")) == 1, os.listdir(cache + "/rille"))
    ok, said = bring(RILLE_BUNDLE=root + "/none.tar.gz")
    check("the second time it is there", ok, said)
    shutil.rmtree(cache)
    ok, said = bring()
    check("without a bundle the way out is named", not ok and "RILLE_BUNDLE" in said, said)

    # With release keys: only what one of them has signed.
    key = signed_bundle.make_key(root + "/key.pem")
    Path(root, "config/rille").mkdir(parents=True, exist_ok=True)
    Path(root, "config/rille/release_keys").write_text(key.public)
    ok, said = bring(RILLE_BUNDLE=archive)
    check("with release keys, a bundle that none of them signed is not sent", not ok and '"kind": "integrity"' in said
          and " is refused: " in said and key.id in said and not os.path.exists(cache), said)
    signed = signed_bundle.sign(archive, key, root + "/altered.tar.gz", {"LICENSE": b"another\n"})
    ok, said = bring(RILLE_BUNDLE=signed)
    check("a signed one that was altered is refused by the host", not ok and '"kind": "integrity"' in said and
          "LICENSE: FAILED" in said and os.listdir(cache + "/rille") == [], said)
    signed = signed_bundle.sign(archive, key, root + "/signed.tar.gz")
    ok, said = bring(RILLE_BUNDLE=signed)
    check("a signed one is brought, and runs the call", ok, said)
    # The unpacked bundle packs itself: its own files only. The host must not execute it where it is.
    shutil.rmtree(cache)
    with tarfile.open(signed) as tar:
        tar.extractall(root + "/shared")
    os.chmod(root + "/shared", 0o777)
    bundle = next(Path(root, "shared").iterdir())
    Path(bundle, "of-a-user.txt").write_text("what a run has put there")
    code, out, said = script(source, program=str(bundle / "bin/rille"))
    check("a bundle brings itself", code == 0 and cache in out, out + said)
    there = [path.name for path in Path(cache, "rille").glob("*/*")]
    check("with its signature, and without files of users", "MANIFEST.sig" in there and "of-a-user.txt" not in there,
          there)
    Path(root, "config/rille/release_keys").unlink()
    check("and the host is free again", rented(host) == [], rented(host))


def one_is_off(host):
    down = host.settings(name="down", port=free_port())
    settings(host.settings(), down, options=host.options())
    code, out, said = script(BOX + "return box.provider")
    check("one that is off does not keep the others back", code == 0, out + said)


try:
    with Sshd() as sshd:
        life(sshd)
        outlives(sshd)
        if len(sys.argv) > 2:
            brings_itself(sshd, os.path.abspath(sys.argv[2]))
        one_is_off(sshd)
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
