"""Prometheus' text format 0.0.4, read strictly (prometheus.io/docs/instrumenting/exposition_formats): what its scraper
would refuse, and what `promtool check metrics` would blame, is a ValueError here."""
import re

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')
UNESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def labels_of(text):
    labels, at = {}, 0
    while at < len(text):
        m = LABEL.match(text, at)
        if not m or m[1] in labels or m[1].startswith("__"):
            raise ValueError(f"labels {text!r}")
        labels[m[1]] = re.sub(r'\\[\\"n]', lambda e: UNESCAPED[e[0]], m[2])
        at = m.end()
    return labels


def read(text):
    """{family: [(labels, value), ..]}"""
    if not text.endswith("\n"):
        raise ValueError("the last line has no end")
    families, helped, current = {}, set(), None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            current, words = line.split(" ", 3)[2:]
            if current in helped or not words:
                raise ValueError(f"HELP of {current}")
            helped.add(current)
        elif line.startswith("# TYPE "):
            name, kind = line.split(" ")[2:]
            if name != current or name in families or kind != "gauge":
                raise ValueError(f"TYPE of {name}")
            families[name] = []
        else:
            m = SAMPLE.fullmatch(line)
            if not m or m[1] != current:
                raise ValueError(f"line {line!r}")
            sample = labels_of(m[2] or ""), float(m[3])
            if any(sample[0] == labels for labels, _ in families[current]):
                raise ValueError(f"twice: {line!r}")
            families[current].append(sample)
    if not all(families.values()):
        raise ValueError("a family without a sample")
    return families
