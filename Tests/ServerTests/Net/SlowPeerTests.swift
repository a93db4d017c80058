import CThicketNet
import Glibc
import Testing
@testable import ThicketNet
import ThicketProtocol

@testable import ThicketServer

/// Peers that are slow, on purpose or not: which of them the server waits for.
@Suite("Slow peers", .serialized)
struct SlowPeerTests {
    private func settings(_ milliseconds: Int = 80) -> NetSettings {
        var settings = NetSettings()
        settings.requestTimeout = .milliseconds(milliseconds)
        settings.keepAliveTimeout = .milliseconds(milliseconds)
        settings.idleTimeout = .milliseconds(milliseconds)
        settings.paceBytesPerSecond = 1 << 20
        return settings
    }

    @Test("the kernel is set to give up a silently vanished peer after the idle timeout")
    func halfOpen() throws {
        let server = try LoopThread(settings: settings(7_000)) { EchoDelegate($0) }
        let peer = try TestPeer(port: server.port)
        try peer.send("GET /echo HTTP/1.1\r\nHost: x\r\n")
        waitFor { (try? server.onLoop { $0.openConnections }) == 1 ? true : nil }
        let patience: [Int32] = try server.onLoop { loop in
            loop.connections.compactMap { connection in
                guard let connection else { return nil }
                var (value, length): (Int32, socklen_t) = (0, socklen_t(MemoryLayout<Int32>.size))
                let option: Int32 = 18  // TCP_USER_TIMEOUT, which the C library's headers hide from Swift
                guard getsockopt(connection.id.slot, Int32(IPPROTO_TCP), option, &value, &length) == 0 else {
                    return nil
                }
                return value
            }
        }
        #expect(patience == [7_000])
        try server.stop()
    }

    @Test(
        "a body below the data rate is answered 408 and counted; one that keeps the rate is not, however long it lasts")
    func slowBody() throws {
        let server = try LoopThread(settings: settings()) { EchoDelegate($0) }
        let head = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: "
        let slow = try TestPeer(port: server.port)
        try slow.send(head + "100000\r\n\r\n")
        waitFor { (try? slow.send("b")) == nil || server.metrics.limitHits.value(.bodyPace) == 1 ? true : nil }
        #expect(try slow.readResponse().status == 408)
        #expect(server.metrics.net.httpErrors.value(.timeout) == 1)
        #expect(server.metrics.limitHits.value(.bodyPace) == 1)
        try server.stop()
        // Patient, because the machine may be busy with other tests.
        let patient = try LoopThread(settings: settings(5_000)) { EchoDelegate($0) }
        let steady = try TestPeer(port: patient.port)
        let (steps, piece): (Int, Int) = (12, 60_000)
        try steady.send(head + "\(steps * piece)\r\n\r\n")
        for _: Int in 0..<steps {
            let due: Int64 = thicket_monotonic_ns() + 20_000_000
            waitFor { thicket_monotonic_ns() >= due ? true : nil }
            try steady.send(String(repeating: "b", count: piece))
        }
        #expect(try steady.readResponse().body.count == steps * piece)
        #expect(patient.metrics.limitHits.value(.bodyPace) == 0)
        try patient.stop()
    }

    @Test("a head that arrives byte by byte is counted as a slow head, not as a slow body")
    func slowHead() throws {
        let server = try LoopThread(settings: settings()) { EchoDelegate($0) }
        let peer = try TestPeer(port: server.port)
        try peer.send("GET / HTTP/1.1\r\nA: ")
        waitFor { (try? peer.send("b")) == nil || server.metrics.limitHits.value(.headTime) == 1 ? true : nil }
        waitFor { server.metrics.limitHits.value(.headTime) == 1 ? true : nil }
        #expect(server.metrics.limitHits.value(.bodyPace) == 0)
        try server.stop()
    }

    @Test("a WebSocket message that arrives byte by byte ends its connection, although each byte is a sign of life")
    func slowMessage() throws {
        let diary = Diary()
        let server = try LoopThread(settings: settings()) { EchoDelegate($0, diary) }
        let peer = try TestPeer(port: server.port)
        try peer.upgrade()
        try peer.send([0x81, 0xFE, 0xFF, 0xFF, 0, 0, 0, 0])
        waitFor { (try? peer.send([0x61])) == nil || !diary.ends.isEmpty ? true : nil }
        #expect(waitFor { diary.ends.first } == .idle)
        #expect(server.metrics.limitHits.value(.messagePace) == 1)
        try server.stop()
    }

    @Test("an unread response is given up and its memory freed; a slow reader that keeps the rate gets everything")
    func slowReader() throws {
        var settings: NetSettings = settings()
        settings.requestTimeout = .seconds(5)
        // Otherwise the kernel gives the peer up before the server does.
        settings.idleTimeout = .seconds(60)
        settings.pendingBytesMax = 64 << 20
        settings.pendingBytesPause = 64 << 20
        let server = try LoopThread(settings: settings) { EchoDelegate($0) }
        // More than the kernel buffers, so that it waits in the server.
        let text = String(repeating: "GET /big HTTP/1.1\r\nHost: x\r\n\r\n", count: 200)
        let silent = try TestPeer(port: server.port)
        silent.keepLittle()
        try silent.send(text)
        waitFor { server.metrics.limitHits.value(.readPace) == 1 ? true : nil }
        waitFor { server.metrics.net.outboxBytes.value == 0 ? true : nil }
        // The last response ends the connection: what is queued is still sent.
        let last = "GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        try server.stop()
        settings.keepAliveTimeout = .seconds(5)
        let patient = try LoopThread(settings: settings) { EchoDelegate($0) }
        let steady = try TestPeer(port: patient.port)
        try steady.send(text + last)
        for _: Int in 0...200 { #expect(try steady.readResponse().body.count == 100_000) }
        #expect(try steady.readToEnd().isEmpty)
        try patient.stop()
    }

    @Test("a frame of megabytes leaves in pieces, between which other connections have their turns")
    func largeFrame() throws {
        let diary = Diary()
        let server: LoopThread = try .init { EchoDelegate($0, diary) }
        let peer = try TestPeer(port: server.port)
        try peer.upgrade()
        let id: ConnectionID = waitFor { diary.opened.first }
        let metrics: Metrics = server.metrics
        let before: Int = try server.onLoop { _ in metrics.net.socketWrites.value }
        let text = [UInt8](repeating: 0x61, count: 4 << 20)
        _ = try server.onLoop { loop in
            loop.send(id, text: text)
            return true
        }
        #expect(try peer.readAnswer() == .text(text))
        let writes: Int = try server.onLoop { _ in metrics.net.socketWrites.value } - before
        #expect(writes >= text.count / EventLoop.writtenPerTurn)
        try server.stop()
    }

    @Test("the kernel keeps little of what a peer does not read; the rest waits in the outbox, where it is counted")
    func unreadInTheKernel() throws {
        let diary = Diary()
        let server: LoopThread = try .init { EchoDelegate($0, diary) }
        let peer = try TestPeer(port: server.port)
        peer.keepLittle()
        try peer.upgrade()
        let id: ConnectionID = waitFor { diary.opened.first }
        let text = [UInt8](repeating: 0x61, count: 8 << 20)
        _ = try server.onLoop { loop in
            loop.send(id, text: text)
            return true
        }
        waitFor { (try? server.onLoop { $0.lookup(id)?.isBlocked }) == true ? true : nil }
        let waiting: Int = server.metrics.net.outboxBytes.value
        // The data in the peer's kernel, and the last piece, come on top.
        #expect(waiting > text.count - Int(EventLoop.unsentMax) - (256 << 10))
        #expect(try peer.readAnswer() == .text(text))
        waitFor { server.metrics.net.outboxBytes.value == 0 ? true : nil }
        try server.stop()
    }

    @Test("connections that say nothing, before a request or between two, are closed")
    func idle() throws {
        let server = try LoopThread(settings: settings()) { EchoDelegate($0) }
        let silent = try TestPeer(port: server.port)
        #expect(try silent.readToEnd().isEmpty)
        let kept = try TestPeer(port: server.port)
        try kept.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try kept.readResponse().status == 200)
        #expect(try kept.readToEnd().isEmpty)
        #expect(server.metrics.net.connectionsClosed.value(.idle) == 2)
        #expect(server.metrics.limitHits.value(.readPace) == 0)
        try server.stop()
    }

    @Test("150 slow heads at once delay no other connection, and all are given up")
    func slowloris() throws {
        let server = try LoopThread(settings: settings(1_500)) { EchoDelegate($0) }
        let port: Int = try server.port
        let slow: [TestPeer] = try (0..<150).map { _ in try TestPeer(port: port) }
        for peer in slow { try peer.send("GET / HTTP/1.1\r\nHost: x\r\nA: ") }
        let other = try TestPeer(port: port)
        try other.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try other.readResponse().status == 200)
        waitFor {
            for peer in slow { try? peer.send("b") }
            return server.metrics.limitHits.value(.headTime) == 150 ? true : nil
        }
        try server.stop()
    }
}
