internal import CThicketTLS

/// The client side of TLS over a blocking socket: for `thicketd health`, tests and measurements.
///
/// It does not verify the server; a caller that must do so compares `peerKeyHash`. Used by one thread at a time.
package final class TLSClientSocket {
    /// The TLS versions that a client allows.
    package enum Version: Sendable { case any, tls12, tls13 }

    /// A session ticket, for a later connection without a full handshake.
    package final class Ticket {
        let raw: OpaquePointer
        init(_ raw: OpaquePointer) { self.raw = raw }
        deinit { SSL_SESSION_free(raw) }
    }

    /// What a client's connections share. OpenSSL protects its reference count with a lock, and it is not changed after
    /// its creation.
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

    /// Performs the handshake on a connected socket, which its owner must close.
    /// - Returns: nil when the server does not speak TLS or the handshake fails.
    package init?(_ descriptor: Int32, _ context: Context, ticket: Ticket? = nil) {
        guard let made = thicket_tls_connect_on(context.raw, descriptor, ticket?.raw) else { return nil }
        raw = made
        guard thicket_tls_handshake(made) == 1 else {
            ERR_clear_error()
            return nil
        }
    }

    deinit { SSL_free(raw) }

    /// - Returns: number of bytes read; 0 at the end, below 0 when the connection broke or the socket's timeout is
    ///   over.
    package func read(into room: UnsafeMutableRawBufferPointer) -> Int {
        switch TLSOutcome(thicket_tls_read(raw, room.baseAddress, room.count)) {
        case .bytes(let count): count
        case .ended: 0
        case .wantsRead, .wantsWrite, .broken: -1
        }
    }

    /// Sends all of it.
    /// - Returns: whether the connection accepted it.
    package func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !bytes.isEmpty else { return true }
        return TLSOutcome(thicket_tls_write(raw, bytes.baseAddress, bytes.count)) == .bytes(bytes.count)
    }

    /// Tells the server that no more bytes follow.
    package func sayFarewell() { _ = thicket_tls_farewell(raw) }

    package var isResumed: Bool { thicket_tls_was_resumed(raw) != 0 }

    /// The ticket for a later connection: with TLS 1.3 available after the first read, and valid only after a farewell.
    package var ticket: Ticket? { SSL_get1_session(raw).map(Ticket.init) }

    /// For example `TLSv1.3`.
    package var version: String { SSL_get_version(raw).map { String(cString: $0) } ?? "" }

    /// SHA-256 of the server's public key (its SubjectPublicKeyInfo); empty without a certificate.
    package var peerKeyHash: [UInt8] {
        var hash = [UInt8](repeating: 0, count: 32)
        return thicket_tls_peer_key_hash(raw, &hash) == 32 ? hash : []
    }
}
