import Glibc
import Synchronization
import Testing
@testable import ThicketNet
@testable import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

@Suite("The loop's mailboxes, timers and signals", .serialized)
struct LoopThreadingTests {
    @Test("messages of several threads all arrive, each thread's in order")
    func mailbox() throws {
        let seen = Mutex<[Int: [Int]]>([:])
        let total = Gauge("total", "")
        let server: LoopThread = try .init { EchoDelegate($0) }
        let box: Box<Mailbox<(Int, Int)>> = .init()
        try server.handle.post { loop in
            let mailbox: Mailbox<(Int, Int)> = loop.mailbox { batch in
                seen.withLock { seen in for (thread, number) in batch { seen[thread, default: []].append(number) } }
                total.add(batch.count)
            }
            box.value.withLock { $0 = mailbox }
        }
        let mailbox: Mailbox<(Int, Int)> = waitFor { box.value.withLock { $0 } }
        for thread: Int in 0..<4 {
            Threads.start {
                for number: Int in 0..<2_500 { mailbox.post((thread, number)) }
                mailbox.post(contentsOf: (2_500..<5_000).map { (thread, $0) })
            }
        }
        waitFor { total.value == 20_000 ? true : nil }
        seen.withLock { seen in for thread: Int in 0..<4 { #expect(seen[thread] == Array(0..<5_000)) } }
        try server.stop()
        mailbox.post((0, 0))
    }

    @Test("timers run in the order of their times, cancelled ones never")
    func timers() throws {
        let order = Mutex<[Int]>([])
        let server: LoopThread = try .init { EchoDelegate($0) }
        try server.handle.post { loop in
            for number: Int in [3, 1, 2, 0] {
                loop.schedule(after: .milliseconds(number * 5)) { order.withLock { $0.append(number) } }
            }
            let cancelled: TimerID = loop.schedule(after: .milliseconds(1)) { order.withLock { $0.append(99) } }
            loop.cancel(cancelled)
        }
        waitFor { order.withLock { $0.count == 4 ? true : nil } }
        #expect(order.withLock { $0 } == [0, 1, 2, 3])
        try server.stop()
    }

    /// Records signals, and stops on `terminate`.
    private final class Obedient: LoopDelegate {
        unowned let loop: EventLoop
        let diary: Diary
        init(_ loop: EventLoop, _ diary: Diary) { (self.loop, self.diary) = (loop, diary) }
        func answer(_ request: HTTPRequest, on: ConnectionID, via listener: Listener) -> HTTPDisposition { .upgrade }
        func opened(_ connection: ConnectionID, _ request: HTTPRequest) {}
        func received(_ connection: ConnectionID, text: UnsafeRawBufferPointer) {}
        func closed(_ connection: ConnectionID, _ end: ConnectionEnd) { diary.record(end: end) }
        func signaled(_ signal: LoopSignal) {
            diary.record("\(signal)")
            if signal == .terminate { loop.stop(within: .seconds(3_600)) }
        }
    }

    @Test("SIGHUP is reported, SIGTERM stops gracefully, and a SIGINT after it stops at once")
    func signals() throws {
        let diary = Diary()
        let server: LoopThread = try .init { loop in
            EventLoop.blockSignals()
            try? loop.watchSignals()
            return Obedient(loop, diary)
        }
        let peer = try TestPeer(port: server.port)
        try peer.upgrade()
        // To the loop's own thread, so that the test process is spared.
        _ = try server.onLoop { _ in pthread_kill(pthread_self(), SIGHUP) == 0 }
        waitFor { diary.lines == ["reload"] ? true : nil }
        _ = try server.onLoop { _ in pthread_kill(pthread_self(), SIGTERM) == 0 }
        #expect(try peer.readAnswer() == .close(1001))
        #expect(diary.lines == ["reload", "terminate"])
        _ = try server.onLoop { _ in pthread_kill(pthread_self(), SIGINT) == 0 }
        server.waitForEnd()
        #expect(diary.ends == [.stopping])
    }

    @Test("a quiesced loop accepts no connection and reads nothing more, but work in progress is answered")
    func quiesce() throws {
        let diary = Diary()
        let server: LoopThread = try .init { EchoDelegate($0, diary) }
        let (socket, waiting): (TestPeer, TestPeer) = (try .init(port: server.port), try .init(port: server.port))
        try socket.upgrade()
        let id: ConnectionID = waitFor { diary.opened.first }
        try waiting.send("GET /never HTTP/1.1\r\nHost: x\r\n\r\n")
        waitFor { diary.lines.contains("GET /never via 0") ? true : nil }
        _ = try server.onLoop { loop in
            loop.quiesce()
            return true
        }
        #expect(throws: TestPeer.PeerError.self) { _ = try TestPeer(port: server.port) }
        try socket.sendFrame(.text, Array("unread".utf8))
        _ = try server.onLoop { loop in
            loop.send(id, text: Array("the outcome".utf8))
            return true
        }
        #expect(try socket.readAnswer() == .text(Array("the outcome".utf8)))
        #expect(diary.received.value == 0)
        try server.handle.post { $0.stop(within: .milliseconds(50)) }
        #expect(try socket.readAnswer() == .close(1001))
        server.waitForEnd()
    }

    @Test("the timer queue gives what a sorted list would give")
    func timerQueue() {
        let seed: UInt64 = .random(in: .min ... .max)
        var random = SeededRandom(seed: seed)
        var queue = TimerQueue()
        var model: [(deadline: Int64, number: Int, id: TimerID)] = []
        var (fired, expected): ([Int], [Int]) = ([], [])
        let log = Mutex<[Int]>([])
        for number: Int in 0..<3_000 {
            switch Int.random(in: 0..<5, using: &random) {
            case 0..<3:
                let deadline: Int64 = .random(in: 0..<500, using: &random)
                model.append((deadline, number, queue.schedule(at: deadline) { log.withLock { $0.append(number) } }))
            case 3:
                guard let index: Int = model.indices.randomElement(using: &random) else { continue }
                queue.cancel(model.remove(at: index).id)
            default:
                let now: Int64 = .random(in: 0..<500, using: &random)
                while let action: () -> Void = queue.takeDue(now) { action() }
                let due = model.filter { $0.deadline <= now }.sorted {
                    ($0.deadline, $0.number) < ($1.deadline, $1.number)
                }
                expected += due.map(\.number)
                model.removeAll { $0.deadline <= now }
            }
            #expect(queue.count == model.count)
            #expect(queue.nextDeadline() == model.map(\.deadline).min())
        }
        fired = log.withLock { $0 }
        #expect(fired == expected, "seed \(seed)")
        #expect(!fired.isEmpty)
    }

    @Test("the outbox gives the bytes of its frames in order, in whatever portions")
    func outbox() {
        let seed: UInt64 = .random(in: .min ... .max)
        var random = SeededRandom(seed: seed)
        let gather: UnsafeMutableRawBufferPointer = .allocate(byteCount: 256, alignment: 16)
        defer { gather.deallocate() }
        var outbox = Outbox()
        var (model, written): ([UInt8], [UInt8]) = ([], [])
        var gone = 0
        for _: Int in 0..<5_000 {
            if Int.random(in: 0..<3, using: &random) > 0 {
                let frame: [UInt8] = (0..<Int.random(in: 0...300, using: &random)).map { _ in
                    .random(in: 0...255, using: &random)
                }
                outbox.append(frame)
                model += frame
            } else if !outbox.isEmpty {
                let taken: [UInt8] = outbox.withNext(gather: gather) { bytes in
                    Array(bytes.prefix(.random(in: 1...max(1, bytes.count), using: &random)))
                }
                outbox.consume(taken.count)
                written += taken
                gone += taken.count
            }
            #expect(outbox.count == model.count - gone)
        }
        while !outbox.isEmpty {
            let taken: [UInt8] = outbox.withNext(gather: gather) { Array($0) }
            outbox.consume(taken.count)
            written += taken
        }
        #expect(written == model, "seed \(seed)")
    }

    @Test("an outbox that is given up keeps only the frame that has begun to leave")
    func dropUnstarted() {
        let gather: UnsafeMutableRawBufferPointer = .allocate(byteCount: 8, alignment: 16)
        defer { gather.deallocate() }
        var outbox = Outbox()
        for frame: [UInt8] in [[1, 2, 3], [4, 5], [6]] { outbox.append(frame) }
        outbox.consume(1)
        outbox.dropUnstarted()
        #expect(outbox.count == 2)
        outbox.append([9])
        #expect(outbox.withNext(gather: gather) { Array($0) } == [2, 3, 9])
        outbox.consume(3)
        outbox.append([7])
        outbox.dropUnstarted()
        #expect(outbox.isEmpty)
    }
}
