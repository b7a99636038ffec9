// The page of one run, or of several compared.

function section(id, title, ...content) {
  const shown = content.flat().filter((c) => c !== null && c !== undefined);
  if (!shown.length) return null;
  return el("section", { id, "aria-labelledby": id + "-title" }, el("h2", { id: id + "-title" }, title), shown);
}

function stateMark(state) {
  const bad = ["failed", "diverged", "interrupted", "cleanup"].includes(state);
  return el("span", { class: "state " + (bad ? "bad" : "") }, state);
}

function moneyText(report) {
  const m = report.money;
  const limit = m.limit_micros === undefined ? "" : " of " + dollars(m.limit_micros);
  return (m.costs || m.unknown ? m.shown + (m.unknown ? " + ?" : "") : dollars(m.spent_micros)) + limit;
}

// The longest series of that name: what the head of the page speaks of.
const LOSSES = ["loss"], RATES = ["tokens/s", "samples/s"];

function mainSeries(report, names) {
  const found = report.series.filter((s) => names.includes(s.name) && s.points.length);
  return found.sort((a, b) => b.count - a.count)[0];
}

const knownPoints = (series) => (series ? series.points.filter((p) => p[2] !== null) : []);

function lastValue(series) {
  const known = knownPoints(series);
  return known.length ? known[known.length - 1][2] : null;
}

// How far a dollar has brought the loss down.
function lossPerDollar(report) {
  const known = knownPoints(mainSeries(report, LOSSES)), spent = report.money.spent_micros / 1e6;
  return known.length < 2 || spent <= 0 ? null : (known[0][2] - known[known.length - 1][2]) / spent;
}

function machinesText(report) {
  const machines = report.machines.filter((m) => !m.volume);
  if (!machines.length) return "none";
  const replaced = machines.length - new Set(machines.map((m) => m.lease)).size;
  return machines.length + (replaced ? ", " + plural(replaced, "replacement") : "");
}

function entriesText(report) {
  const failed = report.entries.filter((e) => e.state === "failed").length;
  const again = report.entries.filter((e) => e.attempt > 1).length;
  return [report.entries.length, failed ? failed + " failed" : "", again ? again + " tried again" : ""]
    .filter((text) => text !== "").join(", ");
}

function facts(report) {
  const run = report.run, processes = report.environment.processes;
  const loss = lastValue(mainSeries(report, LOSSES)), rate = mainSeries(report, RATES), per = lossPerDollar(report);
  return [
    ["Started", run.created.replace("T", " ").replace("Z", " UTC")],
    [run.ended ? "Took" : "Since then", duration(run.seconds)],
    ["Spent", moneyText(report)],
    ["Machines", machinesText(report)],
    ["Entries", entriesText(report)],
    ["Processes", processes > 1 ? processes + " (resumed)" : null],
    ["Last loss", loss === null ? null : number(loss)],
    ["Speed", rate ? number(lastValue(rate)) + " " + rate.name : null],
    ["Loss per dollar", per === null ? null : (per >= 0 ? "−" : "+") + number(Math.abs(per))],
  ].filter(([, value]) => value !== null);
}

function factsList(rows) {
  return el("dl", { class: "facts" },
    rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function errorNode(where, error) {
  return el("div", {}, el("h3", { class: "bad" }, where + ": " + error.kind), el("p", {}, error.message),
    error.hint ? el("p", { class: "quiet" }, error.hint) : null,
    error.traceback ? el("pre", { tabindex: "0" }, error.traceback) : null,
    error.cause ? errorNode("because of", error.cause) : null);
}

function errorsOf(report) {
  const failed = report.entries.filter((e) => e.error), most = 50;
  const nodes = failed.slice(0, most).map((e) => errorNode(e.key + " (" + e.source + ")", e.error));
  if (report.run.error) nodes.unshift(errorNode("The run", report.run.error));
  if (failed.length > most) nodes.push(el("p", {}, failed.length - most + " more: see the entries"));
  return nodes;
}

// Lines of one name from each source; x: "step" or "time".
function linesOf(report, name, x) {
  return report.series.filter((s) => s.name === name).map((s) => {
    const points = s.points.map(([step, at, value], i) => [x === "time" ? at : step === null ? i + 1 : step, value]);
    const known = points.filter((p) => p[0] !== null && p[1] !== null);
    return { name: s.source, points: known.sort((a, b) => a[0] - b[0]) };
  });
}

const percent = (v) => number(v) + " %";
const UNITS = {
  gpu_utilization: percent, cpu_utilization: percent, gpu_memory_bytes: bytes, gpu_power_watts: (v) => number(v) + " W",
};
const FIRST = ["loss", "lr", "tokens/s", "samples/s"];

function seriesNames(report, machine) {
  const names = new Set(report.series.filter((s) => Boolean(s.machine) === machine).map((s) => s.name));
  const rank = (name) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  return [...names].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

function seriesChart(report, name, x) {
  let lines = linesOf(report, name, x).filter((l) => l.points.length);
  const overTime = x === "time" && lines.length > 0;
  if (!lines.length) lines = linesOf(report, name, "step");
  const count = report.series.filter((s) => s.name === name).reduce((sum, s) => sum + s.count, 0);
  return figure({
    title: name, lines, xTitle: overTime ? "Time" : "Step", showX: overTime ? duration : number,
    showY: UNITS[name] || number, note: count > 2000 ? plural(count, "point") + ", thinned" : null,
  });
}

function curves(report) {
  const names = seriesNames(report, false), charts = el("div", { class: "charts" });
  if (!names.length) return [];
  const fill = (x) => {
    kept.curves = { x };
    charts.replaceChildren(...names.map((n) => seriesChart(report, n, x)).filter(Boolean));
    if (charts.isConnected) redraw(false);
  };
  const hasTime = report.series.some((s) => !s.machine && s.points.some((p) => p[1] !== null));
  fill(hasTime && kept.curves.x === "time" ? "time" : "step");
  const choose = el("select", { change: (e) => fill(e.target.value) }, el("option", { value: "step" }, "steps"),
    el("option", { value: "time", selected: kept.curves.x === "time" }, "time"));
  return [hasTime ? el("div", { class: "tools" }, el("label", {}, "Over ", choose)) : null, charts];
}

function load(report) {
  const charts = seriesNames(report, true).map((n) => seriesChart(report, n, "time")).filter(Boolean);
  return charts.length ? el("div", { class: "charts" }, charts) : null;
}

// Dollars over time, beside the budget; and the loss over dollars.
function moneyCharts(report) {
  const corners = spending(report.money), spent = report.money.spent_micros, limit = report.money.limit_micros;
  if (!corners.length) return [];
  const near = limit !== undefined && limit <= 4 * spent;
  const end = Math.max(report.run.seconds, corners[corners.length - 1][0]);
  const note = limit === undefined ? "No budget is set for this run." :
    "The budget is " + dollars(limit) + (near ? ", the dashed line." : ", far above this chart.");
  const curve = figure({
    title: "dollars", lines: [{ name: "spent", points: [[0, 0], ...corners, [end, spent]] }], xTitle: "Time",
    showX: duration, showY: dollars, fromZero: true, limit: near ? limit : undefined, note,
  });
  const lines = linesOf(report, "loss", "time").map((l) => (
    { name: l.name, points: l.points.map(([at, loss]) => [height(corners, at), loss]) }));
  const loss = figure({ title: "loss over dollars", lines, xTitle: "Dollars", showX: dollars, showY: number });
  return [el("div", { class: "charts" }, curve, loss)];
}

function machinesTable(report) {
  if (!report.machines.length) return null;
  const titles = ["Name", "Generation", "Provider", "Type", "Machine", "From", "For", "Starting", "Idle",
    "Per hour", "Cost"];
  const rows = report.machines.map((m) => [
    m.name + (m.volume ? " (volume)" : ""), String(m.generation), m.provider + (m.region ? " " + m.region : ""),
    m.type || "", m.machine, duration(m.start), duration(m.seconds) + (m.open ? " .." : ""),
    duration(m.starting_seconds), duration(m.idle_seconds), m.price, m.cost + (m.reconciled ? "" : " (estimate)"),
  ]);
  return table(titles, rows, [1, 5, 6, 7, 8, 9, 10]);
}

const COLUMNS = [["key", "Key"], ["kind", "Kind"], ["state", "State"], ["attempt", "Try"], ["start", "At"],
  ["seconds", "Took"], ["source", "Where"], ["value", "Value"]];
const NUMERIC = ["attempt", "start", "seconds"];

// The table of entries, with filter, order and a limit of rows.
class Entries {
  constructor(report) {
    Object.assign(this, { all: report.entries, words: "", state: "", by: "start", down: false, most: 100 },
      kept.entries);
    this.body = el("tbody", {});
    this.count = el("span", { class: "quiet", "aria-live": "polite" });
    this.more = el("button", { type: "button", click: () => this.set({ most: this.most + 400 }) }, "Show more");
    this.heads = COLUMNS.map(([by, title]) => {
      const order = el("button", { type: "button", click: () => this.order(by) }, title);
      return el("th", { scope: "col", class: NUMERIC.includes(by) ? "number" : null, "data-by": by }, order);
    });
  }

  node() {
    const filter = el("input", { type: "search", "aria-label": "filter entries", value: this.words,
      placeholder: "part of a key, kind or line", input: (e) => this.set({ words: e.target.value.toLowerCase() }) });
    const states = el("select", { "aria-label": "state", change: (e) => this.set({ state: e.target.value }) },
      ["", "done", "failed", "started"].map((s) => el("option", { value: s, selected: s === this.state }, s || "all states")));
    const rows = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "entries" },
      el("table", {}, el("thead", {}, el("tr", {}, this.heads)), this.body));
    this.fill();
    return [el("div", { class: "tools" }, filter, states, this.count), rows, this.more];
  }

  set(what) {
    Object.assign(this, what);
    Object.assign(kept.entries, what);
    this.fill();
  }

  order(by) {
    this.set({ down: this.by === by ? !this.down : by === "seconds", by });
  }

  row(e) {
    const cell = (text, name) => el("td", { class: name }, text);
    return el("tr", {}, cell(e.key, "mono"), cell(e.kind), cell(e.state, e.state === "failed" ? "bad" : null),
      cell(String(e.attempt), "number"), cell(duration(e.start), "number"),
      cell(duration(e.seconds) + (e.open ? " .." : ""), "number"), cell(e.source, "mono"),
      cell(e.error ? e.error.message : e.value || "", "mono"));
  }

  fill() {
    const fits = (e) => (!this.state || e.state === this.state) &&
      (!this.words || (e.key + " " + e.kind + " " + e.source).toLowerCase().includes(this.words));
    const found = this.all.filter(fits), sign = this.down ? -1 : 1;
    const of = (e) => (e[this.by] === undefined ? "" : e[this.by]);
    found.sort((a, b) => sign * (of(a) < of(b) ? -1 : of(a) > of(b) ? 1 : 0));
    for (const head of this.heads) {
      if (head.dataset.by === this.by) head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    this.body.replaceChildren(...found.slice(0, this.most).map((e) => this.row(e)));
    this.count.textContent = Math.min(found.length, this.most) + " of " + found.length;
    this.more.hidden = found.length <= this.most;
  }
}

// How often each line of the file ran, as the sources of the entries say: { line: { count, failed } }.
function linesThatRan(report, file) {
  const ran = {};
  for (const e of report.entries) {
    const cut = e.source.lastIndexOf(":");
    if (cut < 0 || e.source.slice(0, cut).split("/").pop() !== file) continue;
    const line = e.source.slice(cut + 1), was = ran[line] || (ran[line] = { count: 0, failed: 0 });
    was.count += 1;
    was.failed += e.state === "failed" ? 1 : 0;
  }
  return ran;
}

function sourceNode(report, source) {
  const ran = linesThatRan(report, source.module.replace(/^file:/, "").split("/").pop());
  const rows = source.text.replace(/\n$/, "").split("\n").slice(0, 3000).map((text, i) => {
    const was = ran[i + 1];
    const times = was ? was.count + "×" + (was.failed ? " (" + was.failed + " failed)" : "") : "";
    return el("tr", { class: was ? (was.failed ? "ran failed" : "ran") : null },
      el("td", { class: "number quiet" }, String(i + 1)), el("td", { class: "number" }, times), el("td", {}, text));
  });
  return el("details", { open: source.script }, el("summary", {}, source.module),
    el("div", { class: "source", tabindex: "0", role: "region", "aria-label": source.module },
      el("table", {}, el("tbody", {}, rows))));
}

function logNode(log) {
  if (!log.text) return [];
  const shown = log.bytes - log.left_out_bytes;
  const note = log.left_out_bytes ? "The last " + bytes(shown) + " of " + bytes(log.bytes) : null;
  return [note ? el("p", { class: "quiet" }, note) : null,
    el("pre", { tabindex: "0", role: "region", "aria-label": "log" }, log.text)];
}

function storyList(report) {
  return el("ol", { class: "story" }, report.story.map((s) => el("li", {}, el("time", {}, duration(s.at)),
    el("span", { class: s.kind === "error" ? "bad" : null }, s.text))));
}

function checkpointsTable(report) {
  if (!report.checkpoints.length) return null;
  const rows = report.checkpoints.map((c) => [duration(c.at), String(c.step), c.event.replace("_", " "), c.directory,
    c.size_bytes === undefined ? "" : bytes(c.size_bytes)]);
  return table(["At", "Step", "What", "Where", "Size"], rows, [0, 1, 4]);
}

function childrenTable(report) {
  if (!report.children.length) return null;
  const rows = report.children.map((c) => [c.id, c.state, duration(c.seconds), c.script]);
  return table(["Run", "State", "Took", "Script"], rows, [2]);
}

function dataNodes(report) {
  const run = report.run;
  const texts = [["Arguments", run.args], ["Result", run.result], ["Cancelled", run.cancelled]];
  return texts.filter(([, text]) => text)
    .map(([name, text]) => [el("h3", {}, name), el("pre", { tabindex: "0" }, text)]);
}

function environmentList(report) {
  const run = report.run, e = report.environment;
  return factsList([
    ["Script", run.script], ["Run", run.id], ["Host", e.host], ["Processes", String(e.processes)],
    ["Forked from", run.forked_from], ["Started by", run.parent], ["Tag", run.tag], ["Deadline", run.deadline],
    ["This page", e.made + ", Rille " + e.version + ", build " + e.build],
  ].filter(([, value]) => value));
}

function runSections(report) {
  const something = report.entries.length || report.machines.length;
  return [
    section("story", "What happened", storyList(report)),
    section("errors", "Errors", errorsOf(report)),
    section("curves", "Training", curves(report)),
    section("money", "Money", moneyCharts(report)),
    section("load", "Load of the machines", load(report)),
    section("timeline", "Timeline", something ? new Timeline(report).node() : null),
    section("machines", "Machines", machinesTable(report)),
    section("entries", "Entries", report.entries.length ? new Entries(report).node() : null),
    section("checkpoints", "Checkpoints", checkpointsTable(report)),
    section("children", "Runs that it started", childrenTable(report)),
    section("log", "Log", logNode(report.log)),
    section("data", "Arguments and result", dataNodes(report).flat()),
    section("script", "Script", report.sources.map((s) => sourceNode(report, s))),
    section("environment", "Environment", environmentList(report)),
  ].filter(Boolean);
}

function runPage(report) {
  const sections = runSections(report);
  const links = sections.map((s) => el("a", { href: "#" + s.id }, s.querySelector("h2").textContent));
  const title = el("h1", {}, report.run.name, " ", stateMark(report.run.state));
  return [el("a", { class: "skip", href: "#story" }, "To what happened"),
    el("header", {}, title, el("p", { class: "quiet mono" }, report.run.id), factsList(facts(report))),
    el("nav", { "aria-label": "sections" }, links), ...sections];
}

const content = (reports) => (reports.length === 1 ? runPage(reports[0]) : comparePage(reports));

// What each section of a run's page shows, so that it is drawn again only when that has changed.
const shownBy = {
  story: (r) => r.story, errors: (r) => [r.run.error, r.entries.filter((e) => e.error)],
  curves: (r) => r.series.filter((s) => !s.machine), money: (r) => [r.money, r.run.seconds, r.series],
  load: (r) => r.series.filter((s) => s.machine), timeline: (r) => [r.entries, r.machines, r.run.seconds],
  machines: (r) => r.machines, entries: (r) => r.entries, checkpoints: (r) => r.checkpoints,
  children: (r) => r.children, log: (r) => r.log, data: (r) => [r.run.args, r.run.result, r.run.cancelled],
  script: (r) => [r.sources, r.entries.map((e) => [e.source, e.state])],
  environment: (r) => [r.environment.processes, r.run.deadline],
};

// The text of what a section shows; a comparison is one whole.
function shownIn(reports, id) {
  if (reports.length === 1 && shownBy[id]) return JSON.stringify(shownBy[id](reports[0]));
  return JSON.stringify(reports.map((r) => Object.assign({}, r, { environment: null })));
}
