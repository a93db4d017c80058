internal import CThicketTLS
import Glibc
import ThicketCrypto
import ThicketPlatform

/// Paths of the certificate and the key, both PEM.
public struct TLSFiles: Sendable, Equatable {
    /// The server's certificate first, then the intermediate certificates.
    public let certificate: String
    /// Its private key, without a passphrase.
    public let key: String

    /// Names the two files.
    public init(certificate: String, key: String) { (self.certificate, self.key) = (certificate, key) }
}

/// Why the certificate and key cannot be used: the file, the problem and the remedy.
public struct TLSError: Error, Equatable, CustomStringConvertible {
    /// Path of the file.
    public let path: String
    /// What is wrong with it.
    public let problem: String
    /// What the operator can do about it.
    public let remedy: String
    /// Path, problem and remedy in one line.
    public var description: String { "\(path): \(problem); \(remedy)" }
}

/// One certificate with its key, and the TLS parameters used with it: 1.2 and 1.3, ciphers with forward secrecy, no
/// renegotiation, no compression, `http/1.1` (decision 0029). Connections keep the context they began with.
public final class TLSContext {
    let raw: OpaquePointer
    /// Seconds since 1970 at which the certificate's validity begins and ends.
    public let validity: Range<Int64>
    /// The certificate's subject, for the log.
    public let subject: String
    private var ticketKeys = [UInt8]()
    /// Nanoseconds of the monotonic clock at which the ticket keys were made.
    private var ticketKeysMade = Int64.min

    /// How long tickets use the same keys. Stolen keys decrypt TLS 1.2 sessions that were resumed with tickets.
    private static let ticketKeysNanoseconds: Int64 = 6 * 3_600 * 1_000_000_000
    /// Bytes of a PEM file; a larger file is not a certificate or key.
    private static let fileBytesMax = 1 << 20

    /// Reads both files.
    public init(_ files: TLSFiles) throws(TLSError) {
        try Self.look(files.certificate)
        try Self.look(files.key)
        guard let made = thicket_tls_server_context() else {
            throw Self.error(files.certificate, "OpenSSL could not start", "check that OpenSSL 3 is installed")
        }
        raw = made
        do throws(TLSError) {
            try Self.load(files, made)
        } catch {
            SSL_CTX_free(made)
            throw error
        }
        let begin = thicket_tls_certificate_time(made, 0)
        validity = begin..<max(begin, thicket_tls_certificate_time(made, 1))
        subject = Self.text { thicket_tls_certificate_subject(made, $0, $1) }
    }

    deinit { SSL_CTX_free(raw) }

    private static func look(_ path: String) throws(TLSError) {
        guard !path.utf8.elementsEqual("none".utf8) else {
            throw TLSError(
                path: "tls-cert, tls-key", problem: "one of the two is not set",
                remedy: "TLS needs a certificate and its key")
        }
        guard access(path, R_OK) == 0 else {
            let reason = SystemError.reason(errno)
            throw TLSError(
                path: path, problem: "cannot be read: \(reason)",
                remedy: "set --tls-cert and --tls-key to PEM files that the server's user can read")
        }
    }

    private static func load(_ files: TLSFiles, _ context: OpaquePointer) throws(TLSError) {
        guard SSL_CTX_use_certificate_chain_file(context, files.certificate) == 1 else {
            throw error(
                files.certificate, "contains no usable certificate",
                "it must be PEM: the server's own certificate first, then the intermediate ones")
        }
        guard SSL_CTX_use_PrivateKey_file(context, files.key, SSL_FILETYPE_PEM) == 1 else {
            if ERR_GET_LIB(ERR_peek_last_error()) == ERR_LIB_X509 {
                throw error(files.key, "does not belong to \(files.certificate)", "give the key that it was made for")
            }
            if thicket_tls_wants_passphrase() != 0 {
                throw error(
                    files.key, "requires a passphrase",
                    "remove it with 'openssl pkey -in \(files.key) -out new.key', in a file of mode 0600")
            }
            throw error(files.key, "contains no usable private key", "it must be PEM: '-----BEGIN PRIVATE KEY'")
        }
        guard SSL_CTX_check_private_key(context) == 1 else {
            throw error(files.key, "does not belong to \(files.certificate)", "give the key that it was made for")
        }
    }

    /// Adds OpenSSL's own reason and empties its error queue.
    private static func error(_ path: String, _ problem: String, _ remedy: String) -> TLSError {
        let reason = text { thicket_tls_problem($0, $1) }
        return TLSError(path: path, problem: "\(problem) (\(reason))", remedy: remedy)
    }

    private static func text(_ write: (UnsafeMutablePointer<CChar>, Int32) -> Int32) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { room in
            guard let start = room.baseAddress else { return "" }
            let count = Int(max(0, write(start, 512)))
            return String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
        }
    }

    /// Adopts ticket keys, because clients that reconnect after a reload present tickets of the previous
    /// certificate.
    func adoptTicketKeys(of other: TLSContext) {
        guard !other.ticketKeys.isEmpty else { return }
        (ticketKeys, ticketKeysMade) = (other.ticketKeys, other.ticketKeysMade)
        _ = thicket_tls_set_ticket_keys(raw, &ticketKeys)
    }

    /// Creates the server side of TLS on a connection's socket; nil: out of memory.
    /// - Parameter now: nanoseconds of the monotonic clock.
    func accept(_ descriptor: Int32, now: Int64) -> TLSStream? {
        if ticketKeys.isEmpty || now - ticketKeysMade > Self.ticketKeysNanoseconds {
            (ticketKeys, ticketKeysMade) = (RandomBytes.make(80), now)
            _ = thicket_tls_set_ticket_keys(raw, &ticketKeys)
        }
        return thicket_tls_accept_on(raw, descriptor).map(TLSStream.init)
    }
}
