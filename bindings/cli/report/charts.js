// Charts: lines over steps, time or dollars. A chart is a figure with a summary in words, a cursor for pointer and
// arrow
// keys, and its numbers as a table.

let redraws = [];  // { node, draw, drawn }: what has to know its width
const COLORS = 8;

// Draws what is in the page: all of it, or what was not drawn before.
function redraw(all) {
  redraws = redraws.filter((r) => r.node.isConnected);
  for (const r of redraws) {
    if (all || !r.drawn) r.draw();
    r.drawn = true;
  }
}

// Many lines are hard to read: the lowest, the middle and the highest of them instead.
function bundled(lines) {
  if (lines.length <= COLORS) return lines;
  const low = lowest(lines.map((l) => l.points[0][0])),
    high = highest(lines.map((l) => l.points[l.points.length - 1][0]));
  const pieces = 200, at = lines.map(() => -1);
  const out = ["lowest", "middle", "highest"].map((name) => ({ name: name + " of " + lines.length, points: [] }));
  for (let i = 0; i <= pieces; ++i) {
    const x = low + (high - low) * i / pieces, values = [];
    lines.forEach((line, n) => {
      while (at[n] + 1 < line.points.length && line.points[at[n] + 1][0] <= x) ++at[n];
      const over = at[n] + 1 >= line.points.length && line.points[line.points.length - 1][0] < x;
      if (at[n] >= 0 && !over) values.push(line.points[at[n]][1]);
    });
    if (!values.length) continue;
    values.sort((a, b) => a - b);
    [0, values.length >> 1, values.length - 1].forEach((of, n) => out[n].points.push([x, values[of]]));
  }
  return out;
}

function nearest(points, x) {
  let low = 0, high = points.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] < x) low = middle + 1;
    else high = middle;
  }
  return low > 0 && x - points[low - 1][0] < points[low][0] - x ? low - 1 : low;
}

function summary(chart) {
  if (chart.lines.length > 3) {
    const ys = chart.lines.flatMap((line) => line.points.map((p) => p[1]));
    return chart.lines.length + " curves between " + chart.showY(lowest(ys)) + " and " + chart.showY(highest(ys));
  }
  return chart.lines.slice(0, 3).map((line) => {
    const ys = line.points.map((p) => p[1]), last = line.points[line.points.length - 1];
    const best = line.points[ys.indexOf(lowest(ys))];
    const name = chart.lines.length > 1 ? line.name + ": " : "";
    return name + chart.showY(ys[0]) + " to " + chart.showY(last[1]) + " at " + chart.showX(last[0]) + ", lowest " +
      chart.showY(best[1]) + ", highest " + chart.showY(highest(ys));
  }).join("; ");
}

function axes(svg, box, xs, ys, chart) {
  for (const y of ticks(ys.low, ys.high, 4)) {
    svg.append(el("svg:line", { class: "grid", x1: box.left, x2: box.right, y1: ys.at(y), y2: ys.at(y) }));
    svg.append(el("svg:text", { x: box.left - 4, y: ys.at(y) + 4, "text-anchor": "end" }, chart.showY(y)));
  }
  const count = Math.max(2, Math.floor((box.right - box.left) / 90));
  for (const x of ticks(xs.low, xs.high, count, chart.showX === duration))
    svg.append(el("svg:text", { x: xs.at(x), y: box.bottom + 14, "text-anchor": "middle" }, chart.showX(x)));
}

function scale(low, high, from, to) {
  if (!(high > low)) [low, high] = [low - Math.abs(low || 1) * 0.5, low + Math.abs(low || 1) * 0.5];
  return { low, high, at: (v) => from + (to - from) * (v - low) / (high - low),
    back: (pixel) => low + (high - low) * (pixel - from) / (to - from) };
}

function drawChart(plot, chart) {
  const width = Math.max(240, plot.clientWidth || 380), tall = 200;
  const box = { left: 58, right: width - 10, top: 8, bottom: tall - 22 };
  const xs = scale(lowest(chart.lines.map((l) => l.points[0][0])),
    highest(chart.lines.map((l) => l.points[l.points.length - 1][0])), box.left, box.right);
  const values = chart.lines.flatMap((l) => l.points.map((p) => p[1]));
  if (chart.limit !== undefined) values.push(chart.limit);
  if (chart.fromZero) values.push(0);
  const ys = scale(lowest(values), highest(values), box.bottom, box.top);
  const svg = el("svg:svg", { viewBox: `0 0 ${width} ${tall}`, "aria-hidden": "true" });
  axes(svg, box, xs, ys, chart);
  chart.lines.forEach((line, n) => {
    const path = line.points.map(([x, y], i) => (i ? "L" : "M") + xs.at(x).toFixed(1) + " " + ys.at(y).toFixed(1));
    svg.append(el("svg:path", { class: "curve", d: path.join(""), stroke: `var(--c${n % COLORS})` }));
    if (line.points.length === 1)
      svg.append(el("svg:circle", { cx: xs.at(line.points[0][0]), cy: ys.at(line.points[0][1]), r: 3,
        fill: `var(--c${n % COLORS})` }));
  });
  if (chart.limit !== undefined)
    svg.append(el("svg:line", { class: "limit", x1: box.left, x2: box.right, y1: ys.at(chart.limit),
      y2: ys.at(chart.limit) }));
  const cursor = el("svg:line", { class: "cursor", y1: box.top, y2: box.bottom, visibility: "hidden" });
  svg.append(cursor);
  plot.replaceChildren(svg);
  chart.xs = xs;
  chart.moveCursor = (x) => {
    cursor.setAttribute("visibility", "visible");
    cursor.setAttribute("x1", xs.at(x));
    cursor.setAttribute("x2", xs.at(x));
  };
}

function follow(plot, chart, readout) {
  let at = -1;
  const main = chart.lines.reduce((a, b) => (b.points.length > a.points.length ? b : a));
  const show = (index) => {
    at = Math.max(0, Math.min(main.points.length - 1, index));
    const x = main.points[at][0];
    chart.moveCursor(x);
    readout.textContent = chart.showX(x) + ": " + chart.lines.map((line) => {
      const p = line.points[nearest(line.points, x)];
      return (chart.lines.length > 1 ? line.name + " " : "") + chart.showY(p[1]);
    }).join(", ");
  };
  plot.addEventListener("pointermove", (e) => {
    const shape = plot.getBoundingClientRect(), width = Math.max(240, plot.clientWidth);
    show(nearest(main.points, chart.xs.back((e.clientX - shape.left) * width / shape.width)));
  });
  plot.addEventListener("keydown", (e) => {
    const leap = Math.max(1, Math.round(main.points.length / (e.shiftKey ? 10 : 100)));
    const next = { ArrowRight: at + leap, ArrowLeft: at - leap, Home: 0, End: main.points.length - 1 }[e.key];
    if (next === undefined) return;
    e.preventDefault();
    show(next);
  });
}

function numbersTable(chart) {
  const details = el("details", {}, el("summary", {}, "Numbers"));
  details.addEventListener("toggle", () => {
    if (details.children.length > 1) return;
    const rows = [];
    for (const line of chart.lines) {
      const leap = Math.max(1, Math.ceil(line.points.length / 100));
      line.points.forEach(([x, y], i) => {
        if (i % leap === 0 || i === line.points.length - 1) rows.push([line.name, chart.showX(x), chart.showY(y)]);
      });
    }
    details.append(table([chart.lineTitle || "Series", chart.xTitle, chart.title], rows, [1, 2]));
  });
  return details;
}

// chart: { title, lines = [{ name, points = [[x, y], ..] }], xTitle, showX, showY, limit?, note?, fromZero? }
function figure(chart) {
  chart.lines = bundled(chart.lines.filter((l) => l.points.length));
  if (!chart.lines.length) return null;
  const readout = el("p", { class: "readout", "aria-live": "polite" });
  const plot = el("div", { class: "plot", tabindex: "0", role: "application",
    "aria-label": chart.title + ": a chart. Arrow keys move along it." });
  const legend = chart.lines.length < 2 ? null : el("ul", { class: "legend" }, chart.lines.map((line, n) => {
    const mark = el("span", {});
    mark.style.background = `var(--c${n % COLORS})`;
    return el("li", {}, mark, line.name);
  }));
  const node = el("figure", { "data-chart": chart.title }, el("figcaption", {}, el("h3", {}, chart.title),
    el("p", {}, summary(chart)), chart.note ? el("p", {}, chart.note) : null), plot, legend, readout,
      numbersTable(chart));
  redraws.push({ node: plot, draw: () => drawChart(plot, chart) });
  follow(plot, chart, readout);
  return node;
}

function table(titles, rows, numeric) {
  const align = (i) => (numeric && numeric.includes(i) ? "number" : null);
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": titles.join(", ") },
    el("table", {}, el("thead", {}, el("tr", {}, titles.map((t, i) => el("th", { scope: "col", class: align(i) }, t)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, i) => el("td", { class: align(i) }, cell)))))));
}
