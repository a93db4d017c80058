import Testing
@testable import ThicketNet
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

@Suite("WebSocket conformance, a server on loopback", .serialized)
struct LiveConformanceTests {
    private func serve() throws -> LoopThread {
        var settings = NetSettings()
        settings.messageBytesMax = WebSocketCase.messageBytesMax
        settings.acceptsBinary = true
        return try LoopThread(settings: settings) { EchoDelegate($0) }
    }

    /// Sends the client's bytes and collects the answers until the connection ends.
    private func play(_ pieces: [[UInt8]], closes: Bool, port: Int) throws -> [TestPeer.Answer] {
        let peer = try TestPeer(port: port)
        try peer.upgrade()
        // The server may have stopped reading: that a piece cannot be sent is not a fault of the case.
        for piece in pieces { try? peer.send(piece) }
        if closes { try? peer.send(RawClose.normal) }
        var answers: [TestPeer.Answer] = []
        while true {
            let answer: TestPeer.Answer = try peer.readAnswer()
            if answer == .end { return answers }
            answers.append(answer)
        }
    }

    @Test("every case is answered as RFC 6455 says, and the connection ends after a close")
    func asGiven() throws {
        let server: LoopThread = try serve()
        let port: Int = try server.port
        for each in WebSocketCase.all {
            var expected: [TestPeer.Answer] = each.answers.map(TestPeer.Answer.init)
            let isClosed: Bool = expected.last?.isClose ?? false
            if !isClosed { expected.append(.close(1000)) }
            let answers: [TestPeer.Answer] = try play(each.pieces, closes: !isClosed, port: port)
            #expect(answers == expected, "\(each)")
        }
        print("WebSocket conformance over a socket: \(WebSocketCase.all.count) cases")
        try server.stop()
    }

    @Test("a fault is answered before the rest of it arrives")
    func failFast() throws {
        let server: LoopThread = try serve()
        let port: Int = try server.port
        for each in WebSocketCase.all {
            guard let enough: Int = each.faultVisibleAfter else { continue }
            let answers: [TestPeer.Answer] = try play([Array(each.bytes[..<enough])], closes: false, port: port)
            #expect(answers == each.answers.map(TestPeer.Answer.init), "\(each)")
        }
        try server.stop()
    }
}

enum RawClose {
    /// A masked close frame with code 1000.
    static let normal: [UInt8] = [0x88, 0x82, 0, 0, 0, 0, 0x03, 0xE8]
}

extension TestPeer.Answer {
    init(_ answer: WebSocketCase.Answer) {
        self =
            switch answer {
            case .text(let bytes): .text(bytes)
            case .binary(let bytes): .binary(bytes)
            case .pong(let bytes): .pong(bytes)
            case .close(let code): .close(code)
            }
    }

    var isClose: Bool { if case .close = self { true } else { false } }
}
