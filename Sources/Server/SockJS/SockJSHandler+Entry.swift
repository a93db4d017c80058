import ThicketNet
import ThicketProtocol
import ThicketScheduling

extension SockJSHandler {
    /// One session and its resources on the loop.
    final class Entry {
        let id: ConnectionID
        let key: Key?
        var session: SockJSSession
        /// The address of its first receiver.
        var address = ""
        /// The socket that receives its frames.
        var socket: ConnectionID?
        /// The transport of `socket`.
        var transport: SockJSTransport
        /// For a poll: the answer, still without its body.
        var answer: HTTPResponse?
        /// Messages that the hub has not received, and the index of the first one.
        var inbound = [[UInt8]]()
        var inboundStart = 0
        /// The request that brought them.
        var held: (connection: ConnectionID, answer: HTTPResponse)?
        var isPaused = false
        var isDirty = false
        var isPumping = false
        var isForgotten = false
        /// Close code for a socket after the last frame.
        var closeCode = WebSocketCloseCode.normal
        /// Bytes as counted in the sums of `SockJSHandler`.
        var countedBytes = 0
        var countedTenant: TenantID = 0

        init(id: ConnectionID, key: Key?, session: SockJSSession, transport: SockJSTransport) {
            (self.id, self.key, self.session, self.transport) = (id, key, session, transport)
        }
    }

    /// Identifies a session; both parts are ASCII.
    struct Key: Hashable {
        let app: AppID
        let session: String
    }
}
