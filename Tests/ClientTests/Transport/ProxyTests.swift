import Testing
import ThicketClient
import ThicketProcesses
import ThicketServer
import ThicketTestServer

/// HTTP proxies of another implementation between client and server.
@Suite("HTTP proxies", .timeLimit(.minutes(15)))
struct ProxyTests {
    @Test("a proxy is asked for a tunnel and nothing else, also without TLS")
    func tunnel() async throws {
        let bench = try TransportBench()
        let proxy = try TransportBench.proxy(["connect"])
        let (session, notes) = try await bench.session(
            "http://127.0.0.1:\(bench.server.port)", proxy: "http://127.0.0.1:\(proxy.port)")
        try await bench.roundTrip(session, notes)
        try proxy.process.wait(for: "CONNECT 127.0.0.1:\(bench.server.port) HTTP/1.1\nthrough")
        await session.close()
        bench.server.abort()
    }

    @Test(
        "TLS goes through the tunnel to the server, and the server's certificate is checked",
        .enabled(if: TransportBench.hasOpenSSL, "the command openssl is missing: apt install openssl"))
    func secureTunnel() async throws {
        let bench = try TransportBench()
        let authority = try bench.authority("ours")
        let secured = try bench.secured(
            by: "ours", for: "IP:127.0.0.1")
        let proxy = try TransportBench.proxy(["connect"])
        let (session, notes) = try await bench.session(
            "https://127.0.0.1:\(secured.port)", certificates: authority,
            proxy: "http://127.0.0.1:\(proxy.port)")
        try await bench.roundTrip(session, notes)
        try proxy.process.wait(for: "CONNECT 127.0.0.1:\(secured.port) HTTP/1.1\nthrough")
        try secured.process.wait(for: "secured")
        await session.close()
        bench.server.abort()
    }

    @Test(
        "a proxy gets the name and password of its address; wrong or missing ones are reported as 407"
    )
    func credentials() async throws {
        let bench = try TransportBench()
        let proxy = try TransportBench.proxy([
            "connect", "--user", "ann:se:cr@t",
        ])
        let address = "http://127.0.0.1:\(bench.server.port)"
        let (session, notes) = try await bench.session(
            address, proxy: "http://ann:se%3Acr%40t@127.0.0.1:\(proxy.port)")
        try await bench.roundTrip(session, notes)
        await session.close()
        for user in ["", "ann:wrong@"] {
            let (outsider, _) = try await bench.session(
                address, proxy: "http://\(user)127.0.0.1:\(proxy.port)")
            let reason = try await TransportBench.reason(outsider)
            #expect(
                reason.contains("proxy") && reason.contains("407") && reason.contains("password"),
                "\(reason)")
            #expect(!reason.contains("wrong"), "a password is not shown: \(reason)")
            await outsider.close()
        }
        bench.server.abort()
    }

    @Test(
        "a proxy that refuses (403, 502) or does not exist is named in the reason",
        arguments: [403, 502])
    func refusal(code: Int) async throws {
        let bench = try TransportBench()
        let proxy = try TransportBench.proxy([
            "connect", "--refuse", "\(code)",
        ])
        let address = "http://127.0.0.1:\(bench.server.port)"
        let (session, notes) = try await bench.session(address, proxy: "http://127.0.0.1:\(proxy.port)")
        let reason = try await TransportBench.reason(session)
        #expect(reason.contains("proxy") && reason.contains("\(code)"), "\(reason)")
        try await notes.set("kept", to: ["n": 1])
        #expect(try await notes.pendingCount == 1)
        await session.close()
        proxy.process.signal(9)
        _ = try proxy.process.finish()
        let (lonely, _) = try await bench.session(address, proxy: "http://127.0.0.1:\(proxy.port)")
        let gone = try await TransportBench.reason(lonely)
        #expect(gone.contains("\(proxy.port)"), "\(gone)")
        await lonely.close()
        #expect(bench.server.metrics.net.connectionsAccepted.value == 0)
        bench.server.abort()
    }
}
