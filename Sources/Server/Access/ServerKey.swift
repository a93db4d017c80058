import Glibc
public import ThicketAuth
import ThicketCrypto

/// The key that seals partners' auth keys in the database and checks the keys of accounts. It is in a file of its
/// own, so that an attacker with the database or a backup cannot act as a partner.
public struct ServerKey: Sendable {
    /// Bytes of the file.
    static let bytesCount = 32
    private let sealing: AEAD
    private let naming: MessageKey256
    /// Hash key of this file, for verifiers.
    private let pepper: [UInt8]
    /// The same of earlier files (`KeyRotation`), the oldest first.
    private var peppersBefore = [[UInt8]]()
    private var pretending: [UInt8]

    init(_ secret: [UInt8]) {
        precondition(secret.count == Self.bytesCount, "a server key has 32 bytes")
        // A separate key for each use is derived from the one secret.
        let sealingKey = Hash.hmacSHA256(key: secret, Array("thicket/server/seal/1".utf8))
        guard let sealing = try? AEAD(.aes256GCM, key: SecureBytes(copying: sealingKey)) else {
            preconditionFailure("a code of HMAC-SHA-256 has 32 bytes")
        }
        self.sealing = sealing
        naming = MessageKey256(Hash.hmacSHA256(key: secret, Array("thicket/server/name/1".utf8)))
        pepper = Hash.hmacSHA256(key: secret, Array("thicket/server/pepper/1".utf8))
        pretending = Hash.hmacSHA256(key: secret, Array("thicket/server/pretence/1".utf8))
    }

    /// Reads the file; creates it, readable only by its owner, if it does not exist.
    public static func load(_ path: String) throws(ServerKeyError) -> ServerKey {
        if let kept = try read(path) { return kept }
        try make(path)
        guard let made = try read(path) else {
            throw ServerKeyError(path, "it was created, and another program has removed it")
        }
        return made
    }

    /// - Returns: nil when the file does not exist.
    static func read(_ path: String) throws(ServerKeyError) -> ServerKey? { try secret(in: path).map(ServerKey.init) }

    /// The bytes of a key file.
    /// - Returns: nil when the file does not exist.
    static func secret(in path: String) throws(ServerKeyError) -> [UInt8]? {
        let file = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        if file < 0 {
            guard errno == ENOENT else { throw ServerKeyError(path, DataFolder.reason(errno)) }
            return nil
        }
        defer { close(file) }
        var info = stat()
        guard fstat(file, &info) == 0 else { throw ServerKeyError(path, DataFolder.reason(errno)) }
        guard info.st_mode & 0o077 == 0 else {
            throw ServerKeyError(path, "other users may read it; 'chmod 600' it, or treat its secrets as known")
        }
        var secret = [UInt8](repeating: 0, count: bytesCount + 1)
        let count = Glibc.read(file, &secret, secret.count)
        guard count == bytesCount else {
            throw ServerKeyError(path, "it does not hold \(bytesCount) bytes: restore the original file")
        }
        return Array(secret.prefix(bytesCount))
    }

    /// Makes a key file. It gets its name only when it is complete and on disk; an existing file stays.
    static func make(_ path: String) throws(ServerKeyError) {
        let partial = path + ".partial-\(getpid())"
        let secret = RandomBytes.make(bytesCount)
        let file = Glibc.open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw ServerKeyError(path, DataFolder.reason(errno)) }
        let isWritten = write(file, secret, secret.count) == secret.count && fsync(file) == 0
        let reason = DataFolder.reason(errno)
        close(file)
        defer { unlink(partial) }
        guard isWritten else { throw ServerKeyError(path, reason) }
        // A link, not a rename: of two programs that create it at once, one must find the name taken.
        guard link(partial, path) == 0 || errno == EEXIST else { throw ServerKeyError(path, DataFolder.reason(errno)) }
        let folder = Glibc.open(Files.folder(of: path), O_RDONLY | O_CLOEXEC)
        guard folder >= 0 else { throw ServerKeyError(path, DataFolder.reason(errno)) }
        defer { close(folder) }
        guard fsync(folder) == 0 else { throw ServerKeyError(path, DataFolder.reason(errno)) }
    }

    /// - Parameter owner: the purpose and owner of the secret; the same text is needed to open it.
    func seal(_ secret: [UInt8], of owner: String) -> [UInt8] {
        let nonce = AEADNonce.random()
        return nonce.octets + sealing.seal(secret, nonce: nonce, data: Array(owner.utf8))
    }

    /// - Returns: nil when it was sealed under another key or for another owner.
    func open(_ sealed: [UInt8], of owner: String) -> [UInt8]? {
        guard let nonce = try? AEADNonce(sealed.prefix(AEADSuite.nonceBytes)) else { return nil }
        return try? sealing.open(
            Array(sealed.dropFirst(AEADSuite.nonceBytes)), nonce: nonce, data: Array(owner.utf8))
    }

    /// The keyed hash of a code sent to a user.
    func code(_ code: String, of entity: String) -> [UInt8] {
        naming.code(of: Array("code \(entity) \(code)".utf8))
    }

    /// The keyed hash by which an API key is looked up; neither the hash nor comparing it reveals anything about
    /// the key.
    func name(of apiKey: String) -> [UInt8] { naming.code(of: Array(apiKey.utf8)) }

    /// Identifies this key without revealing it.
    var mark: [UInt8] { Array(naming.code(of: Array("mark".utf8)).prefix(16)) }

    /// The keyed hashes for built-in accounts.
    public var accountSecrets: AccountSecrets {
        AccountSecrets(
            verifier: { [peppers = peppersBefore + [pepper]] secret in
                peppers.reduce(secret) { Hash.hmacSHA256(key: $1, $0) }
            },
            pretence: { [pretending] in Hash.hmacSHA256(key: pretending, $0) })
    }

    // MARK: Successive key files

    /// What the next key file needs from this one.
    var keyHistory: KeyHistory { KeyHistory(pretence: pretending, peppers: peppersBefore + [pepper]) }

    /// This key with the history of earlier files.
    func adoptingPrevious(of keyHistory: KeyHistory) -> ServerKey {
        var adoptingPrevious = self
        (adoptingPrevious.pretending, adoptingPrevious.peppersBefore) = (keyHistory.pretence, keyHistory.peppers)
        return adoptingPrevious
    }

    /// The verifier of a secret under this file, computed from its verifier under the previous one: the secret is
    /// not known.
    func verifier(from before: [UInt8]) -> [UInt8] { Hash.hmacSHA256(key: pepper, before) }
}

/// Why the key file cannot be used.
public struct ServerKeyError: Error, Hashable, CustomStringConvertible {
    /// The path of the file.
    public let path: String
    /// The reason, for the operator.
    public let problem: String
    init(_ path: String, _ problem: String) { (self.path, self.problem) = (path, problem) }
    /// Path and reason in one line.
    public var description: String { "\(path): \(problem)" }
}
