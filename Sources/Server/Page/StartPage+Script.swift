extension StartPage {
    /// Opens each transport with plain browser APIs. The table shows the results, and its `data-state` is `done` at the
    /// end.
    static let script = #"""
        "use strict";

        const base = "/sock/1/page";
        const rounds = 10;
        const patience = 8000;

        const now = () => performance.now();
        const wsOrigin = location.origin.replace(/^http/, "ws");
        const random = () => {
          const words = crypto.getRandomValues(new Uint32Array(2));
          return words[0].toString(36) + words[1].toString(36);
        };
        const session = () => base + "/" + String(Math.floor(Math.random() * 1000)).padStart(3, "0") + "/" + random();

        // Handles the frames of a session; `hear` receives its messages.
        function frames(way) {
          return (frame) => {
            if (frame[0] === "o") way.opened();
            else if (frame[0] === "a") JSON.parse(frame.slice(1)).forEach((message) => way.hear(message));
            else if (frame[0] === "c") way.failed("closed: " + frame.slice(1));
          };
        }

        function poster(path) {
          return async (message) => {
            const answer = await fetch(path + "/xhr_send", { method: "POST", body: JSON.stringify([message]) });
            if (answer.status !== 204) throw new Error("xhr_send: " + answer.status);
          };
        }

        function overSocket(way, path, isRaw) {
          const socket = new WebSocket(wsOrigin + path + "/websocket");
          const take = isRaw ? (text) => way.hear(text) : frames(way);
          if (isRaw) socket.onopen = () => way.opened();
          socket.onmessage = (event) => take(event.data);
          socket.onclose = (event) => way.failed("closed: " + event.code);
          return {
            send: (message) => socket.send(isRaw ? message : JSON.stringify([message])),
            close: () => { socket.onclose = null; socket.close(); },
          };
        }

        function overStream(way, path) {
          const abort = new AbortController();
          const take = frames(way);
          (async () => {
            const answer = await fetch(path + "/xhr_streaming", { method: "POST", signal: abort.signal });
            const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
            let text = "";
            for (;;) {
              const { value, done } = await reader.read();
              if (done) return way.failed("the response ended");
              text += value;
              const lines = text.split("\n");
              text = lines.pop();
              lines.forEach(take);
            }
          })().catch((error) => way.failed(error.message));
          return { send: poster(path), close: () => abort.abort() };
        }

        function overEvents(way, path) {
          const source = new EventSource(path + "/eventsource");
          const take = frames(way);
          source.onmessage = (event) => take(event.data);
          source.onerror = () => way.failed("the response ended");
          return { send: poster(path), close: () => source.close() };
        }

        function overPolls(way, path) {
          const abort = new AbortController();
          const take = frames(way);
          let isOver = false;
          (async () => {
            while (!isOver) {
              const answer = await fetch(path + "/xhr", { method: "POST", signal: abort.signal });
              take((await answer.text()).trim());
            }
          })().catch((error) => way.failed(error.message));
          return { send: poster(path), close: () => { isOver = true; abort.abort(); } };
        }

        function overFrame(way, path) {
          const name = "htmlfile" + random();
          const frame = document.createElement("iframe");
          window[name] = { start() {}, message: frames(way), stop: () => way.failed("the response ended") };
          frame.src = path + "/htmlfile?c=" + name;
          document.body.append(frame);
          return {
            send: poster(path),
            close: () => { window[name] = { start() {}, message() {}, stop() {} }; frame.remove(); },
          };
        }

        function overScripts(way, path) {
          const name = "jsonp" + random();
          const take = frames(way);
          let isOver = false;
          const poll = () => {
            if (isOver) return;
            const script = document.createElement("script");
            script.src = path + "/jsonp?c=" + name;
            script.onload = () => { script.remove(); poll(); };
            script.onerror = () => way.failed("the script did not load");
            document.head.append(script);
          };
          window[name] = (frame) => { if (!isOver) take(frame); };
          poll();
          const send = async (message) => {
            const body = new URLSearchParams({ d: JSON.stringify([message]) });
            const answer = await fetch(path + "/jsonp_send", { method: "POST", body });
            if (!answer.ok) throw new Error("jsonp_send: " + answer.status);
          };
          return { send, close: () => { isOver = true; } };
        }

        const ways = [
          ["WebSocket", (way) => overSocket(way, base, true)],
          ["SockJS websocket", (way) => overSocket(way, session(), false)],
          ["SockJS xhr-streaming", (way) => overStream(way, session())],
          ["SockJS eventsource", (way) => overEvents(way, session())],
          ["SockJS htmlfile", (way) => overFrame(way, session())],
          ["SockJS xhr-polling", (way) => overPolls(way, session())],
          ["SockJS jsonp-polling", (way) => overScripts(way, session())],
        ];

        // Opens one transport, measures it, closes it. Always ends, with times or with an error.
        function measure(open) {
          return new Promise((resolve, reject) => {
            const begun = now();
            const times = [];
            let opened = 0;
            let sent = 0;
            let link = null;
            const timer = setTimeout(() => end(new Error("no answer")), patience);
            function end(error) {
              if (link === undefined) return;
              clearTimeout(timer);
              if (link) link.close();
              link = undefined;
              if (error) reject(error);
              else resolve({ opened, times });
            }
            async function next() {
              sent = now();
              try { await link.send("h:" + times.length); } catch (error) { end(error); }
            }
            link = open({
              opened: () => { opened = now() - begun; setTimeout(next, 0); },
              hear: (message) => {
                if (!link || message !== "h:" + (times.length + 1)) return;
                times.push(now() - sent);
                if (times.length === rounds) end();
                else next();
              },
              failed: (reason) => end(new Error(reason)),
            });
          });
        }

        const milliseconds = (time) => time.toFixed(1) + " ms";

        function fill(row, result) {
          const times = [...result.times].sort((a, b) => a - b);
          const figures = [result.opened, times[Math.floor(times.length / 2)], times[0], times[times.length - 1]];
          row.cells[1].textContent = "works";
          row.cells[1].className = "works";
          figures.forEach((figure, place) => { row.cells[2 + place].textContent = milliseconds(figure); });
        }

        async function run() {
          const table = document.querySelector("table");
          const button = document.getElementById("again");
          const sum = document.getElementById("sum");
          table.dataset.state = "running";
          button.disabled = true;
          sum.textContent = "";
          const body = table.tBodies[0];
          body.replaceChildren();
          const rows = ways.map(([name]) => {
            const row = body.insertRow();
            for (let place = 0; place < 6; place += 1) row.insertCell().className = place > 1 ? "number" : "";
            row.cells[0].textContent = name;
            row.cells[1].textContent = "waiting";
            return row;
          });
          let works = 0;
          for (const [place, [, open]] of ways.entries()) {
            rows[place].cells[1].textContent = "running";
            try {
              fill(rows[place], await measure(open));
              works += 1;
            } catch (error) {
              rows[place].cells[1].textContent = "failed: " + error.message;
              rows[place].cells[1].className = "failed";
            }
          }
          sum.textContent = works + " of " + ways.length + " transports work.";
          table.dataset.state = "done";
          button.disabled = false;
        }

        document.querySelectorAll(".origin").forEach((span) => { span.textContent = location.origin; });
        document.querySelectorAll(".socket").forEach((span) => { span.textContent = wsOrigin; });
        document.getElementById("again").addEventListener("click", run);
        run();

        """#
}
