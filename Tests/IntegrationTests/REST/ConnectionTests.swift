import Testing
import ThicketProtocol
import ThicketServer
import ThicketTestServer

/// HTTP/1.1 under the data API: one connection, many requests.
@Suite("REST connections")
struct ConnectionTests {
    @Test("requests sent in one go are answered in their order, whether at once or later")
    func pipelined() throws {
        try withServer { server in
            let http = try server.http()
            try http.send("POST", "notes/i/a?response=1", body: #"{"n":1}"#)
            try http.send("GET", "notes/nothing")
            try http.send("GET", "notes/i/a")
            try http.send("DELETE", "notes/i/a")
            try http.send("GET", "notes/index")
            try http.send("OPTIONS", "notes/i/a")
            try http.send("GET", "user")
            let answers = try (0..<7).map { _ in try http.receive() }
            #expect(answers.map(\.status) == [200, 404, 200, 200, 200, 204, 200])
            #expect(answers[0].body == #"{"n":1}"# && answers[2].body == #"{"n":1}"# && answers[3].version == 2)
            #expect(answers[6].body.contains("ann@example.com"))
        }
    }

    @Test("a request behind one that waits is answered after it")
    func behindAWait() throws {
        try withServer { server in
            let http = try server.http()
            try http.send("GET", "notes/changes")
            try http.send("GET", "user")
            #expect(waitUntil { server.metrics.restWaiters.value == 1 })
            _ = try server.http().ask("POST", "notes/i/a?ccid=c1", body: "{}")
            #expect(try http.receive().body.ccids == ["c1"])
            #expect(try http.receive().body.contains("ann@example.com"))
        }
    }

    @Test("a client that expects 100-continue gets 100 before it sends its body")
    func expectation() throws {
        try withServer { server in
            let http = try server.http()
            try http.send(
                raw: "POST /1/app/notes/i/a HTTP/1.1\r\nhost: x\r\nx-simperium-token: ann-token\r\n"
                    + "content-length: 7\r\nexpect: 100-continue\r\n\r\n")
            #expect(try http.receive().status == 100)
            try http.send(raw: #"{"n":1}"#)
            #expect(try http.receive().version == 1)
            #expect(try http.ask("GET", "notes/i/a").body == #"{"n":1}"#)
        }
    }

    @Test("a body in chunks is one body, and no answer is compressed")
    func chunks() throws {
        try withServer { server in
            let http = try server.http()
            try http.send(
                raw: "POST /1/app/notes/i/a HTTP/1.1\r\nhost: x\r\nx-simperium-token: ann-token\r\n"
                    + "transfer-encoding: chunked\r\n\r\n3\r\n{\"n\r\n4\r\n\":1}\r\n0\r\n\r\n")
            #expect(try http.receive().version == 1)
            let read = try http.ask("GET", "notes/i/a", fields: [("accept-encoding", "gzip")])
            #expect(read.body == #"{"n":1}"# && read.fields["content-encoding"] == nil)
        }
    }

    @Test("a page of a listed origin may read answers and errors")
    func cors() throws {
        try withServer(origins: "https://a.example") { server in
            let http = try server.http()
            let origin = [("origin", "https://a.example")]
            for (path, status) in [("user", 200), ("notes/i/none", 404), ("notes/nothing", 404)] {
                let answer = try http.ask("GET", path, fields: origin)
                #expect(answer.status == status)
                #expect(answer.fields["access-control-allow-origin"] == "https://a.example", "\(path)")
                #expect(answer.fields["access-control-expose-headers"]?.contains("X-Simperium-Version") == true)
            }
            let other = try http.ask("GET", "user", fields: [("origin", "https://b.example")])
            #expect(other.status == 200 && other.fields["access-control-allow-origin"] == nil)
        }
    }

    @Test("many connections at once lose no change and mix up no answer")
    func crowd() throws {
        try withServer { server in
            let port = server.port
            let sums = try inParallel(8) { (number: Int) in
                let http = try TestHTTP(port: port)
                var good = 0
                for round in 1...25 {
                    let made = try http.ask(
                        "POST", "notes/i/k\(number)?response=1", body: "{\"r\(round)\":\(number)}")
                    let shared = try http.ask("POST", "notes/i/all", body: "{\"k\(number)\":\(round)}")
                    if made.version == round, made.body.contains("\"r\(round)\":\(number)"), shared.status == 200 {
                        good += 1
                    }
                }
                return good
            }
            #expect(sums == Array(repeating: 25, count: 8))
            let all = try server.http().ask("GET", "notes/i/all")
            #expect(all.version == 200)
            for number in 0..<8 { #expect(all.body.contains("\"k\(number)\":25")) }
        }
    }

    private func withServer(origins: String = "none", _ body: (TestServer) throws -> Void) throws {
        let server = try TestServer(store: try MemoryStore.forTests()) { $0.corsOrigins = origins }
        defer { server.stop() }
        try body(server)
    }
}
