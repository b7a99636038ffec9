#!/usr/bin/env python3
"""workflows/spot_cluster.lua, unchanged: on the simulated cloud, and for real on four machines of this one with moto as
S3. One of them is lost in the middle: the losses are those of a calm run, the checkpoints in the store are whole, and
nothing stays rented. By a Python that has moto. usage: spot_cluster_test.py RILLE SCRIPT"""
import json, os, re, shutil, subprocess, sys, tempfile, time

import boto3

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [f"{HERE}/../{folder}" for folder in ("fault", "cli", "contract/stores", "contract/fakes")]
import foreign  # noqa: E402
import need  # noqa: E402
from machines import Home  # noqa: E402
from ports import free_ports  # noqa: E402

rille, script = map(os.path.abspath, sys.argv[1:3])
ADDRESS, STEPS, EVERY, COUNT = "10.77.0.1", 400, 20, 4


class Moto(foreign.Moto):
    address = ADDRESS

    def prepare(self):
        super().prepare()
        self.objects = boto3.client("s3", endpoint_url=self.endpoint, region_name=self.region,
                                    aws_access_key_id=foreign.ID, aws_secret_access_key=foreign.SECRET)


def kept(objects, name):
    """The steps that the store's latest.json names, the newest first."""
    try:
        text = objects.get_object(Bucket=foreign.BUCKET, Key=f"{name}/train/latest.json")["Body"].read()
    except objects.exceptions.NoSuchKey:
        return []
    return [c["step"] for c in json.loads(text)["checkpoints"]]


def lose(home, moto, name, which, process):
    """Takes the machine of rank `which` away once the store has a checkpoint."""
    until = time.monotonic() + 200
    while time.monotonic() < until and process.poll() is None and not home.taken:
        if kept(moto.objects, name):
            row = f"SELECT machine_id FROM leases WHERE name='gang-{which + 1}'"
            found = [f for f in home.instances() if os.path.basename(f) == home.rows(row)[0][0]]
            for folder in found:
                home.take(folder)
        time.sleep(0.01)


def train(moto, name, which=None):
    """A run on four machines: its result and its output. `which`: the rank whose machine is lost."""
    home = Home(rille, "rille-spot-cluster-", AWS_ENDPOINT_URL_S3=moto.endpoint, AWS_REGION=moto.region,
                **moto.environment())
    process = home.start("run", script, "--gpu", "any", "--provider", "local",
                         "--data", f"s3://{moto.bucket}/corpus/", "--checkpoints", f"s3://{moto.bucket}/{name}/",
                         "--steps", str(STEPS), "--every", str(EVERY), "--batch", "2", "--port", str(free_ports(4)))
    if which is not None:
        lose(home, moto, name, which, process)
    process.wait(timeout=250)
    said = home.text()
    assert process.returncode == 0, said
    left = [row for row in home.json("leases") if row["state"] not in ("released", "closed")]
    assert not left and not home.instances(), (left, home.instances(), said)
    states = home.json("checkpoint", "verify", f"s3://{moto.bucket}/{name}/train/")
    assert states[0]["step"] == STEPS and all(row["state"] == "whole" for row in states), (states, said)
    assert home.taken == (which is not None), said
    table = re.findall(r"^(gang-\d|total)\b.* \$\d", said, re.M)
    assert sorted(table) == ["gang-1", "gang-2", "gang-3", "gang-4", "total"], said
    machines = {row["name"]: len(row["machines"]) for row in home.json("cost")}
    assert which is None or machines[f"gang-{which + 1}"] > 1, machines
    result = home.json("show", "last")["result"]
    shutil.rmtree(home.home, ignore_errors=True)
    return result, said


def rehearse(home):
    out = subprocess.run([rille, "simulate", script, "-n", "30", "--json"], capture_output=True, text=True, timeout=200,
                         env=dict(os.environ, RILLE_HOME=home, NO_COLOR="1"))
    data = json.loads(out.stdout)
    assert data["ended_well"] == 30 and data["preemptions"]["p50"] >= 1, out.stdout + out.stderr
    assert 6 * 3600 <= data["seconds"]["p50"] < 8 * 3600 and 50 < data["cost"]["p50"] < 1500, data
    out = subprocess.run([rille, "plan", script], capture_output=True, text=True, timeout=200,
                         env=dict(os.environ, RILLE_HOME=home, NO_COLOR="1"))
    assert out.returncode == 0 and out.stdout.count("H100") == 4 and ":spot" in out.stdout, out.stdout + out.stderr


need.own_network()
with tempfile.TemporaryDirectory() as empty:
    rehearse(empty)
# An address of a private network: the machines would not fetch from a loopback one by themselves.
subprocess.run(["ip", "address", "add", ADDRESS + "/24", "dev", "lo"], check=True)
moto = Moto()
try:
    value = 1
    for part in range(3):
        words = []
        for _ in range(4_000):
            value = value * 48271 % 2147483647
            words.append("abcx " if value % 2 else "cbay ")
        moto.objects.put_object(Bucket=moto.bucket, Key=f"corpus/part-{part}.txt", Body="".join(words).encode())
    calm, said = train(moto, "calm")
    assert calm["ranks"] == COUNT and len(set(calm["losses"])) == 1 and calm["loss"] < 4, (calm, said)
    for which in (0, 2):
        lost, said = train(moto, f"lost-{which}", which)
        assert lost["losses"] == calm["losses"] and lost["validation"] == calm["validation"], (lost, calm, said)
        assert "all ranks begin again" in said and len(re.findall(r"^step +1 ", said, re.M)) == 1, said
finally:
    moto.close()
print("ok")
