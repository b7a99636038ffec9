// The timeline: a lane per machine and generation, and lanes of fibers. What is narrower than a pixel is drawn
// together.

const LANE = 18, HEAD = 20, LANES_MAX = 400, OWN_LANE_MAX = 100;
const WAITS = ["sleep", "signal", "pool", "now"], CALLS = ["call", "exec", "stage", "get", "telemetry", "run"];
const RENTS = ["rent", "release", "replace", "resize", "released", "detach", "offers", "volume"];

function colorOf(item) {
  if (item.state === "failed") return "--bad";
  if (item.kind === "machine") return item.volume ? "--c5" : "--c6";
  if (WAITS.includes(item.kind)) return "--wait";
  if (CALLS.includes(item.kind)) return "--c3";
  if (RENTS.includes(item.kind)) return "--c7";
  return "--c0";
}

const LEGEND = [["machine", "--c6"], ["step", "--c0"], ["call, program, files", "--c3"], ["waiting", "--wait"],
  ["rent, release", "--c7"], ["failed (×)", "--bad"]];

function machineItems(report) {
  return report.machines.map((m) => ({ kind: "machine", key: m.name, fiber: m.name + " " + m.generation, start: m.start,
    seconds: m.seconds, state: m.state, open: m.open, volume: m.volume, attempt: m.generation,
    source: [m.machine, m.provider, m.type, m.cost].filter(Boolean).join(", ") }));
}

// Fibers that do not overlap share a lane when there are many.
function packed(fibers) {
  const lanes = [];
  for (const f of fibers) {
    let lane = lanes.find((l) => l.end <= f.start);
    if (!lane && lanes.length >= LANES_MAX) lane = lanes.reduce((a, b) => (a.end <= b.end ? a : b));
    if (!lane) lanes.push(lane = { name: "lane " + (lanes.length + 1), items: [], end: 0 });
    lane.items.push(...f.items);
    lane.end = Math.max(lane.end, f.end);
  }
  return lanes;
}

function lanesOf(report) {
  const machines = new Map(), fibers = new Map();
  const add = (map, item) => {
    const end = item.start + item.seconds, lane = map.get(item.fiber);
    if (!lane) map.set(item.fiber, { name: item.fiber, items: [item], start: item.start, end });
    else lane.items.push(item), lane.end = Math.max(lane.end, end);
  };
  machineItems(report).forEach((m) => add(machines, m));
  report.entries.forEach((e) => add(fibers, e));
  const many = fibers.size > OWN_LANE_MAX;
  const rows = many ? packed([...fibers.values()]) : [...fibers.values()];
  return { lanes: [...machines.values(), ...rows], shared: many ? fibers.size : 0, machines: machines.size };
}

function says(item) {
  const parts = [item.key, item.kind, item.state, "at " + duration(item.start), "for " + duration(item.seconds)];
  if (item.open) parts.push("not finished");
  if (item.attempt > 1) parts.push(item.kind === "machine" ? "generation " + item.attempt : "attempt " + item.attempt);
  if (item.source) parts.push(item.source);
  if (item.error) parts.push(item.error.message);
  return parts.join(", ");
}

class Timeline {
  constructor(report) {
    Object.assign(this, lanesOf(report));
    const ends = this.lanes.map((lane) => highest(lane.items.map((i) => i.start + i.seconds)));
    this.end = Math.max(1e-3, report.run.seconds, highest(ends));
    this.from = kept.timeline.from || 0;
    this.to = kept.timeline.to || this.end;
    this.lane = this.item = -1;
    this.readout = el("p", { class: "readout", "aria-live": "polite" }, "");
    this.plot = el("div", { class: "plot", tabindex: "0", role: "application",
      "aria-label": "Timeline. Left and right move in a lane, up and down between lanes, plus and minus zoom, " +
        "0 shows all." });
    this.plot.addEventListener("keydown", (e) => this.key(e));
    this.plot.addEventListener("click", (e) => this.pick(e));
    this.plot.addEventListener("pointermove", (e) => this.hover(e));
    redraws.push({ node: this.plot, draw: () => this.draw() });
  }

  node() {
    const press = (text, label, fn) => el("button", { type: "button", "aria-label": label, click: fn }, text);
    const legend = el("ul", { class: "legend" }, LEGEND.map(([text, color]) => {
      const mark = el("span", {});
      mark.style.background = `var(${color})`;
      return el("li", {}, mark, text);
    }));
    const tools = el("div", { class: "tools" }, press("+", "zoom in", () => this.zoom(0.5)),
      press("−", "zoom out", () => this.zoom(2)), press("←", "earlier", () => this.move(-0.25)),
      press("→", "later", () => this.move(0.25)), press("All", "show all", () => this.show(0, this.end)));
    const note = this.shared ? el("p", { class: "quiet" }, plural(this.shared, "fiber") + " share these lanes") : null;
    return el("div", {}, tools, legend, note, this.readout, el("div", { class: "lanes" }, this.plot));
  }

  show(from, to) {
    const span = Math.max(to - from, this.end * 1e-6);
    this.from = Math.max(0, Math.min(from, this.end - span));
    this.to = Math.min(this.end, this.from + span);
    kept.timeline = this.from > 0 || this.to < this.end ? { from: this.from, to: this.to } : {};
    this.draw();
  }

  zoom(by) {
    const chosen = this.lane >= 0 ? this.lanes[this.lane].items[this.item] : null;
    const middle = chosen ? chosen.start + chosen.seconds / 2 : (this.from + this.to) / 2;
    const half = (this.to - this.from) * by / 2;
    this.show(middle - half, middle + half);
  }

  move(by) {
    const far = (this.to - this.from) * by;
    this.show(this.from + far, this.to + far);
  }

  draw() {
    const width = Math.max(280, this.plot.clientWidth || 900);
    this.left = width < 520 ? 90 : 190;
    this.xs = scale(this.from, this.to, this.left, width - 6);
    const tall = HEAD + this.lanes.length * LANE + 4;
    const svg = el("svg:svg", { class: "bars", viewBox: `0 0 ${width} ${tall}`, "aria-hidden": "true" });
    for (const x of ticks(this.from, this.to, Math.max(2, Math.floor((width - this.left) / 110)), true)) {
      svg.append(el("svg:line", { class: "grid", x1: this.xs.at(x), x2: this.xs.at(x), y1: HEAD - 4, y2: tall }));
      svg.append(el("svg:text", { x: this.xs.at(x), y: 11, "text-anchor": "middle" }, duration(x)));
    }
    this.lanes.forEach((lane, n) => this.drawLane(svg, lane, n));
    this.plot.replaceChildren(svg);
  }

  drawLane(svg, lane, n) {
    const y = HEAD + n * LANE, room = Math.floor((this.left - 8) / 6.2);
    const short = lane.name.length > room ? "…" + lane.name.slice(1 - room) : lane.name;
    svg.append(el("svg:text", { x: 0, y: y + 13 }, short));
    let run = null;
    const flush = () => {
      if (run) svg.append(el("svg:rect", { x: run.x, y: y + 2, width: Math.max(1, run.end - run.x), height: LANE - 4,
        fill: `var(${run.color})`, class: run.chosen ? "selected" : null, rx: run.end - run.x > 4 ? 2 : 0 }));
      if (run && run.color === "--bad") svg.append(el("svg:text", { class: "cross", x: run.x + 2, y: y + 13 }, "×"));
      run = null;
    };
    lane.items.forEach((item, i) => {
      if (item.start > this.to || item.start + item.seconds < this.from) return;
      const x = Math.max(this.left, this.xs.at(item.start));
      const end = Math.min(this.xs.at(this.to), this.xs.at(item.start + item.seconds));
      const color = colorOf(item), chosen = n === this.lane && i === this.item;
      const joins = run && !chosen && !run.chosen && run.color === color && x - run.end < 1 && end - x < 1;
      if (joins) run.end = Math.max(run.end, end);
      else flush(), run = { x, end, color, chosen };
    });
    flush();
  }

  find(e) {
    const shape = this.plot.getBoundingClientRect(), ratio = Math.max(280, this.plot.clientWidth) / shape.width;
    const lane = Math.floor(((e.clientY - shape.top) * ratio - HEAD) / LANE);
    const at = this.xs.back((e.clientX - shape.left) * ratio);
    if (!this.lanes[lane]) return null;
    let best = -1, gap = Infinity;
    this.lanes[lane].items.forEach((item, i) => {
      const far = Math.max(item.start - at, at - item.start - item.seconds, 0);
      if (far <= gap) [best, gap] = [i, far];
    });
    return gap <= (this.to - this.from) / 50 ? [lane, best] : null;
  }

  hover(e) {
    const found = this.find(e);
    if (found) this.readout.textContent = says(this.lanes[found[0]].items[found[1]]);
  }

  pick(e) {
    const found = this.find(e);
    if (found) this.choose(...found);
  }

  choose(lane, item) {
    this.lane = Math.max(0, Math.min(this.lanes.length - 1, lane));
    const items = this.lanes[this.lane].items;
    this.item = Math.max(0, Math.min(items.length - 1, item));
    const chosen = items[this.item];
    this.readout.textContent = says(chosen);
    const outside = chosen.start > this.to || chosen.start + chosen.seconds < this.from;
    if (outside) this.show(chosen.start - (this.to - this.from) / 2, chosen.start + (this.to - this.from) / 2);
    else this.draw();
    const frame = this.plot.parentElement, top = HEAD + this.lane * LANE;  // scrolls to the lane
    frame.scrollTop = Math.max(top + 2 * LANE - frame.clientHeight, Math.min(frame.scrollTop, top - HEAD));
  }

  key(e) {
    const act = { ArrowRight: () => this.choose(this.lane, this.item + 1), ArrowLeft: () => this.choose(this.lane,
      this.item - 1),
      ArrowDown: () => this.choose(this.lane + 1, this.item), ArrowUp: () => this.choose(this.lane - 1, this.item),
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), "0": () => this.show(0,
        this.end) }[e.key];
    if (!act || !this.lanes.length) return;
    e.preventDefault();
    act();
  }
}
