// The first page of `rille serve`: runs, and what is rented.

const BAD_STATES = ["failed", "diverged", "interrupted", "cleanup"];

function runRow(run) {
  const chosen = kept.list.chosen;
  const choose = el("input", { type: "checkbox", "aria-label": "compare " + run.id, checked: chosen.has(run.id),
    change: (e) => {
      if (e.target.checked) chosen.add(run.id);
      else chosen.delete(run.id);
      document.getElementById("compare").disabled = chosen.size < 2;
    } });
  const cell = (text, name) => el("td", { class: name }, text);
  return el("tr", {}, el("td", { class: "choose" }, choose), el("td", { class: "mono" }, el("a", { href: "run/" + run.id }, run.id)),
    el("td", {}, el("span", { class: "state " + (BAD_STATES.includes(run.state) ? "bad" : "") }, run.state)),
    cell(run.name), cell(run.created.replace("T", " ").replace("Z", "")), cell(duration(run.seconds), "number"),
    cell(run.cost, "number"));
}

function runsNodes(list) {
  if (!list.runs.length) return [el("p", {}, "No runs yet: rille run FILE")];
  const titles = ["", "Run", "State", "Script", "Started (UTC)", "Took", "Cost"];
  const compare = el("button", { type: "button", id: "compare", disabled: kept.list.chosen.size < 2,
    click: () => { location.href = "run/" + [...kept.list.chosen].slice(0, 20).join(","); } }, "Compare");
  const heads = titles.map((t, i) => el("th", { scope: "col", class: i > 4 ? "number" : null }, t));
  return [
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "runs" }, el("table", {},
      el("thead", {}, el("tr", {}, heads)), el("tbody", {}, list.runs.map(runRow)))),
    el("div", { class: "tools" }, compare,
      list.more ? el("span", { class: "quiet" }, "The newest " + list.runs.length + "; rille ps shows more") : null),
  ];
}

function leasesNodes(list) {
  if (!list.leases.length) return [el("p", {}, "Nothing is rented.")];
  const rows = list.leases.map((l) => [l.name, l.state, l.provider + (l.region ? " " + l.region : ""), l.type, l.machine,
    l.price, l.cost, l.ends === undefined ? "" : l.ends > 0 ? duration(l.ends) : "expired",
    el("a", { href: "run/" + l.run, class: "mono" }, l.run)]);
  return [table(["Name", "State", "Provider", "Type", "Machine", "Per hour", "Spent", "Ends in", "Run"], rows,
    [5, 6, 7])];
}

function content(list) {
  kept.list.chosen = kept.list.chosen || new Set();
  const part = (id, title, nodes) => el("section", { id, "aria-labelledby": id + "-title" },
    el("h2", { id: id + "-title" }, title), nodes);
  return [el("header", {}, el("h1", {}, "Rille"), el("p", { class: "quiet mono" }, list.home)),
    part("leases", "Rented now", leasesNodes(list)), part("runs", "Runs", runsNodes(list))];
}

function shownIn(list, id) {
  return JSON.stringify(id === "runs" ? [list.runs, list.more] : list.leases);
}
