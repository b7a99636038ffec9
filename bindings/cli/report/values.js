"use strict";
// Values and elements. Every text enters the page by textContent or as an attribute's value, never as markup.

const DATA = JSON.parse(document.getElementById("report").textContent);
// What a reader has chosen in a section, for the section that replaces it when newer data come.
const kept = { entries: {}, timeline: {}, curves: {}, list: {} };

// el("p", { class: "quiet" }, "text", child, ..)
function el(name, attributes, ...children) {
  const node = name.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4))
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") node.addEventListener(key, value);
    else if (value !== undefined && value !== null && value !== false) node.setAttribute(key, value === true ? "" :
      value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}

function duration(s) {
  if (s === null || s === undefined) return "";
  if (s < 0) return "-" + duration(-s);
  if (s < 1) return Math.round(s * 1000) + " ms";
  if (s < 10) return s.toFixed(1) + " s";
  if (s < 60) return Math.round(s) + " s";
  const two = (large, one, small, other) => {
    const rest = Math.floor(s % large / small);
    return Math.floor(s / large) + " " + one + (rest ? " " + rest + " " + other : "");
  };
  if (s < 3600) return two(60, "m", 1, "s");
  return s < 172800 ? two(3600, "h", 60, "m") : two(86400, "d", 3600, "h");
}

function number(v) {
  if (v === null || v === undefined) return "";
  const size = Math.abs(v);
  if (size >= 1e15 || (size > 0 && size < 1e-4)) return v.toExponential(3);
  if (Number.isInteger(v)) return String(v);
  return String(size >= 1000 ? Math.round(v) : Number(v.toPrecision(5)));
}

// As the command shows dollars: cents, and more digits for what is less than ten.
function dollars(micros) {
  if (micros === 0) return "$0.00";
  const digits = Math.abs(micros) >= 1e7 ? 2 : Math.abs(micros) >= 1e5 ? 4 : 6;
  return "$" + (micros / 1e6).toFixed(digits).replace(/(\.\d\d\d*?)0+$/, "$1");
}

function bytes(n) {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) if (n >= size) return number(n / size) + " " +
    unit;
  return n + " bytes";
}

const plural = (n, word) => n + " " + word + (n === 1 ? "" : "s");
const lowest = (list) => list.reduce((a, b) => Math.min(a, b), Infinity);
const highest = (list) => list.reduce((a, b) => Math.max(a, b), -Infinity);

const TIMES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

// Ticks at round numbers, about `count` of them; of times at round minutes and hours.
function ticks(low, high, count, ofTime) {
  const raw = (high - low) / Math.max(1, count), power = Math.pow(10, Math.floor(Math.log10(raw)));
  const time = ofTime && raw >= 0.9 ? TIMES.find((t) => t >= raw * 0.999) : undefined;
  const step = time || power * [1, 2, 5, 10].find((m) => power * m >= raw * 0.999);
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) out.push(i * step);
  return out;
}

// Dollars spent until each instant, as corners of a line: [[second, micros], ..].
function spending(money) {
  const changes = [];
  for (const [from, to, micros] of money.pieces) {
    const rate = micros / Math.max(to - from, 1e-6);
    changes.push([from, rate], [Math.max(to, from + 1e-6), -rate]);
  }
  changes.sort((a, b) => a[0] - b[0]);
  const out = [];
  let at = 0, sum = 0, rate = 0;
  for (const [time, change] of changes) {
    sum += rate * (time - at);
    at = time;
    rate += change;
    out.push([at, sum]);
  }
  if (out.length) out[out.length - 1][1] = money.spent_micros;
  return out;
}

// The line's height at x, which lies between two corners or beyond the ends.
function height(corners, x) {
  let low = 0, high = corners.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (corners[middle][0] <= x) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return 0;
  if (low === corners.length) return corners[low - 1][1];
  const [a, b] = [corners[low - 1], corners[low]];
  return a[1] + (b[1] - a[1]) * (x - a[0]) / Math.max(b[0] - a[0], 1e-9);
}
