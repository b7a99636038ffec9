// Draws the page from its data. content(data) makes its nodes, and live.js, where the page has a server, keeps it up
// to date.

function openForPrint() {
  for (const folded of document.querySelectorAll("section > details")) folded.open = true;
}

function start() {
  document.getElementById("page").replaceChildren(...content(DATA));
  redraw(true);
  let waiting = 0, width = window.innerWidth;
  const settle = () => {
    waiting = 0;
    width = window.innerWidth;
    redraw(true);
  };
  window.addEventListener("resize", () => {
    if (!waiting && window.innerWidth !== width) waiting = requestAnimationFrame(settle);
  });
  window.addEventListener("beforeprint", openForPrint);
  document.documentElement.dataset.drawnMs = Math.round(performance.now());
  if (window.keepUp) window.keepUp(DATA);
}

start();
