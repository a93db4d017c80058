import Glibc
import Testing
import ThicketProcesses

/// The page at `/`, in a real browser.
@Suite("The page in a browser")
struct BrowserTests {
    private let folder: TemporaryFolder = .init("page")

    /// Where the picture of the page is kept, for people to look at.
    private static let artifacts: String =
        "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/") + "/.work"

    @Test(
        "a browser reaches the server in all seven ways, and the page keeps its own policy",
        .enabled(if: Browser.isThere, "chromium is missing: ./dev setup --tests"))
    func page() throws {
        let server: Daemon = try .init(folder: folder.path)
        let browser: Browser = try .init()
        try browser.open("http://127.0.0.1:\(server.port)/")
        let isDone: Bool? = Steady.waitFor {
            let state: String? = try? browser.evaluate("document.querySelector('table')?.dataset.state")
            return state == "done" ? true : nil
        }
        #expect(isDone == true)
        let rows: String = try browser.evaluate(
            "[...document.querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell => cell.textContent)"
                + ".join('|')).join('\\n')")
        let lines: [[Substring]] = rows.split(separator: "\n").map { $0.split(separator: "|") }
        #expect(
            lines.map { $0[0] } == [
                "WebSocket", "SockJS websocket", "SockJS xhr-streaming", "SockJS eventsource", "SockJS htmlfile",
                "SockJS xhr-polling", "SockJS jsonp-polling",
            ])
        for line: [Substring] in lines {
            #expect(line.count == 6 && line[1] == "works", "\(line)")
            #expect(line.dropFirst(2).allSatisfy { $0.hasSuffix(" ms") }, "\(line)")
        }
        #expect(try browser.evaluate("document.getElementById('sum').textContent") == "7 of 7 transports work.")
        #expect(try browser.evaluate("document.title").hasPrefix("Thicket 0."))
        #expect(
            try browser.evaluate("document.querySelector('.socket').textContent") == "ws://127.0.0.1:\(server.port)")
        try keep(try browser.picture())
        // The policy forbids what stands in the page itself.
        _ = try browser.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"hacked=1\">')")
        let forbidden: Bool? = Steady.waitFor {
            _ = try? browser.evaluate("1")
            return browser.errors.contains { $0.contains("Content Security Policy") } ? true : nil
        }
        #expect(forbidden == true)
        #expect(try browser.evaluate("typeof hacked") == "undefined")
        let others: [String] = browser.errors.filter { !$0.contains("onerror") && !$0.contains("/x\"") }
        #expect(others.filter { !$0.contains("Content Security Policy") }.isEmpty, "\(others)")
        try browser.close()
        #expect(try server.terminate().code == 0)
    }

    private func keep(_ picture: [UInt8]) throws {
        #expect(picture.starts(with: [0x89, 0x50, 0x4E, 0x47]) && picture.count > 5_000)
        mkdir(Self.artifacts, 0o755)
        guard let file: UnsafeMutablePointer<FILE> = fopen("\(Self.artifacts)/page.png", "w") else { return }
        fwrite(picture, 1, picture.count, file)
        fclose(file)
    }
}
