import Glibc
import Testing
@testable import ThicketNet
@testable import ThicketPlatform
import ThicketProtocol

@testable import ThicketServer

/// Gets bodies in pieces and does with them what the test wants; sends bodies in pieces.
private final class BodyDelegate: LoopDelegate {
    private unowned let loop: EventLoop
    let diary: Diary
    private var received: [ConnectionID: Int] = [:]
    private var left: [ConnectionID: Int] = [:]
    private var file: OpenFile?

    init(_ loop: EventLoop, _ diary: Diary) { (self.loop, self.diary) = (loop, diary) }

    func streamedBodyMax(of head: HTTPRequest) -> Int? { head.method == "PUT" ? 64 << 20 : nil }

    func begins(_ request: HTTPRequest, length: Int, on connection: ConnectionID) {
        diary.record(opened: connection)
        diary.record("begins \(request.path) \(length)")
        switch request.path {
        case "/refuse": loop.respond(connection, .text(403, "no"))
        case "/held": break
        default: loop.acceptBody(connection)
        }
    }

    func received(_ connection: ConnectionID, body: UnsafeRawBufferPointer, isLast: Bool) {
        received[connection, default: 0] += body.count
        diary.record("received \(received[connection] ?? 0)")
        if isLast { return loop.respond(connection, .text(200, "\(received[connection] ?? 0)")) }
        // Each piece is worked on elsewhere, and the body waits meanwhile.
        loop.holdBody(connection)
        loop.handle.post { $0.acceptBody(connection) }
    }

    func answer(_ request: HTTPRequest, on connection: ConnectionID, via listener: Listener) -> HTTPDisposition {
        guard request.path == "/file" || request.path == "/bytes" else { return .respond(.text(200, "hello")) }
        diary.record(opened: connection)
        let length = 3 << 20
        if request.path == "/file" { file = Self.file(length) }
        left[connection] = length
        loop.handle.post { loop in
            var response = HTTPResponse(status: 200)
            response.bodyLength = length
            loop.begin(connection, response)
        }
        return .later
    }

    func wantsBody(_ connection: ConnectionID) {
        let missing: Int = left[connection] ?? 0
        let count: Int = min(missing, 300_000)
        diary.record("wants \(missing)")
        left[connection] = missing - count
        if let file, loop.sendsFiles(connection) {
            let offset = Int64(3 << 20) - Int64(missing)
            return loop.send(connection, .file(FileSlice(file, offset: offset, count: count)))
        }
        loop.send(connection, .bytes([UInt8](repeating: 7, count: count)))
    }

    func opened(_ connection: ConnectionID, _ request: HTTPRequest) {}
    func received(_ connection: ConnectionID, text: UnsafeRawBufferPointer) {}
    func closed(_ connection: ConnectionID, _ end: ConnectionEnd) { diary.record("abandoned \(connection)") }

    /// A file that has no name any more.
    private static func file(_ length: Int) -> OpenFile? {
        var template: [CChar] = Array("/tmp/thicket-body-XXXXXX".utf8CString)
        let descriptor: Int32 = mkstemp(&template)
        unlink(&template)
        let bytes = [UInt8](repeating: 7, count: length)
        return Glibc.write(descriptor, bytes, length) == length ? OpenFile(descriptor: descriptor) : nil
    }
}

@Suite("Bodies in pieces", .serialized)
struct LoopBodyTests {
    private static func serve(_ settings: NetSettings = .init()) throws -> (LoopThread, Diary) {
        let diary = Diary()
        return (try LoopThread(settings: settings) { BodyDelegate($0, diary) }, diary)
    }

    private static func head(_ line: String, _ length: Int, _ more: String = "") -> String {
        "\(line) HTTP/1.1\r\nHost: x\r\nContent-Length: \(length)\r\n\(more)\r\n"
    }

    @Test("a body far above the bound of ordinary bodies arrives in pieces, and the next request follows it")
    func pieces() throws {
        let (server, diary): (LoopThread, Diary) = try Self.serve()
        let peer = try TestPeer(port: server.port)
        let length = 5 << 20
        try peer.send(Self.head("PUT /body", length))
        try peer.send([UInt8](repeating: 1, count: length) + Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
        let answer = try peer.readResponse()
        #expect(answer.status == 200 && String(decoding: answer.body, as: UTF8.self) == "\(length)")
        #expect(String(decoding: try peer.readResponse().body, as: UTF8.self) == "hello")
        #expect(diary.lines.filter { $0.hasPrefix("received") }.count >= length / EventLoop.scratchBytes)
    }

    @Test("a body is not read before the delegate accepts it, and other connections are answered meanwhile")
    func held() throws {
        let (server, diary): (LoopThread, Diary) = try Self.serve()
        let peer = try TestPeer(port: server.port)
        try peer.send(Self.head("PUT /held", 32 << 20))
        let id: ConnectionID = waitFor { diary.opened.last }
        try peer.send([UInt8](repeating: 1, count: 50_000))
        for _ in 0..<3 {
            let other = try TestPeer(port: server.port)
            try other.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(try other.readResponse().status == 200)
        }
        #expect(!diary.lines.contains { $0.hasPrefix("received") }, "nothing of it was passed on")
        try server.handle.post { $0.acceptBody(id) }
        _ = waitFor { diary.lines.contains("received 50000") ? true : nil }
    }

    @Test("a body that is refused early gets its answer, and the connection ends")
    func refused() throws {
        let (server, _): (LoopThread, Diary) = try Self.serve()
        let peer = try TestPeer(port: server.port)
        try peer.send(Self.head("PUT /refuse", 1_000) + "some of it")
        #expect(try peer.readToEnd().hasPrefix("HTTP/1.1 403"))
    }

    @Test("100 Continue is sent when the body is accepted, and not when it is refused")
    func continues() throws {
        let (server, _): (LoopThread, Diary) = try Self.serve()
        let peer = try TestPeer(port: server.port)
        try peer.send(Self.head("PUT /body", 4, "Expect: 100-continue\r\n"))
        #expect(try peer.readResponse().status == 100)
        try peer.send("abcd")
        #expect(try peer.readResponse().status == 200)
        let other = try TestPeer(port: server.port)
        try other.send(Self.head("PUT /refuse", 4, "Expect: 100-continue\r\n"))
        #expect(try other.readResponse().status == 403)
    }

    @Test("the delegate is notified when a body does not come to its end: the peer leaves, or is too slow")
    func abandoned() throws {
        var settings = NetSettings()
        (settings.requestTimeout, settings.paceBytesPerSecond) = (.milliseconds(150), 1 << 20)
        let (server, diary): (LoopThread, Diary) = try Self.serve(settings)
        let peer = try TestPeer(port: server.port)
        try peer.send(Self.head("PUT /body", 1_000) + "some")
        _ = waitFor { diary.lines.contains("received 4") ? true : nil }
        peer.reset()
        _ = waitFor { diary.lines.contains { $0.hasPrefix("abandoned") } ? true : nil }
        let slow = try TestPeer(port: server.port)
        try slow.send(Self.head("PUT /body", 1_000) + "some")
        #expect(try slow.readToEnd().hasPrefix("HTTP/1.1 408"))
        _ = waitFor { diary.lines.filter { $0.hasPrefix("abandoned") }.count == 2 ? true : nil }
    }

    @Test("a chunked body comes as a whole, whatever the delegate wants")
    func chunked() throws {
        let (server, diary): (LoopThread, Diary) = try Self.serve()
        let peer = try TestPeer(port: server.port)
        try peer.send("PUT /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n")
        #expect(String(decoding: try peer.readResponse().body, as: UTF8.self) == "hello")
        #expect(diary.lines == [])
    }

    @Test("an answer is sent piece by piece, from files and from memory; the next is asked for when one has left")
    func answers() throws {
        let (server, diary): (LoopThread, Diary) = try Self.serve()
        for path in ["/file", "/bytes"] {
            let peer = try TestPeer(port: server.port)
            try peer.send("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n")
            let answer = try peer.readResponse()
            #expect(answer.status == 200 && answer.body == [UInt8](repeating: 7, count: 3 << 20))
            #expect(String(decoding: try peer.readResponse().body, as: UTF8.self) == "hello")
        }
        #expect(diary.lines.filter { $0.hasPrefix("wants") }.count == 22)
    }

    @Test("a reader that does not read is not asked about again, and its end is reported")
    func stalled() throws {
        let (server, diary): (LoopThread, Diary) = try Self.serve()
        let peer = try TestPeer(port: server.port)
        peer.keepLittle()
        try peer.send("GET /bytes HTTP/1.1\r\nHost: x\r\n\r\n")
        _ = waitFor { diary.lines.contains { $0.hasPrefix("wants") } ? true : nil }
        let other = try TestPeer(port: server.port)
        try other.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try other.readResponse().status == 200)
        peer.reset()
        _ = waitFor { diary.lines.contains { $0.hasPrefix("abandoned") } ? true : nil }
    }
}
