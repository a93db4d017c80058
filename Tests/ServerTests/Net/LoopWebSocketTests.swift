import CThicketNet
import Synchronization
import Testing
@testable import ThicketNet
import ThicketProtocol

@testable import ThicketServer

@Suite("WebSockets over the event loop", .serialized)
struct LoopWebSocketTests {
    private static let megabyte = [UInt8](repeating: 0x61, count: 1 << 20)

    @Test("a slow reader gets the rest of its frame and 1013; other connections are not affected")
    func slowReader() throws {
        var settings = NetSettings()
        settings.pendingBytesMax = 4 << 20
        let diary = Diary()
        let server = try LoopThread(settings: settings) { EchoDelegate($0, diary) }
        let (slow, other): (TestPeer, TestPeer) = (try .init(port: server.port), try .init(port: server.port))
        try slow.upgrade()
        let id: ConnectionID = waitFor { diary.opened.first }
        try other.upgrade()
        let frame = SharedFrame(text: Self.megabyte)
        var rounds = 0
        while diary.ends.isEmpty && rounds < 200 {
            _ = try server.onLoop { loop in
                for _: Int in 0..<3 { loop.send(id, frame) }
                return true
            }
            rounds += 1
        }
        #expect(diary.ends == [.slowReader])
        #expect(server.metrics.net.outboxOverflows.value == 1)
        var texts = 0
        var last: TestPeer.Answer = .end
        while case let answer:TestPeer.Answer = try slow.readAnswer(), answer != .end {
            if answer == .text(Self.megabyte) { texts += 1 } else { last = answer }
        }
        #expect(texts >= 1 && texts < rounds * 3)
        #expect(last == .close(1013))
        try other.sendFrame(.text, [0x62])
        #expect(try other.readAnswer() == .text([0x62]))
        waitFor { server.metrics.net.outboxBytes.value == 0 ? true : nil }
        try server.stop()
    }

    @Test("while all connections together have too much queued, a slow reader is dropped early and others are served")
    func pendingTotal() throws {
        var settings = NetSettings()
        settings.pendingBytesTotalMax = 8 << 20
        settings.pendingBytesMax = 1 << 30
        let diary = Diary()
        let server = try LoopThread(settings: settings) { EchoDelegate($0, diary) }
        let (slow, other): (TestPeer, TestPeer) = (try .init(port: server.port), try .init(port: server.port))
        try slow.upgrade()
        let id: ConnectionID = waitFor { diary.opened.first }
        try other.upgrade()
        let frame = SharedFrame(text: Self.megabyte)
        for _: Int in 0..<200 where diary.ends.isEmpty {
            _ = try server.onLoop { loop in
                loop.send(id, frame)
                return true
            }
            try other.sendFrame(.text, [0x62])
            #expect(try other.readAnswer() == .text([0x62]))
        }
        #expect(diary.ends == [.slowReader])
        waitFor { server.metrics.net.outboxBytes.value < 2 << 20 ? true : nil }
        try server.stop()
    }

    @Test("unfinished messages of all connections are bounded together; a small message is always admitted")
    func gatheredTotal() throws {
        var settings = NetSettings()
        (settings.gatheredBytesTotalMax, settings.gatheredBytesFree) = (1 << 20, 1_000)
        let diary = Diary()
        let server = try LoopThread(settings: settings) { EchoDelegate($0, diary) }
        let peers: [TestPeer] = try (0..<3).map { _ in try TestPeer(port: server.port) }
        let half: [UInt8] = Array(WebSocketWriter.frame(.text, Self.megabyte, mask: 9).prefix(700_000))
        for peer in peers { try peer.upgrade() }
        try peers[0].send(half)
        waitFor { server.metrics.net.receivedBytes.value > half.count ? true : nil }
        try peers[1].send(half)
        #expect(try peers[1].readAnswer() == .close(1013))
        #expect(waitFor { diary.ends.first } == .crowded)
        for piece: ArraySlice<UInt8> in [half[..<500], half[500..<900]] { try peers[2].send(Array(piece)) }
        try peers[0].send(Array(WebSocketWriter.frame(.text, Self.megabyte, mask: 9).dropFirst(700_000)))
        #expect(try peers[0].readAnswer() == .text(Self.megabyte))
        #expect(diary.ends.count == 1)
        try server.stop()
    }

    @Test("a peer that sends much and reads nothing is not read further, and gets every answer in the end")
    func throttle() throws {
        var settings = NetSettings()
        settings.pendingBytesPause = 64 << 10
        let server = try LoopThread(settings: settings) { EchoDelegate($0) }
        let peer = try TestPeer(port: server.port)
        try peer.upgrade()
        let count = 3_000
        let payload = [UInt8](repeating: 0x61, count: 10_000)
        let frames: [UInt8] = WebSocketWriter.frame(.text, payload, mask: 5)
        let socket: Int32 = peer.socket
        Threads.start {
            for _: Int in 0..<count {
                var sent = 0
                while sent < frames.count {
                    let more: Int = frames.withUnsafeBytes {
                        thicket_send_blocking(socket, $0.baseAddress?.advanced(by: sent), frames.count - sent)
                    }
                    if more <= 0 { return }
                    sent += more
                }
            }
        }
        waitFor { server.metrics.net.outboxBytes.value > settings.pendingBytesPause ? true : nil }
        for _: Int in 0..<count {
            #expect(server.metrics.net.outboxBytes.value < settings.pendingBytesPause + 30_000)
            #expect(try peer.readAnswer() == .text(payload))
        }
        try server.stop()
    }

    @Test("all frames that a turn sends to one connection leave in one write, posted ones and answers alike")
    func cork() throws {
        let diary = Diary()
        let server: LoopThread = try .init { EchoDelegate($0, diary) }
        let peer = try TestPeer(port: server.port)
        try peer.upgrade()
        let id: ConnectionID = waitFor { diary.opened.first }
        // Counted on the loop, after the write of the handshake.
        let metrics: Metrics = server.metrics
        let before: Int = try server.onLoop { _ in metrics.net.socketWrites.value }
        _ = try server.onLoop { loop in
            for number: Int in 0..<100 { loop.send(id, text: Array("\(number)".utf8)) }
            return true
        }
        for number: Int in 0..<100 { #expect(try peer.readAnswer() == .text(Array("\(number)".utf8))) }
        #expect(try server.onLoop { _ in metrics.net.socketWrites.value } == before + 1)
        let burst: [UInt8] = (0..<100).flatMap { WebSocketWriter.frame(.text, Array("\($0)".utf8), mask: 3) }
        try peer.send(burst)
        for number: Int in 0..<100 { #expect(try peer.readAnswer() == .text(Array("\(number)".utf8))) }
        // The burst may arrive in a few packets; each is one turn.
        #expect(try server.onLoop { _ in metrics.net.socketWrites.value } <= before + 11)
        try server.stop()
    }

    @Test("the ID of a closed connection reaches no connection, not even the next one in its slot")
    func lateSend() throws {
        let diary = Diary()
        let server: LoopThread = try .init { EchoDelegate($0, diary) }
        do {
            let first = try TestPeer(port: server.port)
            try first.upgrade()
            waitFor { diary.opened.first }
        }
        waitFor { diary.ends.first }
        let old: ConnectionID = diary.opened[0]
        let second = try TestPeer(port: server.port)
        try second.upgrade()
        let new: ConnectionID = waitFor { diary.opened.count == 2 ? diary.opened[1] : nil }
        #expect(new != old)
        _ = try server.onLoop { loop in
            loop.send(old, text: Array("lost".utf8))
            loop.send(ConnectionID(slot: old.slot, serial: old.serial &+ 77), text: [0x61])
            loop.send(ConnectionID(slot: -1, serial: 1), text: [0x61])
            loop.send(ConnectionID(slot: 1_000_000, serial: 1), text: [0x61])
            loop.close(old)
            loop.pauseReading(old)
            loop.resumeReading(old)
            loop.respond(old, .text(200, "lost"))
            return true
        }
        try second.sendFrame(.text, Array("here".utf8))
        #expect(try second.readAnswer() == .text(Array("here".utf8)))
        #expect(diary.ends == [.vanished])
        try server.stop()
    }

    /// Receives one message, then pauses.
    private final class Reluctant: LoopDelegate {
        unowned let loop: EventLoop
        let diary: Diary
        init(_ loop: EventLoop, _ diary: Diary) { (self.loop, self.diary) = (loop, diary) }
        func answer(_ request: HTTPRequest, on: ConnectionID, via listener: Listener) -> HTTPDisposition { .upgrade }
        func opened(_ connection: ConnectionID, _ request: HTTPRequest) { diary.record(opened: connection) }
        func received(_ connection: ConnectionID, text: UnsafeRawBufferPointer) {
            diary.record(String(decoding: text, as: UTF8.self))
            loop.pauseReading(connection)
        }
        func closed(_ connection: ConnectionID, _ end: ConnectionEnd) { diary.record(end: end) }
    }

    @Test("a pause holds back even messages that were already read, and loses none")
    func pause() throws {
        let diary = Diary()
        let server: LoopThread = try .init { Reluctant($0, diary) }
        let peer = try TestPeer(port: server.port)
        try peer.upgrade()
        let id: ConnectionID = waitFor { diary.opened.first }
        try peer.send((0..<10).flatMap { WebSocketWriter.frame(.text, Array("\($0)".utf8), mask: 3) })
        try peer.send(WebSocketWriter.frame(.text, Array("last".utf8), mask: 3))
        for expected: Int in 1...11 {
            waitFor { diary.lines.count == expected ? true : nil }
            // More turns change nothing while the connection is paused.
            for _ in 0..<3 { _ = try server.onLoop { _ in true } }
            #expect(diary.lines.count == expected)
            _ = try server.onLoop { loop in
                loop.resumeReading(id)
                return true
            }
        }
        #expect(diary.lines == (0..<10).map(String.init) + ["last"])
        try server.stop()
    }

    /// Echoes a message, and pauses all connections except its sender.
    private final class Jealous: LoopDelegate {
        unowned let loop: EventLoop
        var opened: [ConnectionID] = []
        init(_ loop: EventLoop) { self.loop = loop }
        func answer(_ request: HTTPRequest, on: ConnectionID, via listener: Listener) -> HTTPDisposition { .upgrade }
        func opened(_ connection: ConnectionID, _ request: HTTPRequest) { opened.append(connection) }
        func received(_ connection: ConnectionID, text: UnsafeRawBufferPointer) {
            for other in opened where other != connection { loop.pauseReading(other) }
            loop.send(connection, text: text)
        }
        func received(_ connection: ConnectionID, binary: UnsafeRawBufferPointer) {}
        func closed(_ connection: ConnectionID, _ end: ConnectionEnd) {}
    }

    @Test("a connection that another connection's message of the same turn pauses stays open and keeps its input")
    func pausedInTheSameTurn() throws {
        let server: LoopThread = try .init { Jealous($0) }
        let peers: [TestPeer] = try (0..<2).map { _ in try TestPeer(port: try server.port) }
        for peer in peers { try peer.upgrade() }
        let isSent = Box<Bool>()
        try server.handle.post { _ in waitFor { isSent.value.withLock { $0 } } }
        for peer in peers { try peer.sendFrame(.text, [0x61]) }
        isSent.value.withLock { $0 = true }
        _ = try server.onLoop { _ in true }
        _ = try server.onLoop { loop in
            for id in (loop.delegate as? Jealous)?.opened ?? [] { loop.resumeReading(id) }
            return true
        }
        for peer in peers { #expect(try peer.readAnswer() == .text([0x61])) }
        try server.stop()
    }

    @Test("the delegate's close frame follows what is queued, and the end is reported once")
    func closedByUs() throws {
        let diary = Diary()
        let server: LoopThread = try .init { EchoDelegate($0, diary) }
        let peer = try TestPeer(port: server.port)
        try peer.upgrade()
        let id: ConnectionID = waitFor { diary.opened.first }
        _ = try server.onLoop { loop in
            loop.send(id, text: Array("last words".utf8))
            loop.close(id, .policyViolation, reason: "enough")
            loop.send(id, text: Array("too late".utf8))
            loop.close(id, .normal)
            return true
        }
        #expect(try peer.readAnswer() == .text(Array("last words".utf8)))
        #expect(try peer.readAnswer() == .close(1008))
        try peer.sendFrame(.text, Array("ignored".utf8))
        try peer.send(RawClose.normal)
        #expect(try peer.readAnswer() == .end)
        #expect(diary.ends == [.closed(.policyViolation)])
        #expect(diary.received.value == 0)
        try server.stop()
    }

    @Test(
        "a peer that never answers our close is dropped after the close timeout, a silent peer after the idle timeout")
    func timeouts() throws {
        var settings = NetSettings()
        (settings.closeTimeout, settings.idleTimeout) = (.milliseconds(50), .milliseconds(100))
        let diary = Diary()
        let server = try LoopThread(settings: settings) { EchoDelegate($0, diary) }
        let silent = try TestPeer(port: server.port)
        try silent.upgrade()
        #expect(try silent.readAnswer() == .close(1001))
        #expect(diary.ends == [.idle])
        #expect(try silent.readAnswer() == .end)
        waitFor { server.metrics.net.connections.value == 0 ? true : nil }
        #expect(server.metrics.net.webSockets.value == 0)
        try server.stop()
    }

    @Test("a silent peer that reads what it is sent outlives the idle timeout")
    func listener() throws {
        var settings = NetSettings()
        settings.idleTimeout = .seconds(1)
        let diary = Diary()
        let server = try LoopThread(settings: settings) { EchoDelegate($0, diary) }
        let peer = try TestPeer(port: server.port)
        try peer.upgrade()
        let id: ConnectionID = waitFor { diary.opened.first }
        _ = try server.onLoop { loop in
            Self.tick(loop, id, left: 20)
            return true
        }
        for number: Int in 0..<20 { #expect(try peer.readAnswer() == .text([UInt8(number)])) }
        #expect(diary.ends.isEmpty)
        try server.stop()
    }

    private static func tick(_ loop: EventLoop, _ id: ConnectionID, left: Int) {
        guard left > 0 else { return }
        loop.send(id, text: [UInt8(20 - left)])
        loop.schedule(after: .milliseconds(75)) { [unowned loop] in tick(loop, id, left: left - 1) }
    }

    @Test("a peer that vanishes is reported to the delegate as vanished")
    func vanished() throws {
        let diary = Diary()
        let server: LoopThread = try .init { EchoDelegate($0, diary) }
        do {
            let peer = try TestPeer(port: server.port)
            try peer.upgrade()
            try peer.send([0x81])
            waitFor { diary.opened.first }
        }
        #expect(waitFor { diary.ends.first } == .vanished)
        try server.stop()
    }

    @Test("binary messages are refused with 1003 unless they are enabled")
    func binary() throws {
        let server: LoopThread = try .init { EchoDelegate($0) }
        let peer = try TestPeer(port: server.port)
        try peer.upgrade()
        try peer.sendFrame(.binary, [1])
        #expect(try peer.readAnswer() == .close(1003))
        #expect(try peer.readAnswer() == .end)
        #expect(server.metrics.net.webSocketErrors.value(.unsupportedData) == 1)
        try server.stop()
    }

    @Test("a thousand connections that arrive at once are all served")
    func many() throws {
        let server: LoopThread = try .init { EchoDelegate($0) }
        let port: Int = try server.port
        let peers: [TestPeer] = try (0..<1_000).map { _ in try TestPeer(port: port) }
        for peer in peers {
            try peer.send(WebSocketHandshake.request(host: "x", target: "/ws", nonce: Array(0..<16)))
        }
        for (number, peer) in peers.enumerated() {
            #expect(try peer.readResponse().status == 101)
            try peer.sendFrame(.text, Array("\(number)".utf8))
        }
        for (number, peer) in peers.enumerated() {
            #expect(try peer.readAnswer() == .text(Array("\(number)".utf8)))
        }
        #expect(server.metrics.net.webSockets.value == 1_000)
        try server.stop()
    }
}
