#!/usr/bin/env python3
"""workflows/rent_anywhere.lua, one and the same file, at one place: to its end; then with the runner killed in the
middle of the training, which goes on there and is joined again. usage: anywhere_test.py RILLE SCRIPT PLACE
`moto` needs a Python that has it."""
import json, os, re, shutil, subprocess, sys, tempfile, time
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent / "cli"), str(here.parent / "contract")]
import need
from places import PLACES
from tap import check, finish

rille, script, name = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
provider = PLACES[name].provider
need.met(PLACES[name].missing)
if name in ("aws", "moto"):
    need.own_network()
root = tempfile.mkdtemp(prefix="rille-anywhere-")


def run(place, *words):
    r = subprocess.run([rille, *words], env=place.env, capture_output=True, text=True, timeout=200, cwd=root)
    return r.returncode, r.stdout, r.stderr


def nothing_left(place, when):
    """Some places take a moment to sweep up what the provider has called gone already."""
    end = time.monotonic() + 20
    while time.monotonic() < end and place.alive():
        time.sleep(0.1)
    check(f"nothing is left {when}", not place.alive(), place.alive())
    check(f"nor in the journal {when}", "nothing is rented" in run(place, "leases")[1], run(place, "leases"))


def to_its_end(place, words):
    code, out, said = run(place, "run", script, *words, "--steps", "60")
    check("it ends well", code == 0, out + said)
    check("what there is to rent is shown", "PROVIDER" in out and "PRICE PER HOUR" in out, out)
    check("with what was taken, and why",
          re.search(rf"rented from {provider} in .*: \$.* per hour, the cheapest of", out), out)
    check("it trains", len(re.findall(r"^step +\d+ ", out, re.M)) == 7, out)
    check("the checkpoint is here", sorted(os.listdir(root + "/out")) == ["manifest.json", "model.safetensors",
                                                                          "optimizer.safetensors"])
    check("and was read again there", "validation loss" in out and "it cost $" in out, out)
    nothing_left(place, "after it")


def beside_one_that_fails(place, data):
    settings = Path(root, "failing.json")
    settings.write_text('{"remote": {"url": "http://127.0.0.1:9", "traits": {"dead_man": "provider"}}}')
    env = {**place.env, "RILLE_PROVIDERS": str(settings)}
    r = subprocess.run([rille, "run", script, "--data", data, "--steps", "20"], env=env, capture_output=True, text=True,
                       timeout=200, cwd=root)
    check("one that fails is named, not counted", r.returncode == 0 and "remote cannot say: " in r.stdout and
          "the cheapest of 1 that fit" in r.stdout and "more" not in r.stdout.split("rented from")[0], r)


def killed(place, words):
    said = Path(root, "said")
    with said.open("w") as file:
        runner = subprocess.Popen([rille, "run", script, *words, "--steps", "1500"], env=place.env, cwd=root,
                                  stdout=file, stderr=file)
    end = time.monotonic() + 120
    while time.monotonic() < end and runner.poll() is None and "step    10 " not in said.read_text():
        time.sleep(0.02)
    runner.kill()
    check("the runner is killed in the middle of the training", runner.wait() == -9, said.read_text())
    check("what it has rented outlives it", place.alive() != [], said.read_text())
    code, out, err = run(place, "resume", "last")
    check("the resumed run ends well", code == 0 and "after 1500 steps" in out, out + err)
    steps = [int(n) for n in re.findall(r"^step +(\d+) ", out, re.M)]
    check("the training was not begun again", out.count("training on ") == 1 and
          steps == [1, *range(10, 1501, 10)], (out.count("training on "), steps[:3], steps[-3:]))
    check("nor was anything rented twice", len(machines(place)) == 1, machines(place))
    nothing_left(place, "after the kill")


def machines(place):
    """Of the newest run."""
    run_id = json.loads(run(place, "ps", "--json", "-n", "1")[1])[0]["id"]
    leases = json.loads(run(place, "cost", run_id, "--json")[1])
    return [m for lease in leases for m in lease.get("machines", [])]


def check_jobs(place):
    pod = place.ordered()[0]["spec"]["template"]["spec"]
    limits = pod["containers"][0]["resources"]["limits"]
    check("the Job asks for a GPU of its kind", limits["nvidia.com/gpu"] == "1" and
          pod["nodeSelector"]["nvidia.com/gpu.product"] == "Tesla-T4", pod)
    check("with node selector, tolerations, priority class and image",
          pod["nodeSelector"]["node.kubernetes.io/instance-type"] == "g4" and
          {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in pod["tolerations"] and
          pod["priorityClassName"] == "batch" and pod["containers"][0]["image"] == "registry.example/cuda:12", pod)
    check("one for each lease", len(place.ordered()) == 2, len(place.ordered()))
    calls = place.cluster.calls()
    check("the channel is kubectl exec -i", calls and all(c[2:4] == ["exec", "-i"] for c in calls), calls[:3])


try:
    Path(root, "text").write_text("the quick brown fox jumps over the lazy dog. " * 400)
    with PLACES[name](root) as place:
        settings = place.settings()
        Path(root, "providers.json").write_text(json.dumps({provider: settings} if settings else {}))
        place.env.update(RILLE_HOME=root + "/home", XDG_CONFIG_HOME=root + "/config", NO_COLOR="1", RILLE_THREADS="1",
                         RILLE_PROVIDERS=root + "/providers.json")
        words = ["--provider", provider, "--data", root + "/text", *place.words]
        to_its_end(place, words)
        killed(place, words)
        if name == "local":
            beside_one_that_fails(place, root + "/text")
        if name == "kubernetes":
            check_jobs(place)
finally:
    shutil.rmtree(root, ignore_errors=True)
finish()
