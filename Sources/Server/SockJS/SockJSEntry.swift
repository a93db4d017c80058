import ThicketProtocol

extension SockJSDoor {
    /// One session and what it has of the loop.
    final class Entry {
        let id: ConnectionID
        let key: Key?
        var session: SockJSSession
        /// Where its first receiver came from.
        var address = ""
        /// What takes its frames.
        var socket: ConnectionID?
        /// The transport of `socket`.
        var transport: SockJSTransport
        /// For a poll: the answer, so far without its body.
        var answer: HTTPResponse?
        /// Messages that the hub has not seen, and where they begin.
        var inbound = [[UInt8]]()
        var inboundStart = 0
        /// The request that brought them.
        var held: (connection: ConnectionID, answer: HTTPResponse)?
        var isPaused = false
        var isDirty = false
        var isPumping = false
        var isForgotten = false
        /// Code with which a socket is closed behind the last frame.
        var closeCode = WebSocketCloseCode.normal
        /// As counted into the door's sums.
        var countedBytes = 0
        var countedLane: UInt32 = 0

        init(id: ConnectionID, key: Key?, session: SockJSSession, transport: SockJSTransport) {
            (self.id, self.key, self.session, self.transport) = (id, key, session, transport)
        }
    }

    /// Names a session; both parts are ASCII.
    struct Key: Hashable {
        let app: AppID
        let session: String
    }
}
