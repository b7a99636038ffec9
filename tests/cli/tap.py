"""What the tests of the command share: numbered checks, as TAP has them, and the exit code."""
import sys

failures = count = 0


def check(name, ok, detail=""):
    global failures, count
    count += 1
    failures += not ok
    print(f"{'ok' if ok else 'not ok'} {count} - {name}" + ("" if ok else f"\n#   {detail!r}"), flush=True)


def finish():
    print(f"1..{count}")
    sys.exit(1 if failures else 0)
