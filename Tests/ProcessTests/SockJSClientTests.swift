import Glibc
import Testing
import ThicketBlocking
import ThicketProcesses

/// The published client library of SockJS, as Debian packages it, in a real browser against a real server.
@Suite("sockjs-client in a browser", .blocking)
struct SockJSClientTests {
    /// The path in Debian's package `node-sockjs-client`.
    private static let library = "/usr/share/nodejs/sockjs-client/dist/sockjs.js"
    /// Transports from a page of the server's own origin.
    private static let own = [
        "websocket", "xhr-streaming", "eventsource", "htmlfile", "xhr-polling", "jsonp-polling",
    ]
    /// Transports from another origin: `htmlfile` needs a frame of the server's origin there, others may use it.
    private static let foreign = [
        "websocket", "xhr-streaming", "eventsource", "iframe-eventsource", "iframe-htmlfile", "xhr-polling",
        "iframe-xhr-polling", "jsonp-polling",
    ]

    private let folder = TemporaryFolder("sockjs-client")

    /// Serves a page with the library, from another origin than the server's, as a separate app would.
    private final class PageServer {
        let process: ChildProcess
        let port: Int

        init(_ folder: String) throws {
            process = try ChildProcess(
                [
                    "/usr/bin/python3", "-u", "-c",
                    """
                    import http.server, functools
                    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory='\(folder)')
                    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
                    print(server.server_address[1])
                    server.serve_forever()
                    """,
                ])
            port = Int(try process.firstLine()) ?? 0
        }
    }

    @Test(
        "sockjs-client syncs a change by each of its transports, from the server's own origin and from another",
        .enabled(
            if: Browser.isThere && access(library, R_OK) == 0,
            "chromium or node-sockjs-client is missing: ./dev setup --tests"))
    func transports() throws {
        let token = try Daemon.token(folder.path, app: "notes", user: "ann@example.com")
        let site = TemporaryFolder("sockjs-site")
        try expectDone("cp '\(Self.library)' '\(site.path)/sockjs.js'")
        let pages = try PageServer(site.path)
        defer { pages.process.signal(SIGKILL) }
        let origin = "http://127.0.0.1:\(pages.port)"
        // By default the page in a frame has the library from this machine, and nothing from elsewhere.
        let server = try Daemon(folder: folder.path)
        try expectDone("cat > '\(site.path)/index.html'", input: "<!DOCTYPE html><title>another origin</title>")
        try expectDone("cat > '\(site.path)/run.js'", input: Self.script(port: Int(server.port), token: token))
        let browser = try Browser()
        for (page, transports) in [
            ("http://127.0.0.1:\(server.port)/health/live", Self.own), ("\(origin)/index.html", Self.foreign),
        ] {
            let lines = try run(transports, in: browser, page, origin)
            #expect(lines == transports.map { "\($0): \($0) works" }, "\(page)")
        }
        try browser.close()
        #expect(try server.terminate().code == 0)
    }

    /// Loads library and script into a page and lets it open each transport.
    private func run(_ transports: [String], in browser: Browser, _ page: String, _ origin: String) throws -> [String] {
        try browser.open(page)
        let isThere = Steady.waitFor {
            let state = try? browser.evaluate("location.href + ' ' + document.readyState")
            return state == "\(page) complete" ? true : nil
        }
        guard isThere == true else { throw ProcessError("\(page) was not shown") }
        for file in ["sockjs.js", "run.js"] {
            _ = try browser.evaluate(
                "void document.head.appendChild(Object.assign(document.createElement('script'), {src: '\(origin)/\(file)'}))"
            )
            let name = file == "run.js" ? "runAll" : "SockJS"
            let isLoaded = Steady.waitFor {
                (try? browser.evaluate("typeof \(name)")) == "function" ? true : nil
            }
            guard isLoaded == true else { throw ProcessError("\(file) was not loaded: \(browser.errors)") }
        }
        _ = try browser.evaluate("void runAll(\(transports))")
        let result = Steady.waitFor(seconds: 90) {
            let text = try? browser.evaluate("window.result || ''")
            return text?.isEmpty == false ? text : nil
        }
        return (result ?? "nothing").split(separator: "\n").map(String.init)
    }

    private func expectDone(_ command: String, input: String = "") throws {
        #expect(try ChildProcess.run(["/bin/bash", "-c", command], input: input).code == 0, "\(command)")
    }

    /// `runAll(transports)` opens each alone, authorizes, makes a change and waits for its acknowledgement, and closes.
    private static func script(port: Int, token: String) -> String {
        """
        function run(transport, number) {
          return new Promise(done => {
            const id = transport + number, text = 'é漢😀\\u2028';
            const socket = new SockJS('http://127.0.0.1:\(port)/sock/1/notes', null, {transports: [transport], timeout: 10000});
            const end = text => { clearTimeout(timer); socket.onclose = null; socket.close(); done(transport + ': ' + text); };
            const timer = setTimeout(() => end('timed out'), 15000);
            socket.onopen = () => socket.send('0:init:' + JSON.stringify({clientid: id, api: '1.1',
              token: '\(token)', app_id: 'notes', name: 'b', library: 'sockjs-client'}));
            socket.onmessage = event => {
              if (event.data === '0:auth:ann@example.com') {
                socket.send('0:c:' + JSON.stringify({id, o: 'M', ccid: 'c' + id, v: {t: {o: '+', v: text}}}));
              } else if (event.data.startsWith('0:c:')) {
                if (event.data.includes('"c' + id + '"') && event.data.includes(text)) end(socket.transport + ' works');
              } else { end('got ' + event.data); }
            };
            socket.onclose = event => end('closed ' + event.code + ' ' + event.reason);
          });
        }
        let runs = Date.now();
        async function runAll(transports) {
          const lines = [];
          for (const transport of transports) lines.push(await run(transport, runs++));
          window.result = lines.join('\\n');
        }
        """
    }
}
