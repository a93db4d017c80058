/// A limit of the loop that was reached.
public enum NetLimit: Sendable {
    /// A body arrived too slowly.
    case bodyPace
    /// Connections of the server.
    case connections
    /// Too many bytes of unfinished messages of one user, of unauthenticated connections, or in all.
    case gatheredBytes
    /// A TLS handshake was not complete in time.
    case handshakeTime
    /// The head of a request was not complete in time.
    case headTime
    /// Size of the head of an HTTP request.
    case headBytes
    /// A user, or the unauthenticated connections, took more than their share of the loop's time and are throttled.
    case loopShare
    /// A WebSocket message arrived too slowly.
    case messagePace
    /// A response was read too slowly.
    case readPace
    /// A user, or the unauthenticated connections, used up their share of a turn of the loop.
    case turn
    /// Too many bytes wait to be read by one user.
    case userPendingBytes
}
