internal import CThicketTLS

/// A client's end of TLS over a socket that blocks: for `thicketd health`, tests and measurements.
///
/// It does not look at who answers: whoever cares compares `peerKeyHash`. Used by one thread at a time.
package final class TLSClientSocket {
    /// The TLS versions, as far as a client wants to be narrow.
    package enum Version: Sendable { case any, tls12, tls13 }

    /// What a client remembers to come back without a full handshake.
    package final class Ticket {
        let raw: OpaquePointer
        init(_ raw: OpaquePointer) { self.raw = raw }
        deinit { SSL_SESSION_free(raw) }
    }

    /// What a client's connections have in common. OpenSSL counts who uses it under a lock of its own, and nobody
    /// changes it once it is made.
    package final class Context: @unchecked Sendable {
        let raw: OpaquePointer

        /// nil: OpenSSL could not start.
        package init?(_ version: Version = .any) {
            guard let made = thicket_tls_client_context() else { return nil }
            raw = made
            switch version {
            case .any: break
            case .tls12: _ = thicket_tls_use_version(made, TLS1_2_VERSION)
            case .tls13: _ = thicket_tls_use_version(made, TLS1_3_VERSION)
            }
        }

        deinit { SSL_CTX_free(raw) }
    }

    private let raw: OpaquePointer

    /// Shakes hands on a connected socket, which stays its owner's.
    /// - Returns: nil when the other side does not speak TLS, or not with us.
    package init?(_ descriptor: Int32, _ context: Context, ticket: Ticket? = nil) {
        guard let made = thicket_tls_connect_on(context.raw, descriptor, ticket?.raw) else { return nil }
        raw = made
        guard thicket_tls_handshake(made) == 1 else {
            ERR_clear_error()
            return nil
        }
    }

    deinit { SSL_free(raw) }

    /// - Returns: how many bytes came; 0 at the end, below 0 when the connection broke or the socket's patience is
    ///   over.
    package func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        switch TLSOutcome(thicket_tls_read(raw, room.baseAddress, room.count)) {
        case .bytes(let count): count
        case .ended: 0
        case .wantsRead, .wantsWrite, .broken: -1
        }
    }

    /// Sends all of it.
    /// - Returns: whether the connection took it.
    package func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !bytes.isEmpty else { return true }
        return TLSOutcome(thicket_tls_write(raw, bytes.baseAddress, bytes.count)) == .bytes(bytes.count)
    }

    /// Tells the server that nothing more comes.
    package func sayFarewell() { _ = thicket_tls_farewell(raw) }

    package var isResumed: Bool { thicket_tls_was_resumed(raw) != 0 }

    /// What to come back with: in TLS 1.3 when something has been read, and only good after a farewell.
    package var ticket: Ticket? { SSL_get1_session(raw).map(Ticket.init) }

    /// `TLSv1.3` and the like.
    package var version: String { SSL_get_version(raw).map { String(cString: $0) } ?? "" }

    /// SHA-256 of the server's public key (its SubjectPublicKeyInfo); empty without a certificate.
    package var peerKeyHash: [UInt8] {
        var hash = [UInt8](repeating: 0, count: 32)
        return thicket_tls_peer_key_hash(raw, &hash) == 32 ? hash : []
    }
}
