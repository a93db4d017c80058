import Testing
import ThicketTestSupport

@testable import ThicketServer

/// The session alone, on a simulated clock.
@Suite("SockJS sessions")
struct SockJSSessionTests {
    private static let second: Int64 = 1_000_000_000
    private let poll = SockJSReceiver(.xhr)
    private let stream = SockJSReceiver(.xhrStreaming)

    private static func text(_ actions: [SockJSSession.Action]) -> [String] {
        actions.map { (action: SockJSSession.Action) in
            switch action {
            case .write(let bytes): String(decoding: bytes, as: UTF8.self)
            case .finish: "finish"
            case .ended: "ended"
            case .forget: "forget"
            }
        }
    }

    private static func element(_ text: String) -> [UInt8] { SockJSText.element(text.utf8) }

    private func session(_ change: (inout SockJSRules) -> Void = { _ in }) -> SockJSSession {
        var rules = SockJSRules()
        change(&rules)
        return SockJSSession(rules: rules, now: 0)
    }

    /// A session whose first poll has been answered.
    private func polled(_ change: (inout SockJSRules) -> Void = { _ in }) -> SockJSSession {
        var session: SockJSSession = session(change)
        _ = session.attach(poll, now: 0)
        _ = session.flush(now: 0)
        return session
    }

    @Test("the first receiver gets the open frame, and a poll gets nothing else")
    func opening() {
        var session: SockJSSession = session()
        #expect(session.attach(poll, now: 0) == .admitted)
        #expect(session.enqueue(Self.element("x")) == true)
        #expect(Self.text(session.flush(now: 0)) == ["o\n", "finish"])
        #expect(session.attach(poll, now: 0) == .admitted)
        #expect(Self.text(session.flush(now: 0)) == ["a[\"x\"]\n", "finish"])
    }

    @Test("queued messages go to the next receiver in one frame, in order")
    func queueing() {
        var session: SockJSSession = polled()
        for text: String in ["1", "2", "3"] { #expect(session.enqueue(Self.element(text)) == true) }
        #expect(session.queueBytes == 9)
        #expect(session.flush(now: 1).isEmpty)
        #expect(session.attach(poll, now: 1) == .admitted)
        #expect(Self.text(session.flush(now: 1)) == ["a[\"1\",\"2\",\"3\"]\n", "finish"])
        #expect(session.queueBytes == 0)
    }

    @Test("a stream continues after the open frame and ends when it is long enough; the rest stays queued")
    func responseLimit() {
        var session: SockJSSession = session { $0.responseBytesMax = 100 }
        #expect(session.attach(stream, now: 0) == .admitted)
        #expect(Self.text(session.flush(now: 0)) == ["o\n"])
        let long = String(repeating: "x", count: 40)
        for _ in 0..<5 { #expect(session.enqueue(Self.element(long)) == true) }
        let frame = "a[\"\(long)\",\"\(long)\"]\n"
        // Two of 42 make a frame; with the open frame it is 91 bytes, so one more frame goes.
        #expect(Self.text(session.flush(now: 0)) == [frame, frame, "finish"])
        #expect(session.queueBytes == 42)
        #expect(session.attach(stream, now: 0) == .admitted)
        #expect(Self.text(session.flush(now: 0)) == ["a[\"\(long)\"]\n"])
    }

    @Test("a second receiver is refused with 2010, and the first one continues")
    func busy() {
        var session: SockJSSession = session()
        _ = session.attach(stream, now: 0)
        _ = session.flush(now: 0)
        let refusal: [UInt8] = Array("c[2010,\"Another connection still open\"]\n".utf8)
        #expect(session.attach(poll, now: 0) == .refused(refusal))
        #expect(session.enqueue(Self.element("x")) == true)
        #expect(Self.text(session.flush(now: 0)) == ["a[\"x\"]\n"])
    }

    @Test("a closed session reports its close to its receiver and to later ones, and is forgotten after 5 s")
    func closing() {
        var session: SockJSSession = polled()
        _ = session.attach(stream, now: 0)
        #expect(session.enqueue(Self.element("x")) == true)
        let actions: [SockJSSession.Action] = session.close(3000, "Go away!", now: 0)
        #expect(Self.text(actions) == ["a[\"x\"]\n", "c[3000,\"Go away!\"]\n", "finish", "ended"])
        #expect(session.close(1000, "again", now: 0).isEmpty)
        let refusal: [UInt8] = Array("c[3000,\"Go away!\"]\n".utf8)
        for _ in 0..<2 { #expect(session.attach(poll, now: 4 * Self.second) == .refused(refusal)) }
        #expect(session.tick(now: 5 * Self.second - 1).isEmpty)
        #expect(Self.text(session.tick(now: 5 * Self.second)) == ["forget"])
    }

    @Test("a session without a receiver ends after 5 s, unless a receiver attaches before")
    func patience() {
        var session: SockJSSession = polled()
        #expect(session.tick(now: 5 * Self.second - 1).isEmpty)
        #expect(session.attach(poll, now: 5 * Self.second - 1) == .admitted)
        #expect(session.tick(now: 6 * Self.second).isEmpty)
        #expect(session.enqueue(Self.element("x")) == true)
        #expect(Self.text(session.flush(now: 8 * Self.second)) == ["a[\"x\"]\n", "finish"])
        #expect(session.tick(now: 13 * Self.second - 1).isEmpty)
        #expect(Self.text(session.tick(now: 13 * Self.second)) == ["ended", "forget"])
    }

    @Test("a receiver gets a heartbeat after 25 s of silence, a stream each 25 s, a poll once")
    func heartbeats() {
        var session: SockJSSession = session()
        _ = session.attach(stream, now: 0)
        _ = session.flush(now: 10 * Self.second)
        #expect(session.tick(now: 35 * Self.second - 1).isEmpty)
        #expect(Self.text(session.tick(now: 35 * Self.second)) == ["h\n"])
        #expect(session.tick(now: 60 * Self.second - 1).isEmpty)
        #expect(Self.text(session.tick(now: 60 * Self.second)) == ["h\n"])
        var polled: SockJSSession = polled()
        _ = polled.attach(poll, now: 0)
        #expect(Self.text(polled.tick(now: 25 * Self.second)) == ["h\n", "finish"])
        #expect(Self.text(polled.tick(now: 30 * Self.second)) == ["ended", "forget"])
    }

    @Test("a receiver that breaks off ends the session: the next gets 1002, and no queued message is lost unnoticed")
    func interruption() {
        var session: SockJSSession = polled()
        _ = session.attach(stream, now: 0)
        #expect(session.enqueue(Self.element("x")) == true)
        #expect(Self.text(session.vanished(now: 0)) == ["ended"])
        #expect(!session.isOpen)
        let refusal: [UInt8] = Array("c[1002,\"Connection interrupted\"]\n".utf8)
        #expect(session.attach(poll, now: 1) == .refused(refusal))
        #expect(session.queueBytes == 0)
    }

    @Test("the queue is bounded: the message that exceeds the bound fits, the next does not")
    func bound() {
        var session: SockJSSession = polled { $0.queueBytesMax = 10 }
        #expect(session.enqueue(Self.element("12345678")) == true)
        #expect(session.enqueue(Self.element("1")) == true)
        #expect(session.enqueue(Self.element("2")) == false)
        #expect(session.queueBytes == 13)
        #expect(Self.text(session.close(1013, "too slow", now: 0)) == ["ended"])
        #expect(session.queueBytes == 0)
    }

    @Test("whatever happens, each message is delivered once and in order, or the session is closed")
    func anyOrder() {
        for seed: UInt64 in 1...300 {
            var random = SeededRandom(seed: seed)
            var rules = SockJSRules()
            rules.responseBytesMax = Int.random(in: 4...60, using: &random)
            var run = Run(session: SockJSSession(rules: rules, now: 0))
            for _ in 0..<80 { run.step(&random) }
            #expect(run.isInOrder, "seed \(seed): \(run.received) of \(run.sent)")
            #expect(run.endings <= 1 && (run.endings == 1) == !run.session.isOpen, "seed \(seed)")
        }
    }

    /// A session with receivers that attach and leave.
    private struct Run {
        var session: SockJSSession
        var sent = 0
        var received: [Int] = []
        var endings = 0
        var isServed = false
        var time: Int64 = 0

        var isInOrder: Bool { received == Array(0..<received.count) && received.count <= sent }

        mutating func step(_ random: inout SeededRandom) {
            time += Int64.random(in: 0...SockJSSessionTests.second, using: &random)
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<8:
                if session.isOpen, session.enqueue(SockJSSessionTests.element("\(sent)")) { sent += 1 }
            case 8..<13:
                let receiver = SockJSReceiver(Bool.random(using: &random) ? .xhr : .xhrStreaming)
                if session.attach(receiver, now: time) == .admitted { isServed = true }
            case 13..<18: receive(session.flush(now: time))
            case 18: receive(session.tick(now: time))
            default:
                if isServed, Int.random(in: 0..<8, using: &random) == 0 {
                    isServed = false
                    receive(session.vanished(now: time))
                }
            }
        }

        private mutating func receive(_ actions: [SockJSSession.Action]) {
            for action in actions {
                switch action {
                case .write(let bytes): receive(String(decoding: bytes, as: UTF8.self))
                case .finish: isServed = false
                case .ended: endings += 1
                case .forget: break
                }
            }
        }

        private mutating func receive(_ frame: String) {
            guard frame.hasPrefix("a[") else { return }
            received += frame.dropFirst(2).split { !$0.isNumber }.compactMap { Int($0) }
        }
    }
}
