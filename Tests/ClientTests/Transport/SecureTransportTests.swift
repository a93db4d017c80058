import Testing
import ThicketClient
import ThicketProtocol
import ThicketProcesses
import ThicketServer
import ThicketTestServer

/// TLS by libcurl: trusted and untrusted servers, and no loss in records that are half sent.
@Suite(
    "TLS", .timeLimit(.minutes(15)),
    .enabled(if: TransportBench.hasOpenSSL, "the command openssl is missing: apt install openssl"))
struct SecureTransportTests {
    @Test("a server with a named authority is trusted, and large objects go both ways")
    func trusted() async throws {
        let bench = try TransportBench()
        let authority = try bench.authority("ours")
        let proxy = try bench.secured(
            by: "ours", for: "IP:127.0.0.1")
        let (session, notes) = try await bench.session(
            "https://127.0.0.1:\(proxy.port)", certificates: authority)
        try await bench.roundTrip(session, notes)
        await session.close()
        bench.server.abort()
    }

    @Test(
        "an unknown authority is refused with the word certificate, before a byte reaches the server"
    )
    func unknownAuthority() async throws {
        let bench = try TransportBench()
        _ = try bench.authority("theirs")
        let other = try bench.authority("ours")
        let proxy = try bench.secured(
            by: "theirs", for: "IP:127.0.0.1")
        // The system's authorities, and one of our own that did not sign this.
        for certificates in [nil, other] {
            let (session, notes) = try await bench.session(
                "https://127.0.0.1:\(proxy.port)", certificates: certificates)
            let reason = try await TransportBench.reason(session)
            #expect(reason.contains("certificate"), "\(reason)")
            try await notes.set("kept", to: ["n": 1])
            #expect(try await notes.pendingCount == 1)
            await session.close()
        }
        #expect(bench.server.metrics.net.receivedBytes.value == 0)
        bench.server.abort()
    }

    @Test(
        "a certificate for another host is refused, with the host named, though its authority is trusted"
    )
    func wrongHost() async throws {
        let bench = try TransportBench()
        let authority = try bench.authority("ours")
        let proxy = try bench.secured(
            by: "ours", for: "DNS:other.example")
        let (session, _) = try await bench.session(
            "https://127.0.0.1:\(proxy.port)", certificates: authority)
        let reason = try await TransportBench.reason(session)
        #expect(reason.contains("certificate") && reason.contains("127.0.0.1"), "\(reason)")
        await session.close()
        #expect(bench.server.metrics.net.receivedBytes.value == 0)
        bench.server.abort()
    }

    @Test("a missing file of certificates is an error that names it")
    func missingFile() async throws {
        let bench = try TransportBench()
        _ = try bench.authority("ours")
        let proxy = try bench.secured(
            by: "ours", for: "IP:127.0.0.1")
        let (session, _) = try await bench.session(
            "https://127.0.0.1:\(proxy.port)", certificates: bench.folder.path + "/none.pem")
        let reason = try await TransportBench.reason(session)
        #expect(reason.contains("none.pem"), "\(reason)")
        await session.close()
        bench.server.abort()
    }

    @Test(
        "TLS records sent in pieces while more edits are made arrive complete on one connection"
    )
    func pieces() async throws {
        let bench = try TransportBench()
        let authority = try bench.authority("ours")
        let proxy = try bench.secured(
            by: "ours", for: "IP:127.0.0.1")
        let relay = try SlowRelay(to: proxy.port)
        defer { relay.stop() }
        relay.allow(up: .max / 2, down: .max / 2)
        let bucket = try BucketName("notes")
        let client = try SteppedClient(relay, seed: 3, certificates: authority)
        try client.open(bucket)
        try client.play(up: 0, down: 0) { $0.isSynced(bucket) }
        // From here on the uplink is narrow: the socket accepts a part and then would block.
        relay.restrict(up: 0)
        let text = String(repeating: "abcdefghij", count: 25_000)
        for number in 0..<10 {
            try client.set(bucket, "k\(number)", "\(number) " + text)
            relay.allow(up: 10_000 * (number + 1), down: 0)
            try client.playUntilUsed()
        }
        relay.allow(up: .max / 2, down: 0)
        try client.play(up: 0, down: 0) { $0.isSynced(bucket) }
        #expect(relay.connectionCount == 1 && client.hangUps == 0)
        let (plain, copy) = try await bench.session("http://127.0.0.1:\(bench.server.port)")
        try await copy.waitUntilSynced(timeout: .seconds(300))
        for number in 0..<10 {
            #expect(try await copy.get("k\(number)") == ["t": .string("\(number) " + text)])
        }
        client.close()
        await plain.close()
        bench.server.abort()
    }
}
