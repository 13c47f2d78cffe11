// No page needs this. It follows a run without reloading the page, and opens links whose token is behind a #.
(function () {
  "use strict";
  var body = document.body;

  var links = body.dataset.links;
  if (links && location.hash.length > 1) {
    location.replace(links + encodeURIComponent(decodeURIComponent(location.hash.slice(1))));
    return;
  }

  if (!body.dataset.live || !window.EventSource) return;
  var waiting = null;

  function renew() {
    waiting = null;
    fetch(location.href, { headers: { Accept: "text/html" }, credentials: "same-origin" })
      .then(function (answer) { return answer.ok ? answer.text() : null; })
      .then(function (text) {
        if (text === null) return;
        var fresh = new DOMParser().parseFromString(text, "text/html");
        var now = document.getElementById("main"), next = fresh.getElementById("main");
        // Whoever is in the middle of something is not disturbed.
        if (!now || !next || now.contains(document.activeElement)) return;
        now.replaceWith(next);
        document.title = fresh.title;
        if (!fresh.body.dataset.live) source.close();
      })
      .catch(function () { /* the next event tries again */ });
  }
  function soon() {
    if (waiting === null) waiting = setTimeout(renew, 300);
  }

  var source = new EventSource(body.dataset.live + "?after=" + body.dataset.after);
  source.onmessage = soon;
  // Events have names of their own, which the page knows.
  (body.dataset.names || "").split(" ").forEach(function (name) {
    if (name) source.addEventListener(name, soon);
  });
  source.onerror = function () {
    // A server without streams: look again every few seconds, as a page without script does.
    if (source.readyState === EventSource.CLOSED && body.dataset.live) setInterval(renew, 5000);
  };
})();
