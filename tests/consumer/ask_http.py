"""Asks the example service: ask_http.py PORT."""
import json, sys, time, urllib.error, urllib.request
from concurrent.futures import ThreadPoolExecutor


def ask(script):
    request = urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/run", script.encode())
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as e:
        return e.code, json.loads(e.read())["kind"]


for _ in range(600):  # until it listens
    try:
        first = ask("return 6 * 7")
        break
    except urllib.error.URLError:
        time.sleep(0.05)
print(*first)
status, result = ask('return require("app").upper("abc")')
print(status, json.dumps(result))
print(*ask("while true do end"))
print(*ask("return {"))
for _ in range(10):  # on a busy machine its time may end first
    ended = ask("local t = {} while true do t[#t + 1] = ('x'):rep(1e6) .. #t end")
    if ended[1] == "memory":
        break
print(*ended)
with ThreadPoolExecutor(16) as pool:
    answers = list(pool.map(ask, [f"return {i} + 1" for i in range(32)]))
print(sum(answer == (200, i + 1) for i, answer in enumerate(answers)), "of 32 at once")
