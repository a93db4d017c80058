import Testing
import ThicketServer
import ThicketTestServer
import ThicketTestSupport

@testable import ThicketClient

@Suite("HTTP connections that are kept")
struct HTTPPoolTests {
    @Test("a client that keeps its connection uses it for each request, and another client makes one for each")
    func reuse() async throws {
        let bench = try TransportBench()
        let address = "http://127.0.0.1:\(bench.server.port)/health/live"
        // On a loaded machine the server may close a kept connection that waited too long for the next request.
        for (keeps, expected) in [(true, 1...4), (false, 5...5)] {
            let http = try HTTPClient(keepsConnection: keeps)
            for _ in 0..<5 { #expect(try await http.request(address).status == 200) }
            #expect(expected.contains(await http.connectionsMade))
        }
        bench.server.abort()
    }

    @Test("options of one request are not those of the next on its connection: method, body and fields")
    func separate() async throws {
        let bench = try TransportBench()
        let address = "http://127.0.0.1:\(bench.server.port)"
        let http = try HTTPClient(keepsConnection: true)
        let posted = try await http.request(address + "/1/app/nothing", fields: ["X-One: 1"], body: [1, 2, 3])
        let deleted = try await http.request(address + "/health/live", method: "DELETE")
        #expect(posted.status >= 400 && deleted.status >= 400)
        #expect(try await http.request(address + "/health/live").status == 200)
        bench.server.abort()
    }

    @Test("100 requests at one time go over at most three connections, and all are answered")
    func pool() async throws {
        let bench = try TransportBench()
        let address = "http://127.0.0.1:\(bench.server.port)/health/live"
        let pool = HTTPPool()
        let answered = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    let answer = try? await pool.request(
                        address, method: nil, fields: [], body: nil, timeoutSeconds: 30)
                    return answer?.status == 200
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(answered == 100)
        let connections = await pool.connectionsMade
        #expect((1...HTTPPool.clientsMax).contains(connections), "\(connections)")
        bench.server.abort()
    }

    @Test("a request after the server closed the kept connection is answered over a new one")
    func closed() async throws {
        let bench = try TransportBench()
        let port = bench.server.port
        let http = try HTTPClient(keepsConnection: true)
        let address = "http://127.0.0.1:\(port)/health/live"
        #expect(try await http.request(address).status == 200)
        let once = try await http.request(address, fields: ["Connection: close"])
        #expect(once.status == 200)
        #expect(try await http.request(address).status == 200)
        #expect((2...3).contains(await http.connectionsMade))
        bench.server.abort()
    }
}
