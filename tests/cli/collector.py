"""An OpenTelemetry collector on the loopback: takes OTLP/HTTP with JSON as opentelemetry.io/docs/specs/otlp and
metrics.proto describe it, and refuses with 400 what is not in that form. `points` has what came."""
import http.server, json, threading

NUMBERS = {"NaN", "Infinity", "-Infinity"}


def need(ok, what):
    if not ok:
        raise ValueError(what)


def attributes_of(entries):
    out = {}
    for entry in entries:
        need(set(entry) == {"key", "value"} and len(entry["value"]) == 1, f"attribute {entry}")
        (kind, value), = entry["value"].items()
        need(kind in ("stringValue", "intValue") and isinstance(value, str), f"attribute {entry}")
        need(entry["key"] not in out, f"attribute {entry['key']} twice")
        out[entry["key"]] = int(value) if kind == "intValue" else value
    return out


def points_of(body):
    """(resource's attributes, metric's name, unit, point's attributes, nanoseconds, value) of each point."""
    need(set(body) == {"resourceMetrics"}, f"keys {set(body)}")
    for of_resource in body["resourceMetrics"]:
        need(set(of_resource) == {"resource", "scopeMetrics"}, f"keys {set(of_resource)}")
        need(set(of_resource["resource"]) == {"attributes"}, "resource")
        resource = attributes_of(of_resource["resource"]["attributes"])
        for of_scope in of_resource["scopeMetrics"]:
            need(set(of_scope) == {"scope", "metrics"} and set(of_scope["scope"]) == {"name", "version"}, "scope")
            for metric in of_scope["metrics"]:
                need(set(metric) - {"unit"} == {"name", "gauge"} and metric["name"], f"metric {set(metric)}")
                need(set(metric["gauge"]) == {"dataPoints"} and metric["gauge"]["dataPoints"], "gauge")
                for p in metric["gauge"]["dataPoints"]:
                    need(set(p) == {"timeUnixNano", "asDouble", "attributes"}, f"point {set(p)}")
                    need(isinstance(p["timeUnixNano"], str) and p["timeUnixNano"].isdigit(), "fixed64 is a text")
                    value = p["asDouble"]
                    need(type(value) in (int, float) or value in NUMBERS, f"value {value!r}")
                    yield (resource, metric["name"], metric.get("unit"), attributes_of(p["attributes"]),
                           int(p["timeUnixNano"]), float(value))


class Collector:
    def __init__(self, answers=()):
        """`answers`: (status, body) of the first requests instead of taking them."""
        self.points, self.requests, self.answers = [], [], list(answers)
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.requests.append((self.path, dict(self.headers)))
                status, text = 200, b"{}"
                if collector.answers:
                    status, text = collector.answers.pop(0)
                else:
                    try:
                        need(self.headers["Content-Type"] == "application/json", "Content-Type")
                        refuse = lambda word: need(False, f"{word} is no JSON")
                        collector.points += points_of(json.loads(body, parse_constant=refuse))
                    except (ValueError, KeyError, TypeError, AttributeError) as e:
                        status, text = 400, json.dumps({"code": 3, "message": str(e)}).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
