// A page that `rille serve` sends asks for newer data once a second while it is seen, and replaces the sections that
// have changed. A section in which the reader is at work waits: one that has the focus, a selected text, or a chart
// under the pointer. Asking again instead of one long answer: a browser keeps only six connections to a server.

const ASK_EVERY_MS = 1000, SLOWER = 10;

class Live {
  constructor(data) {
    Object.assign(this, { data, version: "", drawn: {}, news: false, restores: [], heard: Date.now() });
    this.status = el("p", { role: "status", id: "live" }, "live");
    document.body.append(this.status);
    for (const s of document.querySelectorAll("main > section")) this.drawn[s.id] = shownIn(data, s.id);
    document.addEventListener("visibilitychange", () => this.turn());
    this.turn();
  }

  // Asks, and again after a pause that is longer when answers take long.
  async turn() {
    if (document.hidden || this.asking) return;
    clearTimeout(this.next);
    this.asking = true;
    const begun = performance.now();
    try {
      await this.ask();
    } catch (e) {
      this.say("The server does not answer. Shown: " + new Date(this.heard).toLocaleTimeString());
    }
    this.asking = false;
    this.next = setTimeout(() => this.turn(), Math.max(ASK_EVERY_MS, SLOWER * (performance.now() - begun)));
  }

  async ask() {
    const headers = this.version ? { "If-None-Match": this.version } : {};
    const answer = await fetch(document.body.dataset.live, { headers, cache: "no-store", redirect: "error" });
    if (answer.status !== 304 && !answer.ok) {
      this.say("The server refuses (" + answer.status + "): " + (await answer.text()).trim());
      return;
    }
    this.heard = Date.now();
    this.say("live");
    if (answer.ok) {
      this.version = answer.headers.get("ETag") || "";
      this.data = await answer.json();
      this.news = true;
    }
    if (this.news) this.show();
  }

  show() {
    const main = document.getElementById("page"), fresh = content(this.data);
    const old = new Map([...main.children].filter((n) => n.id).map((n) => [n.id, n]));
    this.news = false;
    const nodes = fresh.map((node) => {
      const was = old.get(node.id);
      if (node.tagName !== "SECTION") return this.keepsFocus(main, node);
      const shown = shownIn(this.data, node.id);
      if (was && this.drawn[node.id] === shown) return was;
      if (was && this.isInUse(was)) {
        this.news = true;  // the next turn tries again
        return was;
      }
      this.drawn[node.id] = shown;
      return was ? this.inPlaceOf(was, node) : node;
    });
    this.put(main, nodes);
    redraw(false);
    this.restores.splice(0).forEach((restore) => restore());
  }

  // Replaces and adds single children: what stays is not taken out, so it keeps focus and scroll position.
  put(main, nodes) {
    const stays = new Set(nodes);
    for (const child of [...main.children]) if (!stays.has(child)) child.remove();
    nodes.forEach((node, i) => {
      if (main.children[i] !== node) main.insertBefore(node, main.children[i] || null);
    });
  }

  // The header and the links change too, unless the focus is in them.
  keepsFocus(main, node) {
    const was = [...main.children].find((n) => n.tagName === node.tagName);
    return was && (was.contains(document.activeElement) || was.outerHTML === node.outerHTML) ? was : node;
  }

  isInUse(section) {
    const selection = document.getSelection(), active = document.activeElement;
    return (section.contains(active) && active.matches(".plot, select, input:not([type=checkbox])")) ||
      (selection && !selection.isCollapsed && section.contains(selection.anchorNode)) ||
      (matchMedia("(hover: hover)").matches && Boolean(section.querySelector(".plot:hover")));
  }

  // The new section opens what the old one had open, and has its focus and its scroll positions; a log that was at its
  // end stays there.
  inPlaceOf(was, node) {
    const folds = [...was.querySelectorAll("details")];
    [...node.querySelectorAll("details")].forEach((d, i) => {
      if (folds[i]) d.open = folds[i].open;
    });
    const frames = (section) => [...section.querySelectorAll("pre, .scroll, .source, .lanes")];
    const places = frames(was).map((f) => ({ top: f.scrollTop, left: f.scrollLeft,
      end: f.scrollTop > 0 && f.scrollTop + f.clientHeight >= f.scrollHeight - 4 }));
    const active = document.activeElement, name = (n) => n.getAttribute("aria-label") || n.textContent;
    const twins = (section) => [...section.querySelectorAll(active.tagName)].filter((n) => name(n) === name(active));
    const focused = was.contains(active) ? twins(was).indexOf(active) : -1;
    this.restores.push(() => {
      frames(node).forEach((f, i) => {
        if (!places[i]) return;
        f.scrollLeft = places[i].left;
        f.scrollTop = places[i].end ? f.scrollHeight : places[i].top;
      });
      const heir = focused < 0 ? null : twins(node)[focused];
      if (heir) heir.focus({ preventScroll: true });
    });
    return node;
  }

  say(text) {
    if (this.status.textContent === text) return;
    this.status.textContent = text;
    this.status.classList.toggle("bad", text !== "live");
  }
}

window.keepUp = (data) => new Live(data);
