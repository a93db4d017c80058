import Glibc
import Testing
import ThicketProcesses

/// The page at `/`, in a real browser.
@Suite("The page in a browser")
struct BrowserTests {
    private let folder = TemporaryFolder("page")

    /// The folder for the picture of the page.
    private static let artifacts =
        "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/") + "/.work"

    @Test(
        "a browser reaches the server by all seven transports, and the page keeps its own policy",
        .enabled(if: Browser.isThere, "chromium is missing: ./dev setup --tests"))
    func page() throws {
        let server = try Daemon(folder: folder.path)
        let browser = try Browser()
        try browser.open("http://127.0.0.1:\(server.port)/")
        let isDone = Steady.waitFor {
            let state = try? browser.evaluate("document.querySelector('table')?.dataset.state")
            return state == "done" ? true : nil
        }
        #expect(isDone == true)
        let rows = try browser.evaluate(
            "[...document.querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell => cell.textContent)"
                + ".join('|')).join('\\n')")
        let lines: [[Substring]] = rows.split(separator: "\n").map { $0.split(separator: "|") }
        #expect(
            lines.map { $0[0] } == [
                "WebSocket", "SockJS websocket", "SockJS xhr-streaming", "SockJS eventsource", "SockJS htmlfile",
                "SockJS xhr-polling", "SockJS jsonp-polling",
            ])
        for line in lines {
            #expect(line.count == 6 && line[1] == "works", "\(line)")
            #expect(line.dropFirst(2).allSatisfy { $0.hasSuffix(" ms") }, "\(line)")
        }
        #expect(try browser.evaluate("document.getElementById('sum').textContent") == "7 of 7 transports work.")
        #expect(try browser.evaluate("document.title").hasPrefix("Thicket 0."))
        #expect(
            try browser.evaluate("document.querySelector('.socket').textContent") == "ws://127.0.0.1:\(server.port)")
        try keep(try browser.picture())
        // The policy forbids code in the page itself.
        _ = try browser.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"hacked=1\">')")
        let forbidden = Steady.waitFor {
            _ = try? browser.evaluate("1")
            return browser.errors.contains { $0.contains("Content Security Policy") } ? true : nil
        }
        #expect(forbidden == true)
        #expect(try browser.evaluate("typeof hacked") == "undefined")
        let others = browser.errors.filter { !$0.contains("onerror") && !$0.contains("/x\"") }
        #expect(others.filter { !$0.contains("Content Security Policy") }.isEmpty, "\(others)")
        try browser.close()
        #expect(try server.terminate().code == 0)
    }

    private func keep(_ picture: [UInt8]) throws {
        #expect(picture.starts(with: [0x89, 0x50, 0x4E, 0x47]) && picture.count > 5_000)
        mkdir(Self.artifacts, 0o755)
        guard let file = fopen("\(Self.artifacts)/page.png", "w") else { return }
        fwrite(picture, 1, picture.count, file)
        fclose(file)
    }
}
