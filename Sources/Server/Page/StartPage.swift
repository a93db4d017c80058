import ThicketProtocol

/// The page at `/`: it describes the server and tests every transport from the browser that shows it.
///
/// It needs no token: the test sends heartbeats, which the server answers before a channel is authorized.
enum StartPage {
    /// A file of the page, by its path.
    enum Part: String {
        case html = "/"
        case style = "/page.css"
        case script = "/page.js"
        case icon = "/page.svg"

        var response: HTTPResponse {
            switch self {
            case .html: StartPage.response("text/html; charset=utf-8", StartPage.html)
            case .style: StartPage.response("text/css; charset=utf-8", StartPage.style)
            case .script: StartPage.response("text/javascript; charset=utf-8", StartPage.script)
            case .icon: StartPage.response("image/svg+xml", StartPage.icon)
            }
        }
    }

    /// Allows only this server's own files: no inline scripts, no scripts from other servers, no frame around the page.
    static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        + "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

    private static func response(_ type: String, _ text: String) -> HTTPResponse {
        HTTPResponse(
            status: 200,
            fields: [
                .init("content-type", type), .init("content-security-policy", policy),
                .init("x-content-type-options", "nosniff"), .init("referrer-policy", "no-referrer"),
                .init("cross-origin-opener-policy", "same-origin"), .init("cache-control", "no-cache"),
            ], body: Array(text.utf8))
    }

    private static let html = """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>Thicket \(ThicketServer.version)</title>
        <link rel="icon" href="/page.svg">
        <link rel="stylesheet" href="/page.css">
        <script src="/page.js" defer></script>
        </head>
        <body>
        <main>
        <h1><img src="/page.svg" width="36" height="36" alt=""> Thicket <small>\(ThicketServer.version)</small></h1>
        <p>A sync server. Apps keep their objects here: notes, lists, settings, the same on every device of a user. It speaks
        the Simperium streaming protocol, over WebSocket, SockJS and HTTP.</p>
        <dl>
        <dt>WebSocket</dt><dd><code><span class="socket">ws://HOST</span>/sock/1/APP/websocket</code></dd>
        <dt>SockJS</dt><dd><code><span class="origin">http://HOST</span>/sock/1/APP</code></dd>
        <dt>HTTP</dt><dd><code><span class="origin">http://HOST</span>/1/APP/BUCKET/i/KEY</code></dd>
        </dl>
        <h2 id="ways">Every transport from this browser</h2>
        <p>Each row opens one connection and sends ten heartbeats, one after the other; the times are round trips.</p>
        <table aria-labelledby="ways">
        <thead><tr><th scope="col">transport</th><th scope="col">state</th><th scope="col" class="number">open</th>
        <th scope="col" class="number">median</th><th scope="col" class="number">fastest</th>
        <th scope="col" class="number">slowest</th></tr></thead>
        <tbody></tbody>
        </table>
        <p><button type="button" id="again" disabled>Test again</button> <output id="sum" aria-live="polite"></output></p>
        <noscript><p>The test needs JavaScript.</p></noscript>
        </main>
        </body>
        </html>

        """

    private static let icon = """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 36 36"><rect width="36" height="36" rx="8" fill="#1f6f4a"/>\
        <path d="M18 30V12M18 24l-8-8M18 20l8-8M18 14l-5-6M18 15l6-9" fill="none" stroke="#fff" stroke-width="2.6" \
        stroke-linecap="round"/></svg>

        """

    private static let style = """
        :root { color-scheme: light dark; --line: #8884; --good: #1f6f4a; --bad: #b3261e; }
        @media (prefers-color-scheme: dark) { :root { --good: #7fd0a6; --bad: #ff8a80; } }
        body { font: 16px/1.5 system-ui, sans-serif; margin: 0; }
        main { max-width: 46rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
        h1 { display: flex; align-items: center; gap: .6rem; font-size: 1.9rem; margin: 0 0 .5rem; }
        h1 small { font-size: 1rem; font-weight: 400; opacity: .7; align-self: end; padding-bottom: .35rem; }
        h2 { font-size: 1.2rem; margin: 2rem 0 .25rem; }
        dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
        dd { margin: 0; overflow-x: auto; }
        code { font: .92em ui-monospace, monospace; }
        table { border-collapse: collapse; width: 100%; }
        th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line); }
        th { font-weight: 600; }
        .number { text-align: right; font-variant-numeric: tabular-nums; }
        .works { color: var(--good); } .failed { color: var(--bad); }
        button { font: inherit; padding: .35rem .9rem; }
        iframe { display: none; }

        """
}
