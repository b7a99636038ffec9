#!/usr/bin/env python3
"""Keeps what the fake clouds answer, for clouds_fuzz: tests/fuzz/corpus/clouds/NAME.seed
usage: keep_answers.py BUILD

Run it when a driver asks something new. Lists keep their first elements: a few kilobytes for each cloud.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FAKES = HERE.parent / "contract" / "fakes"
NAMES = ["alibaba", "aws", "azure", "gcp", "huawei", "kubernetes", "lambda", "remote", "runpod", "tencent", "vast"]
BY_OPERATION = ("alibaba", "aws", "tencent")  # the operation is named in a header or the body, not in the path
LIST_MAX, ANSWER_BYTES_MAX = 4, 12_000


def shortened(value):
    if isinstance(value, list):
        return [shortened(v) for v in value[:LIST_MAX]]
    if isinstance(value, dict):
        return {k: shortened(v) for k, v in value.items()}
    return value


def body_of(answer):
    try:
        return json.dumps(shortened(json.loads(answer)), separators=(",", ":"))
    except ValueError:
        return answer.replace("\n", "")


def record(name, binary, folder):
    log = folder / f"{name}.log"
    fake = subprocess.Popen([sys.executable, "-B", FAKES / f"{name}.py"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, env=os.environ | {"RILLE_FAKE_RECORD": str(log)})
    told = json.loads(fake.stdout.readline())
    url = f"http://127.0.0.1:{told['port']}"
    subprocess.run([binary, name, url], env=os.environ | told["env"], check=True, timeout=600,
                   stdout=subprocess.DEVNULL)
    fake.stdin.close()
    fake.wait()
    return [json.loads(line) for line in log.read_text().splitlines()]


def text_of(name, calls):
    kept = {}
    for call in calls:
        key = f"{call['method']} {call['path']}"
        if name in BY_OPERATION and call["path"] == "/":
            key = call["operation"]
        body = body_of(call["answer"])
        new = key not in kept or "/jobs/" in key  # of a job, how it ended
        if call["status"] < 300 and new and len(body) <= ANSWER_BYTES_MAX:
            kept[key] = f"== {call['status']} {key}\n{body}\n"
    if name == "gcp":  # without the fake's key file, the keys come from there
        kept["metadata"] = '== 200 GET /_metadata\n{"access_token":"fuzz","expires_in":3600,"token_type":"Bearer"}\n'
    return "".join(kept.values())


def main():
    binary = Path(sys.argv[1]) / "tests" / "fuzz" / "clouds_record"
    out = HERE / "corpus" / "clouds"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(NAMES):
            if name == "remote":  # has no fake: its protocol is in docs/manual/providers/remote.md
                continue
            text = text_of(name, record(name, binary, Path(folder)))
            (out / f"{name}.seed").write_text(f"{chr(ord('a') + number)}a{text}")
            print(name, len(text), "bytes")


if __name__ == "__main__":
    main()
