#!/usr/bin/env python3
"""What a new user does wrong with machines of their own, on a real sshd and a real Slurm: one message of one kind that
names the value and says what to do, and an exit code. Clouds: mistakes_test.py.

usage: mistakes_here_test.py RILLE ssh|slurm [--show]   --show: prints each message, for people to judge
"""
import json, os, shutil, subprocess, sys, tempfile
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli"), str(here.parent / "workflows")]
import need
from places import PLACES
from sshd import free_port
from tap import check, finish
from user import errors_in

rille, name = os.path.abspath(sys.argv[1]), sys.argv[2]
need.met(PLACES[name].missing)
root = tempfile.mkdtemp(prefix="rille-mistakes-")
base = {}


def run(settings, *words, **env):
    Path(root, "providers.json").write_text(settings if isinstance(settings, str) else json.dumps({name: settings}))
    done = subprocess.run([rille, *words], env=dict(base, **env), capture_output=True, text=True, timeout=200, cwd=root)
    return done.returncode, done.stdout, done.stderr


def offers(settings, **env):
    return run(settings, "offers", "--refresh", "--provider", name, **env)


def rent(settings, gpu, more="", **env):
    Path(root, "flow.lua").write_text(f"""local rille = require "rille"
local box = rille.rent("box", {{ provider = "{name}", gpu = "{gpu}", ttl = "30m"{more} }})
return box:describe().name""")
    return run(settings, "run", root + "/flow.lua", **env)


def mistake(what, done, kind, *words):
    status, out, err = done
    errors = errors_in(err)
    text = " | ".join(errors[0]) if errors else ""
    missing = [w for w in words if w.lower() not in text.lower()]
    well = status == 1 and len(errors) == 1 and errors[0][0] == kind and not missing and len(errors[0][2]) > 10
    check(f"{what}: {kind}, one message, a hint", well, dict(status=status, missing=missing, out=out, err=err))
    if "--show" in sys.argv:
        print(f"--- {what}: exit {status}\n{out[-300:]}{err}")


def wrong_settings(good, *cases):
    for change, *words in cases:
        changed = change if isinstance(change, str) else {**good, **change}
        mistake(f"settings: {words[0]}", offers(changed), "config", *words)


def of_ssh(place):
    host = place.host
    good, usual = host.settings(), host.options()

    def at(options=usual, **changes):
        return {"hosts": [dict(good, **changes)], "options": options}

    def known(text):
        Path(root, "known").write_text(text)
        return ["-F", "none", "-o", f"UserKnownHostsFile={root}/known", "-o", "GlobalKnownHostsFile=none"]

    mistake("a host with an unknown key", offers(at(known(""))), "config", "does not know the key", good["address"],
            "compare its fingerprint")
    Path(root, "relaxed").write_text("Host *\n  StrictHostKeyChecking no\n")
    mistake("also where ssh's configuration takes every key", offers(at([*known(""), "-F", root + "/relaxed"])),
            "config", "does not know the key")
    mistake("or the options do", offers(at([*known(""), "-o", "StrictHostKeyChecking=no"])), "config",
            "does not know the key")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", root + "/other"], check=True)
    other = " ".join(Path(root, "other.pub").read_text().split()[:2])
    mistake("a host whose key has changed", offers(at(known(f"[127.0.0.1]:{host.port} {other}\n"))), "config",
            "has changed", good["address"], f"ssh-keygen -R '[127.0.0.1]:{host.port}'")
    mistake("a key that the host does not take", rent(at(identity=root + "/other"), "cpu"), "auth", "refuses your key",
            good["address"], "without a password")
    mistake("a user that there is not", rent(at(address="nosuchuser@127.0.0.1"), "cpu"), "auth",
            "nosuchuser@127.0.0.1", "check the user name")
    mistake("a key that is not there", offers(at(identity=root + "/none")), "config", root + "/none", "`identity`")
    shutil.copy(good["identity"], root + "/open")
    os.chmod(root + "/open", 0o644)
    mistake("a key that others may read", offers(at(identity=root + "/open")), "config", root + "/open", "chmod 600")
    mistake("a host that does not listen", offers(at(port=free_port())), "network", "cannot be reached", "`port`")
    # Two dots: no server of names has to be asked to know that there is none.
    mistake("a host that there is not", offers(at(address="me@gpu1..lab")), "config", "there is no host",
            "me@gpu1..lab", "settings")
    mistake("no ssh here", offers(at(), PATH=root), "config", "`ssh` is not found", "install")
    mistake("a folder that cannot be made", rent(at(directory="/proc/rille"), "cpu"), "config", "/proc/rille",
            "`directory`")
    mistake("a GPU that does not exist", rent(at(), "H1O0"), "capacity", "H1O0", 'did you mean gpu = "H100"')
    check("none of it has rented anything", place.alive() == [], place.alive())
    wrong_settings(at(), ({"hosts": []}, "no hosts"), ({"hosts": [{"adress": "x"}]}, "adress"),
                   ({"hostz": []}, "hostz", "did you mean 'hosts'"),
                   ({"hosts": ["-oProxyCommand=x"]}, "is not an address"),
                   ({"hosts": ["a", "a"]}, "two hosts"), ({"hosts": [{"address": "a", "slots": 0}]}, "slots = 0"),
                   ({"hosts": [{"address": "a", "port": "22"}]}, 'port = "22"', "without quotes"),
                   ({"hosts": [{"address": "a", "directory": "x"}]}, "'x' is not absolute"),
                   ("hosts: x", "providers.json", "JSON"))
    mistake("a provider that there is not", run('{"shs": {}}', "offers"), "config", "shs", "ssh")


def program(file, text):
    Path(root, file).write_text("#!/bin/sh\n" + text)
    os.chmod(f"{root}/{file}", 0o755)
    return [f"{root}/{file}"]


def refusing(command, said):
    """`via`: a login node where this command alone is refused, in the words that Slurm has for it."""
    return program("login", f"case $1 in *{command}*) cat >/dev/null; echo '{said}' >&2; exit 1;; esac\n"
                   'exec sh -c "$1"\n')


def of_slurm(place):
    cluster, good = place.cluster, place.settings()

    def with_(**changes):
        return {**good, **changes}

    mistake("no Slurm here", offers(good, PATH=root), "config", "`sinfo` is not found", "via")
    conf = Path(cluster.folder, "slurm.conf").read_text()
    Path(root, "down.conf").write_text("\n".join(f"SlurmctldPort={free_port()}" if line.startswith("SlurmctldPort=")
                                                 else line for line in conf.splitlines()) + "\n")
    shutil.copy(cluster.folder + "/gres.conf", root)
    mistake("a controller that is down", offers(good, SLURM_CONF=root + "/down.conf"), "network",
            "Unable to contact slurm controller", "scontrol ping")
    mistake("a partition that there is not", offers(with_(partitions=["gpu", "nope"])), "config", "'nope'",
            "there are: cpu, gpu, high")
    mistake("a partition that is misspelt", rent(with_(partitions=["shrot"]), "H100:2"), "config", "'shrot'",
            "did you mean 'short'")
    mistake("a GPU that does not exist", rent(good, "H1O0"), "capacity", "H1O0", 'did you mean gpu = "H100"')
    mistake("more GPUs than a node has", rent(good, "H100:9"), "capacity", "H100:9")
    mistake("a GRES that no node has", rent(with_(options=["--gres=gpu:a1:1"], partitions=["gpu"]), "H100:2"),
            "capacity", "node configuration is not available", "--gres=gpu:a1:1", "--partition=gpu")
    mistake("a ttl that its partition does not allow", rent(with_(partitions=["short"]), "H100:2"), "config",
            "partition 'short' does not allow", "30m", "a shorter ttl")
    mistake("an option that sbatch does not know", rent(with_(options=["--no-such-option"]), "H100:2"), "config",
            "--no-such-option", "`options`")
    # The cluster of this test keeps no accounts: what one that does says comes from a stand-in.
    failed = "sbatch: error: Batch job submission failed: "
    mistake("an account that there is not", rent(with_(account="proj9", via=refusing("sbatch", failed +
            "Invalid account or account/partition combination specified")), "H100:2"), "config", "--account=proj9",
            "sacctmgr show assoc")
    mistake("a qos that there is not", rent(with_(qos="fast", via=refusing("sbatch", failed + "Invalid qos "
            "specification")), "H100:2"), "config", "--qos=fast", "sacctmgr show qos")
    mistake("a limit of the account", rent(with_(account="proj7", via=refusing("sbatch", failed +
            "Job violates accounting/QOS policy (job submit limit, the user size and/or time limits)")), "H100:2"),
            "quota", "--account=proj7", "release")
    mistake("a login node without Slurm", offers(with_(via=program("bare", "echo 'sh: 1: sinfo: not found' >&2\n"
                                                                   "exit 127\n"))), "config", "sinfo", "PATH", "via")
    mistake("a way that there is not", offers(with_(via=["/no/such/ssh", "login"])), "config", "/no/such/ssh", "via")
    mistake("a login node that takes no key", offers(with_(via=program(
        "closed", "echo 'me@login: Permission denied (publickey).' >&2\nexit 255\n"))), "auth", "me@login",
            "without a password")
    check("none of it has rented anything", place.alive() == [], place.alive())
    wrong_settings(good, ({"directry": "/x"}, "directry", "did you mean 'directory'"),
                   ({"directory": "x"}, "is not absolute"), ({"wait": "soon"}, "wait = 'soon'"),
                   ({"price": -1}, "price = -1"), ({"gpus": {"a": 1}}, "gpus.a"), ({"via": "ssh"}, "via = \"ssh\""),
                   ({"traits": {"look": 1}}, "look = 1"))


try:
    with PLACES[name](root) as place:
        base.update(place.env, RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1",
                    RILLE_THREADS="1", RILLE_PROVIDERS=root + "/providers.json")
        of_ssh(place) if name == "ssh" else of_slurm(place)
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
