import Glibc
public import ThicketAuth
import ThicketCrypto

/// The key under which secrets stand in the database, partners' auth keys, and by which keys of accounts are checked.
/// It lies in a file of its own, so that neither the database nor a backup of it lets anybody act as a partner.
public struct ServerKey: Sendable {
    /// Bytes of the file.
    static let bytesCount = 32
    private let sealing: AEAD
    private let naming: MessageKey256
    /// Of this file.
    private let pepper: [UInt8]
    /// What the files before this one have left (`KeyRotation`), or what this one begins with.
    private var peppersBefore = [[UInt8]]()
    private var pretending: [UInt8]

    init(_ secret: [UInt8]) {
        precondition(secret.count == Self.bytesCount, "a server key has 32 bytes")
        // One secret, one key for each use.
        let sealingKey = Hash.hmacSHA256(key: secret, Array("thicket/server/seal/1".utf8))
        guard let sealing = try? AEAD(.aes256GCM, key: SecureBytes(copying: sealingKey)) else {
            preconditionFailure("a code of HMAC-SHA-256 has 32 bytes")
        }
        self.sealing = sealing
        naming = MessageKey256(Hash.hmacSHA256(key: secret, Array("thicket/server/name/1".utf8)))
        pepper = Hash.hmacSHA256(key: secret, Array("thicket/server/pepper/1".utf8))
        pretending = Hash.hmacSHA256(key: secret, Array("thicket/server/pretence/1".utf8))
    }

    /// Reads the file; makes it, for its owner only, when there is none.
    public static func load(_ path: String) throws(ServerKeyError) -> ServerKey {
        if let kept = try read(path) { return kept }
        try make(path)
        guard let made = try read(path) else {
            throw ServerKeyError(path, "it was made, and somebody has taken it away")
        }
        return made
    }

    /// - Returns: nil when there is no such file.
    static func read(_ path: String) throws(ServerKeyError) -> ServerKey? {
        let file = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        if file < 0 {
            guard errno == ENOENT else { throw ServerKeyError(path, DataFolder.reason(errno)) }
            return nil
        }
        defer { close(file) }
        var info = stat()
        guard fstat(file, &info) == 0 else { throw ServerKeyError(path, DataFolder.reason(errno)) }
        guard info.st_mode & 0o077 == 0 else {
            throw ServerKeyError(path, "others may read it; 'chmod 600' it, or think of its secrets as known")
        }
        var secret = [UInt8](repeating: 0, count: bytesCount + 1)
        let count = Glibc.read(file, &secret, secret.count)
        guard count == bytesCount else {
            throw ServerKeyError(path, "it does not hold \(bytesCount) bytes: put back the file that was there")
        }
        return ServerKey(Array(secret.prefix(bytesCount)))
    }

    /// A new key, on disk under its name only when it is complete. A file that has the name stays.
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
        // A link, not a rename: of two programs that make it at once one must find it taken.
        guard link(partial, path) == 0 || errno == EEXIST else { throw ServerKeyError(path, DataFolder.reason(errno)) }
        let folder = Glibc.open(Files.folder(of: path), O_RDONLY | O_CLOEXEC)
        guard folder >= 0 else { throw ServerKeyError(path, DataFolder.reason(errno)) }
        defer { close(folder) }
        guard fsync(folder) == 0 else { throw ServerKeyError(path, DataFolder.reason(errno)) }
    }

    /// - Parameter owner: whose secret it is; the same is needed to open it.
    func seal(_ secret: [UInt8], of owner: String) -> [UInt8] {
        let nonce = AEADNonce.random()
        return nonce.octets + sealing.seal(secret, nonce: nonce, data: Array(owner.utf8))
    }

    /// - Returns: nil when it was sealed under another key or for somebody else.
    func open(_ sealed: [UInt8], of owner: String) -> [UInt8]? {
        guard let nonce = try? AEADNonce(sealed.prefix(AEADSuite.nonceBytes)) else { return nil }
        return try? sealing.open(
            Array(sealed.dropFirst(AEADSuite.nonceBytes)), nonce: nonce, data: Array(owner.utf8))
    }

    /// What is kept of a code that was sent to somebody.
    func code(_ code: String, of entity: String) -> [UInt8] {
        naming.code(of: Array("code \(entity) \(code)".utf8))
    }

    /// What an API key is looked up by: says nothing of the key, and comparing it says nothing either.
    func name(of apiKey: String) -> [UInt8] { naming.code(of: Array(apiKey.utf8)) }

    /// Tells this key from others, and nothing of it.
    var mark: [UInt8] { Array(naming.code(of: Array("mark".utf8)).prefix(16)) }

    /// What built-in accounts are checked with.
    public var accountSecrets: AccountSecrets {
        AccountSecrets(
            verifier: { [peppers = peppersBefore + [pepper]] secret in
                peppers.reduce(secret) { Hash.hmacSHA256(key: $1, $0) }
            },
            pretence: { [pretending] in Hash.hmacSHA256(key: pretending, $0) })
    }

    // MARK: One file after another

    /// What the next key file has to know of this one.
    var heritage: KeyHeritage { KeyHeritage(pretence: pretending, peppers: peppersBefore + [pepper]) }

    /// This file as the follower of others.
    func heir(of heritage: KeyHeritage) -> ServerKey {
        var heir = self
        (heir.pretending, heir.peppersBefore) = (heritage.pretence, heritage.peppers)
        return heir
    }

    /// What is kept of a secret, from what was kept of it under the file before this one: nobody has the secret itself.
    func verifier(from before: [UInt8]) -> [UInt8] { Hash.hmacSHA256(key: pepper, before) }
}

/// Why the key file cannot be used.
public struct ServerKeyError: Error, Hashable, CustomStringConvertible {
    public let path: String
    public let problem: String
    init(_ path: String, _ problem: String) { (self.path, self.problem) = (path, problem) }
    public var description: String { "\(path): \(problem)" }
}
