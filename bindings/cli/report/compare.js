// Several runs compared: what differs in their facts and scripts, and their curves in one chart each.

const runName = (report) => report.run.name + " " + report.run.id.slice(-6);

function argumentsOf(report) {
  try {
    const text = (v) => (typeof v === "string" ? v : JSON.stringify(v));
    return Object.entries(JSON.parse(report.run.args || "{}")).map(([name, v]) => [name, text(v)]);
  } catch (e) {
    return report.run.args ? [["arguments", report.run.args]] : [];
  }
}

// Rows of [name, value of each run]; a row whose values are equal in all is left out when `differing`.
function comparedRows(reports, rowsOf, differing) {
  const values = reports.map((r) => new Map(rowsOf(r)));
  const names = new Set(values.flatMap((map) => [...map.keys()]));
  const rows = [...names].map((name) => [name, ...values.map((map) => (map.has(name) ? map.get(name) : "–"))]);
  return differing ? rows.filter((row) => row.slice(1).some((v) => v !== row[1])) : rows;
}

function comparedEntries(report) {
  const sums = new Map();
  for (const e of report.entries) {
    const name = e.kind + " " + e.name.replace(/\[\d+\]/g, "[..]"), sum = sums.get(name) || [0, 0];
    sums.set(name, [sum[0] + 1, sum[1] + e.seconds]);
  }
  return [...sums].map(([name, [count, seconds]]) => [name, duration(seconds) + (count > 1 ? " in " + count : "")]);
}

function comparedSources(reports) {
  const modules = [...new Set(reports.flatMap((r) => r.sources.map((s) => s.module)))];
  return modules.map((module) => {
    const texts = reports.map((r) => (r.sources.find((s) => s.module === module) || { text: null }).text);
    if (texts.every((t) => t === texts[0])) return null;
    if (texts.length !== 2 || texts.includes(null)) return el("p", {}, module + " differs");
    return el("details", { open: true }, el("summary", {}, module),
      el("pre", { tabindex: "0" }, changedLines(texts[0], texts[1])));
  }).filter(Boolean);
}

// The lines that only one of two texts has, after their longest common sequence. Equal ends are skipped first.
function changedLines(before, after) {
  let a = before.split("\n"), b = after.split("\n"), head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) ++head;
  while (a.length > head && b.length > head && a[a.length - 1] === b[b.length - 1]) a.pop(), b.pop();
  a = a.slice(head);
  b = b.slice(head);
  if (a.length * b.length > 4e6) return "too much differs to show it here";
  const common = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; --i)
    for (let j = b.length - 1; j >= 0; --j)
      common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  const out = [];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) ++i, ++j;
    else if (j >= b.length || (i < a.length && common[i + 1][j] >= common[i][j + 1])) out.push("- " + (head + i + 1) +
      ": " + a[i++]);
    else out.push("+ " + (head + j + 1) + ": " + b[j++]);
  }
  return out.join("\n");
}

// The charts of all names that a run has, with a line for each run's longest series of it.
function comparedCharts(reports) {
  const names = new Set(reports.flatMap((r) => [...seriesNames(r, false), ...seriesNames(r, true)]));
  const longest = (report, name, x) => {
    const lines = linesOf(report, name, x).sort((p, q) => q.points.length - p.points.length);
    return lines.length ? lines[0].points : [];
  };
  const lines = (pointsOf) => reports.map((r) => ({ name: runName(r), points: pointsOf(r) }));
  const charts = [...names].map((name) => {
    const x = UNITS[name] ? "time" : "step";
    return figure({ title: name, lines: lines((r) => longest(r, name, x)), xTitle: x === "time" ? "Time" : "Step",
      showX: x === "time" ? duration : number, showY: UNITS[name] || number });
  });
  const overDollars = (r) => {
    const corners = spending(r.money);
    return corners.length ? longest(r, "loss", "time").map(([at, loss]) => [height(corners, at), loss]) : [];
  };
  charts.push(figure({ title: "dollars", lines: lines((r) => spending(r.money)), xTitle: "Time", showX: duration,
    showY: dollars, fromZero: true }));
  charts.push(figure({ title: "loss over dollars", lines: lines(overDollars), xTitle: "Dollars", showX: dollars,
    showY: number }));
  return charts.filter(Boolean);
}

function comparedMachines(report) {
  return report.machines.map((m) => [m.name + " " + m.generation,
    [m.provider, m.type, duration(m.seconds), m.cost].filter(Boolean).join(", ")]);
}

function comparePage(reports) {
  const titles = ["", ...reports.map(runName)];
  const all = (r) => [["State", r.run.state], ["Script", r.run.script], ["Run", r.run.id], ...facts(r)];
  const args = comparedRows(reports, argumentsOf, true), sources = comparedSources(reports);
  const charts = comparedCharts(reports), machines = comparedRows(reports, comparedMachines, false);
  const entries = comparedRows(reports, comparedEntries, false).slice(0, 200);
  return [
    el("header", {}, el("h1", {}, reports.map(runName).join(" and "))),
    section("facts", "Facts", table(titles, comparedRows(reports, all, false))),
    section("arguments", "Arguments that differ",
      args.length ? table(titles, args) : el("p", {}, "The arguments are equal.")),
    section("scripts", "Scripts", sources.length ? sources : el("p", {}, "The scripts are equal.")),
    section("curves", "Curves", charts.length ? el("div", { class: "charts" }, charts) : null),
    section("machines", "Machines", machines.length ? table(titles, machines) : null),
    section("entries", "Time by kind of entry", entries.length ? table(titles, entries) : null),
  ].filter(Boolean);
}
