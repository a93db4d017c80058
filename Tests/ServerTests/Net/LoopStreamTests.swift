import CThicketNet
import Testing
@testable import ThicketNet
import ThicketProtocol

@testable import ThicketServer

/// Begins responses without an end, to which a test adds chunks.
private final class StreamDelegate: LoopDelegate {
    private unowned let loop: EventLoop
    let diary: Diary
    private var open: [ConnectionID] = []

    init(_ loop: EventLoop, _ diary: Diary) { (self.loop, self.diary) = (loop, diary) }

    func answer(_ request: HTTPRequest, on connection: ConnectionID, via listener: Listener) -> HTTPDisposition {
        switch request.path {
        case "/stream":
            open.append(connection)
            diary.record(opened: connection)
            return .stream(HTTPResponse(status: 200, body: Array("begin".utf8)))
        case "/hold":
            diary.record(opened: connection)
            return .waits
        case "/later":
            diary.record(opened: connection)
            return .later
        default: return .respond(.text(200, "hello"))
        }
    }

    func opened(_ connection: ConnectionID, _ request: HTTPRequest) {}
    func received(_ connection: ConnectionID, text: UnsafeRawBufferPointer) {}
    func closed(_ connection: ConnectionID, _ end: ConnectionEnd) { diary.record("abandoned \(connection)") }
}

@Suite("Responses without an end", .serialized)
struct LoopStreamTests {
    private static let end = " HTTP/1.1\r\nHost: x\r\n\r\n"

    private static func serve(_ settings: NetSettings = .init()) throws -> (LoopThread, Diary) {
        let diary = Diary()
        let server = try LoopThread(settings: settings) { StreamDelegate($0, diary) }
        return (server, diary)
    }

    private static func opened(_ diary: Diary) -> ConnectionID { waitFor { diary.opened.last } }

    private static func head(_ peer: TestPeer, _ count: Int) throws -> String {
        String(decoding: try peer.read(count), as: UTF8.self)
    }

    @Test("chunks leave as they are written, and the connection handles the next request after the last chunk")
    func chunks() throws {
        let (server, diary): (LoopThread, Diary) = try Self.serve()
        let peer = try TestPeer(port: server.port)
        try peer.send("GET /stream\(Self.end)GET /\(Self.end)")
        let answer = try peer.readResponse()
        #expect(answer.status == 200 && answer.fields["transfer-encoding"] == "chunked")
        #expect(answer.fields["content-length"] == nil && answer.fields["connection"] == nil)
        #expect(try Self.head(peer, 10) == "5\r\nbegin\r\n")
        let id: ConnectionID = Self.opened(diary)
        #expect(server.metrics.net.httpStreams.value == 1)
        _ = try server.onLoop { (loop: EventLoop) in
            loop.write(id, chunk: [])
            loop.write(id, chunk: Array("one".utf8))
        }
        #expect(try Self.head(peer, 8) == "3\r\none\r\n")
        _ = try server.onLoop { (loop: EventLoop) in
            loop.write(id, chunk: [UInt8](repeating: 0x78, count: 26))
            loop.finish(id)
            loop.write(id, chunk: [1])
            loop.finish(id)
        }
        #expect(try Self.head(peer, 37) == "1a\r\n\(String(repeating: "x", count: 26))\r\n0\r\n\r\n")
        #expect(String(decoding: try peer.readResponse().body, as: UTF8.self) == "hello")
        #expect(server.metrics.net.httpStreams.value == 0 && diary.lines.isEmpty)
        try server.stop()
    }

    @Test("for HTTP/1.0 the end of the connection is the end of the body")
    func oldVersion() throws {
        let (server, diary): (LoopThread, Diary) = try Self.serve()
        let peer = try TestPeer(port: server.port)
        try peer.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        let id: ConnectionID = Self.opened(diary)
        _ = try server.onLoop { (loop: EventLoop) in
            loop.write(id, chunk: Array("one".utf8))
            loop.finish(id)
        }
        let text: String = try peer.readToEnd()
        #expect(text.hasSuffix("connection: close\r\n\r\nbeginone") && !text.contains("transfer-encoding"))
        #expect(diary.lines.isEmpty)
        try server.stop()
    }

    @Test("the delegate is notified at once when a streaming or waiting peer goes, but not after it answered 'later'")
    func abandoned() throws {
        let (server, diary): (LoopThread, Diary) = try Self.serve()
        for path: String in ["/stream", "/hold"] {
            for isReset: Bool in [false, true] {
                let count: Int = diary.opened.count
                let peer = try TestPeer(port: server.port)
                try peer.send("GET \(path)\(Self.end)")
                waitFor { diary.opened.count > count ? true : nil }
                let id: ConnectionID = Self.opened(diary)
                if isReset { peer.reset() } else { _ = thicket_shut_write(peer.socket) }
                waitFor { diary.lines.contains("abandoned \(id)") ? true : nil }
            }
        }
        #expect(diary.lines.count == 4)
        let peer = try TestPeer(port: server.port)
        try peer.send("GET /later\(Self.end)")
        waitFor { diary.opened.count > 4 ? true : nil }
        let id: ConnectionID = Self.opened(diary)
        _ = thicket_shut_write(peer.socket)
        _ = try server.onLoop { (loop: EventLoop) in loop.respond(id, .text(200, "at last")) }
        #expect(try peer.readToEnd().hasSuffix("at last"))
        #expect(diary.lines.count == 4 && server.metrics.net.httpStreams.value == 0)
        try server.stop()
    }

    @Test("a held request is answered like any other, and its connection continues")
    func held() throws {
        let (server, diary): (LoopThread, Diary) = try Self.serve()
        let peer = try TestPeer(port: server.port)
        for _ in 0..<2 {
            let count: Int = diary.opened.count
            try peer.send("GET /hold\(Self.end)")
            waitFor { diary.opened.count > count ? true : nil }
            let id: ConnectionID = Self.opened(diary)
            _ = try server.onLoop { (loop: EventLoop) in loop.respond(id, .text(200, "now")) }
            #expect(String(decoding: try peer.readResponse().body, as: UTF8.self) == "now")
        }
        #expect(diary.lines.isEmpty)
        try server.stop()
    }

    @Test("a stream whose peer reads nothing is dropped at the bound, and its memory is freed")
    func slowReader() throws {
        var settings = NetSettings()
        settings.pendingBytesMax = 200_000
        let (server, diary): (LoopThread, Diary) = try Self.serve(settings)
        let peer = try TestPeer(port: server.port)
        try peer.send("GET /stream\(Self.end)")
        let id: ConnectionID = Self.opened(diary)
        for _ in 0..<2_000 where diary.lines.isEmpty {
            _ = try server.onLoop { (loop: EventLoop) in loop.write(id, chunk: [UInt8](repeating: 1, count: 50_000)) }
        }
        #expect(diary.lines == ["abandoned \(id)"])
        #expect(server.metrics.net.outboxOverflows.value == 1 && server.metrics.net.outboxBytes.value == 0)
        #expect(server.metrics.net.httpStreams.value == 0)
        try server.stop()
    }

    @Test("a stream without writes ends with the idle timeout")
    func idle() throws {
        var settings = NetSettings()
        settings.idleTimeout = .milliseconds(50)
        let (server, diary): (LoopThread, Diary) = try Self.serve(settings)
        let peer = try TestPeer(port: server.port)
        try peer.send("GET /stream\(Self.end)")
        let id: ConnectionID = Self.opened(diary)
        waitFor { diary.lines == ["abandoned \(id)"] ? true : nil }
        try server.stop()
    }
}
