#!/usr/bin/env python3
"""An agent that lies. usage: hostile_agent.py LIE|SEED .. (the rest is what a runner adds)

Speaks the agent's protocol (runtime/workflow/agent/frame.hpp) on its standard input and output, as `rille agent
connect` does. LIE is one of LIES; a number makes lies at random from that seed; `checkpoint:DIRECTORY` runs a call that
publishes two honest checkpoints, and a third in that directory; those of `checkpoint:big` have 100 KB. `frame:KIND`
answers the first request with a frame of that kind, `cut` with a part of a frame and no more. `status:JSON` answers
everything with that status of a call, `event:JSON` follows a call with that event, `long` with a progress of 300 KiB.
`restless:JSON` has a call whose worker dies at once in every attempt; JSON changes what is said of it, {"falls": true}
counts the attempts down. `banner` is no agent at all. tests/unit/agent/hostile_test.cpp and
tests/unit/engine/calls_test.cpp check that nothing is written or removed outside of the target folder.
"""

import hashlib
import json
import random
import struct
import sys

CONTENT, BIG = b"stolen", b"x" * 100_000
HELLO, REQUEST, RESPONSE, EVENT = 1, 2, 3, 4


def read_exactly(count):
    data = sys.stdin.buffer.read(count)
    if len(data) < count:
        sys.exit(0)
    return data


def receive():
    length, kind, header = struct.unpack("<IBI", read_exactly(9))
    header_text = read_exactly(header)
    read_exactly(length - 5 - header)
    return kind, json.loads(header_text)


def send(kind, header, body=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    sys.stdout.buffer.write(struct.pack("<IBI", 5 + len(text) + len(body), kind, len(text)) + text + body)
    sys.stdout.buffer.flush()


def file(path, content=CONTENT, **more):
    return {"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest(), "mode": 0o644, **more}


DIRECTORY = {"path": "loot", "directory": True, "size": 0}
# What `list` answers; `stat` answers DIRECTORY for the root and an honest file for each name.
LIES = {
    "honest": [file("a"), {"path": "sub", "directory": True}, file("sub/b")],
    "up": [file("../../escaped")],
    "absolute": [file("/tmp/rille-escaped")],
    "inner_up": [file("a/../../escaped")],
    "directory_up": [{"path": "../escaped", "directory": True}],
    "dot": [file(".")],
    "empty": [file("")],
    "zero": [file("a\0b")],
    "twice": [file("a"), {"path": "a", "directory": True}],
    "negative": [file("a", size=-1)],
    "huge": [file("a", size=2**60)],
    "mode": [file("a", mode=0o7777)],
    "digest": [file("a", sha256="../../../../escaped")],
    "no_digest": [file("a", sha256="")],
    "long": [file("x" * 5000)],
    "through_link": [file("link/escaped")],
    "big": [file("a", BIG)],
    "offset": [],
    "negative_offset": [],
}
OFFSETS = {"offset": 2**40, "negative_offset": -2**62}  # where `put` is to continue
STRANGE = ["..", "../..", "/", "", ".", "a//b", "a/./b", "link/x", "a\0", "\x1b]52;c;x\x07", "x" * 300, 7, None, [], {},
           True, -1, 2**63, 1e308, "a", "sub/b", "~/x", "$HOME/x", "\ud7ff", "a/" * 200]


def strange(rng, depth=0):
    if depth < 3 and rng.random() < 0.3:
        return {rng.choice(["path", "size", "mode", "sha256", "directory", "entries", "id", "state", "x"]):
                strange(rng, depth + 1) for _ in range(rng.randrange(4))}
    if depth < 3 and rng.random() < 0.2:
        return [strange(rng, depth + 1) for _ in range(rng.randrange(4))]
    return rng.choice(STRANGE)


def answer_at_random(rng, header):
    kind = rng.choice([RESPONSE] * 12 + [0, 1, 2, 4, 5, 6, 9, 255])
    value = rng.choice([None, strange(rng), {"entries": [file("a") | {rng.choice(["path", "size", "mode", "sha256"]):
                                                                      strange(rng)} for _ in range(rng.randrange(5))]}])
    entry = file(header.get("path", ""))
    entry[rng.choice(["path", "size", "mode", "sha256", "directory"])] = strange(rng)
    told = {"id": rng.choice([header.get("id")] * 9 + [0, -1, 2**62, "x"]),
            "value": rng.choice([value, entry, DIRECTORY])}
    if rng.random() < 0.1:
        told = {"id": header.get("id"), "error": strange(rng)}
    body = rng.choice([b"", CONTENT, CONTENT * 1000])
    if rng.random() < 0.05:
        sys.stdout.buffer.write(rng.randbytes(rng.randrange(40)))
    send(kind, told, body)


def publish(directory):
    """A call with checkpoints: the next one is published when a file of the last one has been fetched."""
    ahead, attach = ["checkpoints/1", "checkpoints/2", directory], None
    started, content = False, BIG if directory == "big" else CONTENT
    while True:
        kind, header = receive()
        name, path = header.get("op"), header.get("path", "")
        if kind != REQUEST or name == "detach":
            continue
        value, body = {}, b""
        if name == "attach" and started:
            attach = header["id"]
        elif name == "attach":
            value = {"state": "absent"}
        elif name == "start":
            started, value = True, {"state": "running", "attempt": 1}
        elif name == "stat":
            value = file(path, content) if path.endswith("/a") else DIRECTORY | {"path": path}
        elif name == "list":
            value = {"entries": [file("a", content)]}
        elif name == "get":
            body = content
        elif name == "hold":
            value = {"path": path}
        if name != "attach" or not started:
            send(RESPONSE, {"id": header["id"], "value": value}, body)
        if ahead and (name == "get" or name == "attach" and started):
            step = 4 - len(ahead)
            send(EVENT, {"id": attach, "event": "checkpoint", "value": {"step": step, "directory": ahead.pop(0)}})
            if not ahead:
                send(RESPONSE, {"id": attach, "value": {"state": "done", "attempt": 1, "outcome": {"value": 7}}})


def answer_once(what):
    """The first request gets a wrong frame; what follows is not heard any more."""
    while True:
        kind, header = receive()
        if kind != REQUEST:
            continue
        if what == "cut":
            sys.stdout.buffer.write(struct.pack("<IBI", 1000, RESPONSE, 500) + b"{")
            sys.stdout.buffer.flush()
            sys.exit(0)
        send(int(what.partition(":")[2]), {"id": header["id"]})


def answer_call(what):
    lie, _, text = what.partition(":")
    said, starts = json.loads(text or "{}"), 0
    while True:
        kind, header = receive()
        name = header.get("op")
        if kind != REQUEST or name == "detach":
            continue
        value = said if lie == "status" else {"state": "running", "attempt": 1}
        if lie == "restless":
            starts += name == "start"
            died = {"kind": "internal", "code": "worker_died", "message": "it died", "retryable": True}
            ended = {"state": "done" if starts else "absent", "attempt": starts, "outcome": {"error": died}}
            if starts and said.get("falls"):
                ended["attempt"] = 10 - starts
            value = {"state": "running", "attempt": starts} if name == "start" else ended | (said if starts else {})
        elif lie != "status" and name in ("attach", "pull"):
            news = {"event": "progress", "value": "x" * (300 << 10)} if lie == "long" else said
            send(EVENT, {"id": header["id"], **news})
            value = {"state": "done", "attempt": 1, "outcome": {"value": 7}}
        send(RESPONSE, {"id": header["id"], "value": value})


def main():
    lie = sys.argv[1]
    rng = random.Random(int(lie)) if lie.isdigit() else None
    _, hello = receive()
    if lie == "banner":
        sys.stdout.buffer.write(b"Welcome to the machine\n")
        sys.stdout.buffer.flush()
    send(HELLO, {"protocol": hello.get("protocol", 1), "build": hello.get("build", ""), "id": "liar", "arch": "x86_64"})
    if lie.startswith("checkpoint:"):
        publish(lie.partition(":")[2])
    if lie.startswith("frame:") or lie == "cut":
        answer_once(lie)
    if lie.partition(":")[0] in ("status", "event", "long", "restless"):
        answer_call(lie)
    while True:
        kind, header = receive()
        if kind != REQUEST:
            continue
        if rng:
            answer_at_random(rng, header)
            continue
        path, name = header.get("path", ""), header.get("op")
        if name == "stat":
            listed = next((f for f in LIES[lie] if f.get("sha256") is not None and path == "loot/" + f["path"]), None)
            value = DIRECTORY if path == "loot" else listed or file(path)
            send(RESPONSE, {"id": header["id"], "value": value})
        elif name == "list":
            send(RESPONSE, {"id": header["id"], "value": {"entries": LIES[lie]}})
        elif name == "get":
            send(RESPONSE, {"id": header["id"], "value": {}}, BIG if lie == "big" else CONTENT)
        elif name == "put_begin":
            send(RESPONSE, {"id": header["id"], "value": {"offset": OFFSETS.get(lie, 0)}})
        else:
            send(RESPONSE, {"id": header["id"], "value": {}})


if __name__ == "__main__":
    main()
