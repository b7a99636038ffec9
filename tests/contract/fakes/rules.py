"""Which parameters a call takes: names in one string, `!` before a required one, N for an index, * for anything."""
import re


def flatten(value, prefix=""):
    """A JSON value as dotted names: {"a": [{"b": 1}]} gives {"a.1.b": 1}. Empty containers stand for themselves."""
    if isinstance(value, (dict, list)) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value, 1)
        return {k: v for name, part in items for k, v in flatten(part, f"{prefix}{name}.").items()}
    return {prefix[:-1]: value}


def pattern(name):
    parts = ["[1-9][0-9]*" if part == "N" else re.escape(part).replace(r"\*", ".*") for part in name.split(".")]
    return re.compile(r"\.".join(parts) + r"\Z")


class Rules:

    def __init__(self, names):
        names = names.split()
        self.required = [(n[1:], pattern(n[1:] + ".*"), pattern(n[1:])) for n in names if n[0] == "!"]
        names = [n.lstrip("!") for n in names]
        self.leaves = [pattern(n) for n in names]
        self.groups = [pattern(p) for p in {n[:i] for n in names for i, c in enumerate(n) if c == "."}]

    def unknown(self, flat):
        """The first name that is none of ours, None. An empty container may stand where its members might."""
        for name, value in flat.items():
            patterns = self.leaves + (self.groups if value in ({}, []) else [])
            if not any(p.match(name) for p in patterns):
                return name
        return None

    def missing(self, flat):
        """The first required name that is not there, None."""
        for name, inside, exactly in self.required:
            if not any(exactly.match(n) or inside.match(n) for n in flat):
                return name
        return None
