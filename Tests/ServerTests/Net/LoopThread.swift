import CThicketNet
import Glibc
import Synchronization
@testable import ThicketNet
@testable import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// Runs an event loop on its own thread while a test needs it.
final class LoopThread: Sendable {
    struct Started: Sendable {
        let handle: LoopHandle
        let listeners: [Listener]
    }

    private let state: Mutex<Result<Started, NetError>?> = .init(nil)
    private let isOver = Mutex<Bool>(false)
    private let isSecure: Bool
    let metrics = Metrics()

    /// - socketPath: listen at this path too, as listener 1.
    ///   - socketPath: listen here too, as listener 1.
    /// - delegate: makes the delegate; called on the loop's thread.
    init(
        settings: NetSettings = .init(), socketPath: String? = nil,
        delegate: @escaping @Sendable (EventLoop) -> any LoopDelegate
    ) throws {
        isSecure = SecureEdge.isOn
        Threads.start { [self] in serve(settings, socketPath, delegate) }
        let started: Result<Started, NetError> = waitFor { state.withLock { $0 } }
        _ = try started.get()
    }

    private func serve(
        _ settings: NetSettings, _ socketPath: String?, _ delegate: @Sendable (EventLoop) -> any LoopDelegate
    ) {
        defer { isOver.withLock { $0 = true } }
        do throws(NetError) {
            let loop = try EventLoop(settings: settings, metrics: metrics.net)
            if isSecure { loop.use(try Self.context()) }
            var listeners: [Listener] = [try loop.listen(host: "127.0.0.1", port: 0, isSecure: isSecure)]
            if isSecure { SecureEdge.add(port: listeners[0].port) }
            defer { SecureEdge.remove(port: listeners[0].port) }
            if let socketPath { listeners.append(try loop.listen(path: socketPath)) }
            loop.delegate = delegate(loop)
            let started = Started(handle: loop.handle, listeners: listeners)
            state.withLock { $0 = .success(started) }
            loop.run()
        } catch {
            state.withLock { $0 = .failure(error) }
        }
    }

    private static func context() throws(NetError) -> TLSContext {
        let files: (certificate: String, key: String) = SecureEdge.files
        do throws(TLSError) {
            return try TLSContext(TLSFiles(certificate: files.certificate, key: files.key))
        } catch {
            throw NetError.tls(error)
        }
    }

    private var started: Started { get throws { try waitFor { state.withLock { $0 } }.get() } }
    var port: Int { get throws { try started.listeners[0].port } }
    var handle: LoopHandle { get throws { try started.handle } }

    /// Runs `body` on the loop and returns its value.
    func onLoop<Value: Sendable>(_ body: @escaping @Sendable (EventLoop) -> Value) throws -> Value {
        let box = Box<Value>()
        try handle.post { loop in box.value.withLock { $0 = body(loop) } }
        return waitFor { box.value.withLock { $0 } }
    }

    /// Stops the loop and waits for its thread.
    func stop(within grace: Duration = .milliseconds(20)) throws {
        try handle.post { loop in loop.stop(within: grace) }
        waitForEnd()
    }

    func waitForEnd() { _ = waitFor { isOver.withLock { $0 ? true : nil } } }
}

final class Box<Value: Sendable>: Sendable {
    let value: Mutex<Value?> = .init(nil)
}

/// Waits for something that another thread does, checking every half millisecond; ends the test run after two minutes.
@discardableResult
func waitFor<Value>(_ condition: () -> Value?) -> Value {
    for _: Int in 0..<240_000 {
        if let value: Value = condition() { return value }
        usleep(500)
    }
    preconditionFailure("waited two minutes for something that never happened")
}

/// Plain threads.
enum Threads {
    private final class Body {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    static func start(_ run: @escaping @Sendable () -> Void) {
        var thread: pthread_t = 0
        let argument: UnsafeMutableRawPointer = Unmanaged.passRetained(Body(run)).toOpaque()
        let result: Int32 = pthread_create(&thread, nil, threadMain, argument)
        precondition(result == 0)
        pthread_detach(thread)
    }

    fileprivate static func enter(_ argument: UnsafeMutableRawPointer) {
        Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
    }
}

private func threadMain(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let argument { Threads.enter(argument) }
    return nil
}

/// Echoes every message, and records events in a diary.
final class EchoDelegate: LoopDelegate {
    private unowned let loop: EventLoop
    let diary: Diary
    private var awaiting: [ConnectionID] = []

    init(_ loop: EventLoop, _ diary: Diary = .init()) { (self.loop, self.diary) = (loop, diary) }

    func answer(_ request: HTTPRequest, on connection: ConnectionID, via listener: Listener) -> HTTPDisposition {
        diary.record("\(request.method) \(request.path) via \(listener.number)")
        switch request.path {
        case "/ws": return .upgrade
        case "/hello": return .respond(.text(200, "hello"))
        case "/big": return .respond(.text(200, String(repeating: "x", count: 100_000)))
        case "/echo": return .respond(HTTPResponse(status: 200, body: request.body))
        case "/later":
            loop.schedule(after: .milliseconds(1)) { [loop] in loop.respond(connection, .text(200, "at last")) }
            return .later
        case "/never": return .later
        default: return .respond(.text(404, "not found"))
        }
    }

    func opened(_ connection: ConnectionID, _ request: HTTPRequest) { diary.record(opened: connection) }

    func received(_ connection: ConnectionID, text: UnsafeRawBufferPointer) {
        diary.received.add()
        loop.send(connection, text: text)
    }

    func received(_ connection: ConnectionID, binary: UnsafeRawBufferPointer) {
        loop.send(connection, binary: binary)
    }

    func closed(_ connection: ConnectionID, _ end: ConnectionEnd) { diary.record(end: end) }
}

/// Events that a delegate recorded, for the test's thread to read.
final class Diary: Sendable {
    private let state: Mutex<(lines: [String], ends: [ConnectionEnd], opened: [ConnectionID])> = .init(([], [], []))
    /// Messages received.
    let received = Gauge("received", "")
    func record(_ line: String) { state.withLock { $0.lines.append(line) } }
    func record(end: ConnectionEnd) { state.withLock { $0.ends.append(end) } }
    func record(opened: ConnectionID) { state.withLock { $0.opened.append(opened) } }
    var lines: [String] { state.withLock { $0.lines } }
    var ends: [ConnectionEnd] { state.withLock { $0.ends } }
    var opened: [ConnectionID] { state.withLock { $0.opened } }
}
