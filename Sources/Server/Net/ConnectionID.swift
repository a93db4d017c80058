import ThicketProtocol

/// Names one connection for as long as it lives. A name whose connection is gone stays harmless: whatever is sent to
/// it goes nowhere.
public struct ConnectionID: Hashable, Sendable, CustomStringConvertible {
    /// A small number that no two living connections share, and that later connections use again: fit to index an
    /// array by. It is the file descriptor; below 0 it names a session that is tied to no socket (SockJS).
    public let slot: Int32
    /// Tells the connections of one slot apart; never 0.
    public let serial: UInt32

    public init(slot: Int32, serial: UInt32) { (self.slot, self.serial) = (slot, serial) }
    public var description: String { "\(slot).\(serial)" }
    /// Whether it is a socket's; the loop knows no others.
    public var isSocket: Bool { slot >= 0 }
}

/// Why a WebSocket ended, told once to the delegate for each that was opened.
public enum ConnectionEnd: Equatable, Sendable {
    /// The peer sent a close frame, with this code if any.
    case peer(WebSocketCloseCode?)
    /// The peer went away without a close frame, or its socket failed.
    case vanished
    /// The peer broke the protocol or a bound; it was told the failure's code.
    case refused(WebSocketFailure)
    /// The peer did not read what was sent to it; it was told 1013 and catches up when it comes back.
    case slowReader
    /// The server holds too many bytes of unfinished messages; it was told 1013.
    case crowded
    /// Nothing was heard from the peer for the idle timeout.
    case idle
    /// The delegate closed it with this code.
    case closed(WebSocketCloseCode)
    /// The server stops; the peer was told 1001.
    case stopping
}

/// A place where the loop accepts connections.
public struct Listener: Hashable, Sendable {
    /// Counted from 0 in the order of `listen` calls.
    public let number: Int
    /// The TCP port that was really bound; 0 for a Unix-domain socket.
    public let port: Int
    /// For people: `127.0.0.1:8000`, or a path.
    public let address: String
    /// Whether TLS is spoken here, and nothing else.
    public let isSecure: Bool
}

/// A signal the loop turned into an event.
public enum LoopSignal: Sendable, Equatable {
    /// SIGTERM or SIGINT: end in an orderly way. A second one ends `run` at once.
    case terminate
    /// SIGHUP: read again what can be read again.
    case reload
}

/// What the delegate wants done with a request.
public enum HTTPDisposition: Sendable {
    /// Answer now.
    case respond(HTTPResponse)
    /// The answer comes by `EventLoop.respond(_:_:)`; nothing more is read from the connection until then.
    case later
    /// As `later`, and the answer may be long in coming: if the peer ends before, its connection is dropped, and the
    /// delegate hears of it by `closed`.
    case waits
    /// Begin an answer without an end: its head and, as the first chunk, its body. The rest comes by
    /// `EventLoop.write(_:chunk:)` and `EventLoop.finish(_:)`; the peer's end is told as for `waits`.
    case stream(HTTPResponse)
    /// Make it a WebSocket. A request that does not ask for one properly is answered 400 or 426 instead.
    case upgrade
}

/// Decides what happens to what the loop reads. All calls come on the loop's thread and between them the delegate may
/// call any method of the loop; none of those calls back into the delegate.
public protocol LoopDelegate: AnyObject {
    /// A request is complete.
    func answer(_ request: HTTPRequest, on connection: ConnectionID, via listener: Listener) -> HTTPDisposition
    /// The connection is a WebSocket now.
    func opened(_ connection: ConnectionID, _ request: HTTPRequest)
    /// A whole text message, valid UTF-8; the bytes are gone when the call returns.
    func received(_ connection: ConnectionID, text: UnsafeRawBufferPointer)
    /// The same for a message that came in pieces and belongs to the delegate now.
    func received(_ connection: ConnectionID, gathered text: [UInt8])
    /// A whole binary message; only with `NetSettings.takesBinary`.
    func received(_ connection: ConnectionID, binary: UnsafeRawBufferPointer)
    /// A WebSocket ended; exactly once for each `opened`, and the last call about it. Or a connection did whose request
    /// was to be waited for (`HTTPDisposition.waits`), or whose answer had no end yet (`.stream`).
    func closed(_ connection: ConnectionID, _ end: ConnectionEnd)
    /// A signal came.
    func signaled(_ signal: LoopSignal)
    /// Who shares one part of the loop with whom: the number of the connection's user, 0 while it is nobody's.
    func group(of connection: ConnectionID) -> UInt32
    /// Whether anybody but that user waits for an answer: it wants the loop, however long ago it asked.
    func othersWait(than group: UInt32) -> Bool
    /// Everything that was ready has been handled; what is sent now still leaves with this turn.
    func turnEnded()
    /// Until when another thread is expected to answer, nanoseconds of the monotonic clock: until then the loop looks
    /// again and again before it sleeps. Nil: nothing is expected soon.
    var expectsAnswerUntil: Int64? { get }
}

extension LoopDelegate {
    public func received(_ connection: ConnectionID, gathered text: [UInt8]) {
        text.withUnsafeBytes { received(connection, text: $0) }
    }
    public func received(_ connection: ConnectionID, binary: UnsafeRawBufferPointer) {}
    public func signaled(_ signal: LoopSignal) {}
    public func turnEnded() {}
    public var expectsAnswerUntil: Int64? { nil }
    public func group(of connection: ConnectionID) -> UInt32 { 0 }
    public func othersWait(than group: UInt32) -> Bool { false }
}
