#!/usr/bin/env python3
"""Two instances of this machine train one model: as one instance with the whole batch, and, when one of them is killed,
on from the checkpoint as if nothing had happened. usage: data_parallel_test.py RILLE SCRIPT"""
import glob, json, os, re, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fault"))
from machines import Home
from ports import free_ports

rille, script = map(os.path.abspath, sys.argv[1:3])


def start(root, name, *words):
    env = dict(os.environ, RILLE_HOME=f"{root}/{name}", XDG_CONFIG_HOME=f"{root}/config", NO_COLOR="1")
    return subprocess.Popen([rille, "--json", "run", script, "--data", f"{root}/text", "--out", f"{root}/{name}-out/",
                             "--port", str(free_ports(2)), *words], env=env, cwd=root, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def result_of(process):
    said, errors = process.communicate(timeout=250)
    assert process.returncode == 0, said + errors
    return json.loads(said[said.index("\n{") if not said.startswith("{") else 0:])["result"], said + errors


def worker_of(folder):
    """The process that works on a call of this instance."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            words = open(path, "rb").read().split(b"\0")
        except OSError:
            continue
        if b"worker" in words and folder.encode() in words:
            return int(path.split("/")[2])
    return None


def kill_a_rank(root, name, process):
    """The worker of the rank that writes no checkpoints, once the other has written some."""
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        written = glob.glob(f"{root}/{name}/instances/*/work/checkpoints/step-*/manifest.json")
        if written:
            first = written[0].split("/work/")[0]
            other = [f for f in glob.glob(f"{root}/{name}/instances/*") if f != first and os.path.isdir(f)]
            worker = other and worker_of(other[0])
            if worker:
                os.kill(worker, signal.SIGKILL)
                return True
        time.sleep(0.01)
    return False


def lose_a_machine(root, writer):
    """A run whose machine of rank 0 (the writer) or 1 is lost once a checkpoint is kept here: its result and output."""
    home = Home(rille, "rille-parallel-lost-")
    process = home.start("--json", "run", script, "--data", f"{root}/text", "--out", f"{home.home}/model/", "--port",
                         str(free_ports(2)), "--batch", "4", "--steps", "400", "--every", "20")
    until = time.monotonic() + 120
    while not home.taken and time.monotonic() < until and process.poll() is None:
        kept = glob.glob(f"{home.home}/runs/*/checkpoints/*/step-*[0-9]")
        for folder in home.instances() if kept else []:
            if os.path.isdir(f"{folder}/work/checkpoints") == writer and not home.taken:
                home.take(folder)
        time.sleep(0.01)
    process.wait(timeout=250)
    said = home.text()
    assert home.taken and process.returncode == 0, said
    return json.loads(said[re.search(r"^\{$", said, re.M).start():])["result"], said


with tempfile.TemporaryDirectory(prefix="rille-parallel-") as root:
    with open(f"{root}/text", "w") as file:
        value = 1
        for _ in range(12_000):
            value = value * 48271 % 2147483647
            file.write("abcx " if value % 2 else "cbay ")
    two, said = result_of(start(root, "two", "--batch", "4", "--steps", "20", "--every", "10"))
    one, _ = result_of(start(root, "one", "--batch", "8", "--steps", "20", "--every", "10", "--count", "1"))
    assert two["ranks"] == 2 and two["losses"][0] == two["losses"][1], two
    # Equal but for the order of sums; later steps of this training grow any difference a hundredfold.
    assert abs(two["loss"] - one["loss"]) < 1e-5 and two["loss"] < 4, (two, one)
    assert os.path.exists(f"{root}/two-out/model.safetensors"), said
    assert said.count("step    20") == 1, said                                 # rank 0 alone logs

    words = ["--batch", "4", "--steps", "400", "--every", "20"]
    calm, _ = result_of(start(root, "calm", *words))
    process = start(root, "killed", *words)
    killed = kill_a_rank(root, "killed", process)
    went_on, said = result_of(process)
    assert killed and "all ranks begin again" in said, said
    assert went_on["losses"] == calm["losses"] and went_on["validation"] == calm["validation"], (went_on, calm, said)
    for writer in (False, True):
        lost, said = lose_a_machine(root, writer)
        assert lost["losses"] == calm["losses"], (writer, lost, calm, said)
        assert len(re.findall(r"^step +1 ", said, re.M)) == 1, said            # it went on from a checkpoint
print("ok")
