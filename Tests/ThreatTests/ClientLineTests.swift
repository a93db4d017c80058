import Testing
import ThicketClient
import ThicketCrypto
import ThicketOnions
import ThicketPlatform
import ThicketProcesses
import ThicketProtocol
import ThicketThreats

/// T1: every byte between the client library and a real server, both ways.
@Suite("Bytes between client and server", .serialized, .timeLimit(.minutes(10)))
struct ClientLineTests {
    /// A recording, ready to be searched.
    private struct Recording {
        /// Raw bytes of each direction, and payloads of WebSockets without masks.
        var places = [(name: String, bytes: [UInt8])]()
        var sockets = 0

        init(_ proxy: RecordingProxy) throws {
            try proxy.quiet()
            proxy.stop()
            for (number, line) in proxy.lines.enumerated() {
                let (up, down) = line.read
                places.append(("connection \(number), to the server", line.up))
                places.append(("connection \(number), to the client", line.down))
                for (way, read) in [("to the server", up), ("to the client", down)] {
                    // Nothing is compressed that the search would have to unpack message by message, and no body is
                    // chunked, because the head of a chunk could split a canary.
                    for word in ["sec-websocket-extensions", "content-encoding", "transfer-encoding"] {
                        #expect(!read.text.contains(word), "\(way): \(word)")
                    }
                    #expect(read.reserved == 0 && read.rest == 0)
                    if read.isWebSocket { places.append(("WebSocket \(number), \(way)", read.payload)) }
                }
                sockets += up.isWebSocket ? 1 : 0
            }
        }

        func holds(_ text: String) -> Bool {
            let search = CanarySearch([Canary("it", text)])
            return places.contains { search.found(in: $0.bytes).values.contains("as it is") }
        }
    }

    @Test(
        "T1: a sealed account sends sealed forms, but no object name, text, password, key or word in any spelling"
    )
    func sealedBucket() async throws {
        let house = try ThreatHouse("line-sealed")
        let proxy = try RecordingProxy(to: house.port)
        let run = try SealedRun(house, port: proxy.port)
        try await run.live()
        let recording = try Recording(proxy)
        #expect(recording.sockets >= 2 && run.texts.count > 9 && run.canaries.count > 25)
        for (name, text) in run.sent { #expect(recording.holds(text), "\(name) was not recorded") }
        let hunt = CanaryHunt(
            run.canaries + run.texts.map { Canary($0.name, $0.secret) }, hashed: run.texts)
        for (name, bytes) in recording.places {
            let found = hunt.findings(in: bytes, place: name)
            #expect(found.isEmpty, "\(found)")
        }
    }

    @Test(
        "T1: encrypted notes send no user name, password, title, text or round of the stretch except the last"
    )
    func notes() async throws {
        let house = try ThreatHouse("line-notes")
        let proxy = try RecordingProxy(to: house.port)
        let run = try NotesRun(house, port: proxy.port)
        try await run.live()
        let recording = try Recording(proxy)
        #expect(recording.sockets >= 2 && run.texts.count == 9)
        for (name, text) in run.sent { #expect(recording.holds(text), "\(name) was not recorded") }
        let hunt = CanaryHunt(run.texts.map { Canary($0.name, $0.secret) }, hashed: run.texts)
        for (name, bytes) in recording.places {
            let found = hunt.findings(in: bytes, place: name)
            #expect(found.isEmpty, "\(found)")
        }
    }

    // MARK: - Counterproof

    /// Spellings in which a secret might be sent.
    private static func leaks(_ secret: String) throws -> [(name: String, bytes: [UInt8])] {
        let plain: [UInt8] = Array(secret.utf8)
        let wide: [UInt8] = plain.flatMap { [$0, 0] }
        var leaks: [(String, [UInt8])] = [
            ("plain", plain), ("UTF-16, little-endian", wide), ("UTF-16, big-endian", plain.flatMap { [0, $0] }),
            ("reversed", plain.reversed()), ("base64 of UTF-16", Array(Base64.encode(wide).utf8)),
            ("percent", plain.flatMap { Array(("%" + Hex.encode([$0])).utf8) }),
            ("JSON", plain.flatMap { Array(("\\u00" + Hex.encode([$0])).utf8) }),
        ]
        for shift in 0..<3 {
            let around: [UInt8] = [UInt8](repeating: 33, count: shift) + plain + [33]
            leaks.append(("base64 \(shift)", Array(Base64.encode(around).utf8)))
            leaks.append(("base64url \(shift)", Array(Base64.encodeURL(around).utf8)))
            leaks.append(("hex \(shift)", Array(Hex.encode(around).utf8)))
            leaks.append(("upper hex \(shift)", Array(Hex.encode(around).uppercased().utf8)))
        }
        for shift in 0..<5 {
            let text = Base32.encode([UInt8](repeating: 33, count: shift) + plain)
            leaks += [("base32 \(shift)", Array(text.utf8)), ("upper base32 \(shift)", Array(text.uppercased().utf8))]
        }
        for wrapping in Inflated.Wrapping.allCases {
            for level: Int32 in [0, 1, 9] {
                let packed: [UInt8] = Inflated.deflated(
                    Array("so here it is: \(secret), it is".utf8), wrapping, level: level)
                leaks.append(("deflated \(wrapping) \(level)", [7] + packed))
                leaks.append(
                    ("deflated \(wrapping) \(level), base64", Array(("{\"x\":\"" + Base64.encode(packed)).utf8)))
            }
            leaks.append(("deflated alone \(wrapping)", Inflated.deflated(plain, wrapping)))
        }
        for rounds: Int in [1, 2, 7_000, 14_999] {
            var value: [UInt8] = plain
            for _ in 0..<rounds { value = Hash.sha256(value) }
            leaks += [
                ("\(rounds) rounds", value), ("\(rounds) rounds in hex", Array(Hex.encode(value).utf8)),
                ("\(rounds) rounds in base64", Array(("a" + Base64.encode(value)).utf8)),
                ("\(rounds) rounds in base64url", Array(Base64.encodeURL([1] + value).utf8)),
                ("\(rounds) rounds, reversed", value.reversed()),
                ("\(rounds) rounds in base32", Array(Base32.encode(value).utf8)),
                // As long as the names of sealed objects.
                ("the beginning of \(rounds) rounds", Array(Base32.encode(Array(value.prefix(20))).utf8)),
            ]
        }
        return leaks
    }

    @Test(
        "T1: a secret sent on purpose is found in the recording, in each spelling, also behind a WebSocket's mask"
    )
    func counterproof() throws {
        let house = try ThreatHouse("line-leak")
        let proxy = try RecordingProxy(to: house.port)
        let secret = "canary-\(RandomBytes.hex(12))"
        let leaks = try Self.leaks(secret)
        for leak in leaks {
            let caller = try Caller(port: proxy.port)
            let head =
                "POST /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: \(leak.bytes.count)\r\n\r\n"
            try caller.send(Array(head.utf8) + leak.bytes)
            _ = try caller.reply()
        }
        // One WebSocket, whose frames are masked by four bytes each.
        do {
            let socket = try WireSocket(port: proxy.port, app: ThreatHouse.app)
            socket.send(#"0:init:{"clientid":"c","api":"1.1","token":"\#(secret)","app_id":"notes","name":"b"}"#)
            _ = try socket.next { $0 }
        }
        try proxy.quiet()
        proxy.stop()
        let hunt = CanaryHunt([Canary("it", secret)], hashed: [("it", secret)])
        let lines = proxy.lines
        try #require(lines.count == leaks.count + 1)
        for (leak, line) in zip(leaks, lines) {
            #expect(!hunt.findings(in: line.up, place: "the line").isEmpty, "\(leak.name) was not found")
            #expect(hunt.findings(in: line.down, place: "the answer").isEmpty, "the answer has no secret")
        }
        let masked = lines[leaks.count].read
        #expect(masked.up.isWebSocket && masked.up.frames >= 1)
        #expect(!hunt.findings(in: masked.up.payload, place: "the WebSocket").isEmpty)
        #expect(hunt.findings(in: lines[leaks.count].up, place: "the masked line").isEmpty, "the mask hides it")
    }

    @Test("T1: an innocent line has no finding: one round more than 14,999, another canary, its halves")
    func innocent() {
        let secret = "canary-\(RandomBytes.hex(12))"
        let hunt = CanaryHunt([Canary("it", secret)], hashed: [("it", secret)])
        var value: [UInt8] = Array(secret.utf8)
        for _ in 0..<15_000 { value = Hash.sha256(value) }
        let halves: [UInt8] = Array(secret.utf8.prefix(15)) + [0] + Array(secret.utf8.dropFirst(15))
        let others: [[UInt8]] = [
            value, Array(Base64.encode(value).utf8), halves, Array("canary-\(RandomBytes.hex(12))".utf8),
            RandomBytes.make(20_000), [], [0],
        ]
        for other in others { #expect(hunt.findings(in: other, place: "it").isEmpty) }
    }

    /// One run in a hundred has such a canary: zeros, of which each memory and each database is full, were reported.
    @Test("zeros are not a finding, though a round of SHA-256 of the canary begins with three of them")
    func zeros() {
        let secret = "canary294"
        var value: [UInt8] = Array(secret.utf8)
        for _ in 0..<4_917 { value = Hash.sha256(value) }
        #expect(value.prefix(3) == [0, 0, 0])
        let hunt = CanaryHunt([Canary("it", secret)], hashed: [("it", secret)])
        #expect(!hunt.findings(in: [7] + value + [7], place: "it").isEmpty)
        #expect(hunt.findings(in: .init(repeating: 0, count: 64), place: "it").isEmpty)
    }
}
