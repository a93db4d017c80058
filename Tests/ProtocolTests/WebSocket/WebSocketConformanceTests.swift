import Testing
import ThicketProtocol
import ThicketTestSupport

/// An echo server made of the codec only.
final class EchoCodec {
    private var reader = WebSocketReader(role: .server, messageBytesMax: WebSocketCase.messageBytesMax)
    private(set) var answers = [WebSocketCase.Answer]()
    private(set) var bytesUntilFault: Int?
    private(set) var bytesTaken = 0
    var holdsBytes: Bool { reader.holdsBytes }

    func read(_ piece: [UInt8]) {
        var piece = piece
        piece.withUnsafeMutableBytes { bytes in
            var input = bytes
            do throws(WebSocketFailure) {
                while let event = try reader.next(&input) { answer(event) }
            } catch {
                answers.append(.close(error.code.rawValue))
                bytesUntilFault = bytesTaken + bytes.count
            }
        }
        bytesTaken += piece.count
    }

    private func answer(_ event: WebSocketEvent) {
        switch event {
        case .text(let bytes): answers.append(.text(Array(bytes)))
        case .gatheredText(let bytes): answers.append(.text(bytes))
        case .gatheredBinary(let bytes): answers.append(.binary(bytes))
        case .binary(let bytes): answers.append(.binary(Array(bytes)))
        case .ping(let bytes): answers.append(.pong(Array(bytes)))
        case .pong: break
        case .close(let code, _): answers.append(.close(code?.rawValue))
        }
    }
}

@Suite("WebSocket conformance, the codec alone")
struct WebSocketConformanceTests {
    private func run(_ pieces: [[UInt8]]) -> [WebSocketCase.Answer] {
        let codec = EchoCodec()
        for piece in pieces { codec.read(piece) }
        return codec.answers
    }

    @Test("every case is answered as RFC 6455 says, cut as given")
    func asGiven() {
        for each in WebSocketCase.all {
            #expect(run(each.pieces) == each.answers, "\(each)")
        }
        print("WebSocket conformance: \(WebSocketCase.all.count) cases")
        #expect(WebSocketCase.all.count > 300)
    }

    @Test("every case is answered the same when it arrives in one piece")
    func inOnePiece() {
        for each in WebSocketCase.all where each.pieces.count > 1 {
            #expect(run([each.bytes]) == each.answers, "\(each)")
        }
    }

    @Test("every case is answered the same when it arrives byte by byte")
    func byteByByte() {
        for each in WebSocketCase.all where each.bytes.count < 2_000 {
            #expect(run(each.bytes.map { [$0] }) == each.answers, "\(each)")
        }
    }

    @Test("every case is answered the same however it is cut")
    func anyCut() {
        let seed = UInt64.random(in: .min ... .max)
        print("seed \(seed)")
        var random = SeededRandom(seed: seed)
        for each in WebSocketCase.all where each.bytes.count < 70_100 {
            var rest = each.bytes[...]
            var pieces = [[UInt8]]()
            let most = [3, 20, 300, 20_000].randomElement(using: &random) ?? 3
            while !rest.isEmpty {
                let size = min(rest.count, .random(in: 1...max(most, rest.count / 50), using: &random))
                pieces.append(Array(rest.prefix(size)))
                rest = rest.dropFirst(size)
            }
            #expect(run(pieces) == each.answers, "\(each), seed \(seed)")
        }
    }

    @Test("a fault is detected at the first byte that shows it, and not before")
    func failFast() {
        let marked = WebSocketCase.all.filter { $0.faultVisibleAfter != nil }
        for each in marked where each.bytes.count < 2_000 {
            let codec = EchoCodec()
            for byte in each.bytes { codec.read([byte]) }
            #expect(codec.bytesUntilFault == each.faultVisibleAfter, "\(each)")
        }
        #expect(marked.count > 100)
    }

    @Test("no byte is held after a whole message, nor after the end")
    func holdsNothing() {
        for each in WebSocketCase.all where each.bytes.count < 70_100 {
            let codec = EchoCodec()
            for piece in each.pieces { codec.read(piece) }
            codec.read([])
            if case .close? = each.answers.last { codec.read([0]) }
            #expect(!codec.holdsBytes, "\(each)")
        }
    }
}
