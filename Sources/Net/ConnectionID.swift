import ThicketProtocol
import ThicketScheduling

/// Identifies one connection during its lifetime. An identifier of an ended connection is harmless: output sent to it
/// is dropped.
public struct ConnectionID: Hashable, Sendable, CustomStringConvertible {
    /// A small number, unique among open connections and used again by later ones, suitable as an array index. It is
    /// the file descriptor; below 0 it identifies a session without a socket of its own (SockJS).
    public let slot: Int32
    /// Distinguishes the connections of one slot; never 0.
    public let serial: UInt32

    /// Creates the identifier of a slot's connection.
    public init(slot: Int32, serial: UInt32) { (self.slot, self.serial) = (slot, serial) }
    /// `slot.serial`, for logs.
    public var description: String { "\(slot).\(serial)" }
    /// Whether a socket belongs to it; the loop handles only these.
    public var isSocket: Bool { slot >= 0 }
}

/// Why a WebSocket ended; reported once to the delegate for each WebSocket.
public enum ConnectionEnd: Equatable, Sendable {
    /// The peer sent a close frame, with this code if any.
    case peer(WebSocketCloseCode?)
    /// The peer ended without a close frame, or its socket failed.
    case vanished
    /// The peer broke the protocol or exceeded a bound; it received the failure's code.
    case refused(WebSocketFailure)
    /// The peer did not read its output; it received 1013 and catches up when it reconnects.
    case slowReader
    /// The server holds too many bytes of unfinished messages; the peer received 1013.
    case crowded
    /// No byte was received from or accepted by the peer for the idle timeout.
    case idle
    /// The delegate closed it with this code.
    case closed(WebSocketCloseCode)
    /// The server stops; the peer received 1001.
    case stopping
}

/// A place where the loop accepts connections.
public struct Listener: Hashable, Sendable {
    /// Counted from 0 in the order of `listen` calls.
    public let number: Int
    /// The TCP port in use; 0 for a Unix-domain socket.
    public let port: Int
    /// For display: `127.0.0.1:8000`, or a path.
    public let address: String
    /// Whether connections must use TLS.
    public let isSecure: Bool
}

/// A signal that the loop turned into an event.
public enum LoopSignal: Sendable, Equatable {
    /// SIGTERM or SIGINT: stop in order. A second one ends `run` at once.
    case terminate
    /// SIGHUP: reload the settings and files that can be reloaded.
    case reload
}

/// The delegate's decision on a request.
public enum HTTPDisposition: Sendable {
    /// Answer now.
    case respond(HTTPResponse)
    /// The answer follows by `EventLoop.respond(_:_:)`; the connection is not read until then.
    case later
    /// Like `later`, for an answer that may take long: if the peer ends first, its connection is dropped, and the
    /// delegate receives `closed`.
    case waits
    /// Begin an answer without a known length: its head and, as the first chunk, its body. The rest follows by
    /// `EventLoop.write(_:chunk:)` and `EventLoop.finish(_:)`; the peer's end is reported as for `waits`.
    case stream(HTTPResponse)
    /// Upgrade to a WebSocket. A request without a valid upgrade is answered 400 or 426 instead.
    case upgrade
}

/// Decides what happens to the loop's input. All calls come on the loop's thread. In between, the delegate may call any
/// method of the loop; none of those calls the delegate back.
public protocol LoopDelegate: AnyObject {
    /// A request is complete.
    func answer(_ request: HTTPRequest, on connection: ConnectionID, via listener: Listener) -> HTTPDisposition
    /// The connection has become a WebSocket.
    func opened(_ connection: ConnectionID, _ request: HTTPRequest)
    /// A whole text message, valid UTF-8; the bytes are valid only during the call.
    func received(_ connection: ConnectionID, text: UnsafeRawBufferPointer)
    /// The same for a message that arrived in pieces; the delegate owns the bytes.
    func received(_ connection: ConnectionID, gathered text: [UInt8])
    /// A whole binary message; only with `NetSettings.acceptsBinary`.
    func received(_ connection: ConnectionID, binary: UnsafeRawBufferPointer)
    /// A WebSocket ended: called exactly once for each `opened`, as the last call for it. Also called when a connection
    /// ends during a `.waits` request (`HTTPDisposition.waits`) or an unfinished answer (`.stream`).
    func closed(_ connection: ConnectionID, _ end: ConnectionEnd)
    /// Most bytes of the request's body if the delegate wants it in pieces; nil: `answer` gets it as a whole. Called
    /// for each head; the request has no body yet. Chunked and empty bodies always come as a whole.
    func streamedBodyMax(of head: HTTPRequest) -> Int?
    /// A request has begun whose body comes in pieces. It is read after `EventLoop.acceptBody`, and answered by
    /// `EventLoop.respond`. If the connection ends before the last piece, `closed` is called.
    func begins(_ request: HTTPRequest, length: Int, on connection: ConnectionID)
    /// The next bytes of that body, valid only during the call.
    func received(_ connection: ConnectionID, body: UnsafeRawBufferPointer, isLast: Bool)
    /// The answer that was begun by `EventLoop.begin(_:_:)` needs its next piece.
    func wantsBody(_ connection: ConnectionID)
    /// A signal arrived.
    func signaled(_ signal: LoopSignal)
    /// The tenant that the connection's share of the loop is counted for; 0 while it is unauthenticated.
    func tenant(behind connection: ConnectionID) -> TenantID
    /// Whether another user waits for an answer: it wants the loop, however long ago it asked.
    func othersWait(than tenant: TenantID) -> Bool
    /// Everything that was ready has been handled; what is sent now still leaves in this turn.
    func turnEnded()
    /// Until when another thread is expected to answer, in nanoseconds of the monotonic clock: until then the loop
    /// polls before it sleeps. nil: no answer is expected soon.
    var expectsAnswerUntil: Int64? { get }
}

extension LoopDelegate {
    /// Passes the bytes on as an unowned text message.
    public func received(_ connection: ConnectionID, gathered text: [UInt8]) {
        text.withUnsafeBytes { received(connection, text: $0) }
    }
    /// Ignores binary messages.
    public func received(_ connection: ConnectionID, binary: UnsafeRawBufferPointer) {}
    /// Every body comes as a whole.
    public func streamedBodyMax(of head: HTTPRequest) -> Int? { nil }
    /// Not called for bodies that come as a whole.
    public func begins(_ request: HTTPRequest, length: Int, on connection: ConnectionID) {}
    /// Not called for bodies that come as a whole.
    public func received(_ connection: ConnectionID, body: UnsafeRawBufferPointer, isLast: Bool) {}
    /// Not called without answers in pieces.
    public func wantsBody(_ connection: ConnectionID) {}
    /// Ignores signals.
    public func signaled(_ signal: LoopSignal) {}
    /// Does nothing.
    public func turnEnded() {}
    /// No answer is expected.
    public var expectsAnswerUntil: Int64? { nil }
    /// Counts every connection as unauthenticated.
    public func tenant(behind connection: ConnectionID) -> TenantID { 0 }
    /// No other user waits.
    public func othersWait(than tenant: TenantID) -> Bool { false }
}
