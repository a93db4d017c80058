package import ThicketCrypto
import ThicketPlatform

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// The file that holds the key of a machine's local stores. Only its owner can read it, and while it is locked, the key
/// cannot be obtained without the passphrase.
///
/// ```
/// "thicket/keyfile" ‖ format 1 ‖ parts: kind (1) ‖ length (2) ‖ bytes
/// kind 1   the key, while it is not locked
/// kind 2   derivation (1) ‖ log2 N ‖ r ‖ p ‖ salt (16) ‖ the key sealed under the scrypt output of the passphrase
/// ```
/// The second part stays when the key is unlocked, so locking it again needs no passphrase.
public struct StoreKeyFile: Sendable {
    /// The path of the file.
    public let path: String
    /// A folder in memory that ends with the login (`XDG_RUNTIME_DIR`), in which an unlocked key is kept instead of on
    /// disk. nil: the unlocked key is kept in the file itself.
    private let runtimeFolder: String?

    private static let beginning: [UInt8] = Array("thicket/keyfile".utf8) + [1]
    private static let label = LabelledBytes("thicket/store-key/1")

    private static let wayOut: String =
        "A copy of the file opens it; without one, 'thicket logout --discard' and then 'thicket login' fetch everything from the "
        + "server again, except for edits that were never sent"

    private struct Contents {
        var key: StoreKey?
        var wrap: Wrap?
    }

    private struct Wrap {
        let cost: [UInt8]
        let salt: [UInt8]
        let sealed: [UInt8]

        var octets: [UInt8] { cost + salt + sealed }
    }

    /// Describes a key file; nothing is read or written yet.
    ///
    /// - Parameters:
    ///   - path: the path of the file.
    ///   - runtimeFolder: a folder in memory for the unlocked key; nil keeps it in the file itself.
    public init(path: String, runtimeFolder: String? = nil) {
        (self.path, self.runtimeFolder) = (path, runtimeFolder)
    }

    // MARK: - Using it

    /// Whether the file exists.
    public var isThere: Bool { access(path, F_OK) == 0 }

    /// Reads the key.
    ///
    /// - Parameter makesNew: create file and key when the file does not exist.
    /// - Throws: `locked`; `store` when the file cannot be read or made, is damaged, or does not exist.
    public func key(makesNew: Bool = true) throws(ClientError) -> StoreKey {
        var kept = try contents()
        if kept == nil, makesNew {
            try write(Contents(key: .random()), isNew: true)
            // If another process created the file first, its key counts.
            kept = try contents()
        }
        guard let kept else {
            throw PrivateFile.failure(
                path, "does not exist: data sealed under its key cannot be opened. \(Self.wayOut)")
        }
        if let key = kept.key { return key }
        if let key = try runtimeKey() { return key }
        throw ClientError(.locked, "the local copies are locked: 'thicket unlock' opens them")
    }

    /// Whether the key cannot be read without the passphrase now.
    public var isLocked: Bool {
        get throws(ClientError) {
            guard let kept = try contents(), kept.key == nil else { return false }
            return try runtimeKey() == nil
        }
    }

    /// Whether an unlocked key is kept in memory and not on disk.
    public var keepsKeyInMemory: Bool { runtimePath != nil }

    /// Whether a passphrase has been set, so that `lock()` needs none.
    public var hasPassphrase: Bool { get throws(ClientError) { try contents()?.wrap != nil } }

    /// Locks the key until the passphrase is given.
    ///
    /// - Throws: `invalidOptions` when no passphrase was ever set; `store`.
    public func lock() throws(ClientError) {
        guard let kept = try contents(), let wrap = kept.wrap else {
            throw ClientError(.invalidOptions, "no passphrase was set for \(path)")
        }
        try removeRuntimeKey()
        if kept.key != nil { try write(Contents(wrap: wrap), isNew: false) }
    }

    /// Sets or replaces the passphrase, and locks the key until it is given. Takes about a second.
    ///
    /// - Throws: `locked` when the key is not available; `invalidOptions` for an unacceptable passphrase; `limit` when
    ///   too little memory is available; `store`.
    package func lock(passphrase: SecureBytes, cost: PasswordCost = .standard) throws(ClientError) {
        let key = try key()
        let salt = RandomBytes.make(PasswordKeys.saltBytes)
        let sealed: [UInt8]
        do throws(CryptoError) {
            let keys = try PasswordKeys(password: passphrase, salt: salt, cost: cost)
            sealed = try SealedMessage.seal(key.secret, key: keys.vaultKey, data: Self.label.octets)
        } catch {
            throw Self.lacksMemory(error)
                ?? ClientError(.invalidOptions, "this cannot be a passphrase: it is not UTF-8 text, or too long")
        }
        let numbers = [UInt8(PasswordRules.scryptNumber), UInt8(cost.log2N), UInt8(cost.r), UInt8(cost.p)]
        try write(Contents(wrap: Wrap(cost: numbers, salt: salt, sealed: sealed)), isNew: false)
        try removeRuntimeKey()
    }

    /// Checks a passphrase without changing anything. Takes about a second.
    ///
    /// - Throws: as `unlock`.
    package func check(passphrase: SecureBytes, rules: PasswordRules = .product) throws(ClientError) {
        _ = try open(with: passphrase, rules)
    }

    /// Unlocks the key with the passphrase, until it is locked again. Takes about a second.
    ///
    /// - Throws: `unauthorized` for a wrong passphrase or a manipulated file; `limit` when too little memory is
    ///   available; `invalidOptions` when no passphrase was ever set; `store`.
    package func unlock(passphrase: SecureBytes, rules: PasswordRules = .product) throws(ClientError) {
        let (key, wrap) = try open(with: passphrase, rules)
        guard let runtime = runtimePath else {
            return try write(Contents(key: key, wrap: wrap), isNew: false)
        }
        try PrivateFile.write(Self.octets(Contents(key: key)), to: runtime, isNew: false)
    }

    private func open(
        with passphrase: SecureBytes, _ rules: PasswordRules
    ) throws(ClientError) -> (StoreKey, Wrap) {
        guard let kept = try contents(), let wrap = kept.wrap else {
            throw ClientError(.invalidOptions, "no passphrase was set for \(path)")
        }
        let secret: SecureBytes
        do throws(CryptoError) {
            let cost = try rules.cost(
                kdf: Int(wrap.cost[0]), log2N: Int(wrap.cost[1]), r: Int(wrap.cost[2]), p: Int(wrap.cost[3]))
            let keys = try PasswordKeys(password: passphrase, salt: wrap.salt, cost: cost)
            secret = try SealedMessage.openSecret(wrap.sealed, key: keys.vaultKey, data: Self.label.octets)
        } catch {
            throw Self.lacksMemory(error) ?? ClientError(.unauthorized, "this is not the passphrase")
        }
        return (try StoreKey(secret), wrap)
    }

    /// nil for any other error.
    private static func lacksMemory(_ error: CryptoError) -> ClientError? {
        guard case .outOfBounds(.memory) = error else { return nil }
        return ClientError(.limit, "there is not enough memory: stretching a passphrase takes 128 MiB")
    }

    // MARK: - In memory

    /// nil when no folder in memory exists that only this user can access.
    private var runtimePath: String? {
        guard let runtimeFolder, !runtimeFolder.isEmpty else { return nil }
        var status = stat()
        guard stat(runtimeFolder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid(),
            status.st_mode & 0o077 == 0
        else { return nil }
        return "\(runtimeFolder)/thicket-\(Hex.encode(Array(Digest256.of(Array(path.utf8)).bytes.prefix(16)))).key"
    }

    private func runtimeKey() throws(ClientError) -> StoreKey? {
        guard let runtime = runtimePath, let bytes = try PrivateFile.read(runtime) else {
            return nil
        }
        return try Self.contents(bytes, runtime).key
    }

    private func removeRuntimeKey() throws(ClientError) {
        guard let runtime = runtimePath, unlink(runtime) != 0, errno != ENOENT else { return }
        throw PrivateFile.failure(runtime, "cannot be removed: \(PrivateFile.reason(errno))")
    }

    // MARK: - The file

    private func contents() throws(ClientError) -> Contents? {
        guard let bytes = try PrivateFile.read(path) else { return nil }
        return try Self.contents(bytes, path)
    }

    private func write(_ contents: Contents, isNew: Bool) throws(ClientError) {
        try PrivateFile.write(Self.octets(contents), to: path, isNew: isNew)
    }

    private static func octets(_ contents: Contents) -> SecureBytes {
        var parts: [SecureBytes] = [.init(copying: beginning)]
        if let key = contents.key {
            parts += [.init(copying: [1, 0, UInt8(StoreKey.bytesCount)]), key.secret]
        }
        if let wrap: [UInt8] = contents.wrap?.octets {
            parts.append(.init(copying: [2, UInt8(wrap.count >> 8), UInt8(wrap.count & 0xFF)] + wrap))
        }
        return .joined(parts)
    }

    private static func contents(_ bytes: SecureBytes, _ path: String) throws(ClientError) -> Contents {
        let damaged = PrivateFile.failure(
            path, "is damaged: data sealed under its key cannot be opened. \(wayOut)")
        let first: [UInt8] = bytes.withUnsafeBytes { Array($0.prefix(beginning.count)) }
        guard first.elementsEqual(beginning) else { throw damaged }
        var found = Contents()
        var place = beginning.count
        while place < bytes.count {
            guard place + 3 <= bytes.count else { throw damaged }
            let head: [UInt8] = bytes.withUnsafeBytes { Array($0[place..<place + 3]) }
            let range = place + 3..<place + 3 + Int(head[1]) << 8 + Int(head[2])
            guard range.upperBound <= bytes.count else { throw damaged }
            switch head[0] {
            case 1: found.key = try StoreKey(bytes.part(range))
            case 2: found.wrap = try wrap(bytes.part(range).withUnsafeBytes { Array($0) }, damaged)
            default: throw PrivateFile.failure(path, "was written by a newer version")
            }
            place = range.upperBound
        }
        guard found.key != nil || found.wrap != nil else { throw damaged }
        return found
    }

    /// The bytes as they would be written after reading them; nil when they are not a key file. For tests with
    /// arbitrary input.
    package static func rewritten(_ bytes: SecureBytes) -> SecureBytes? {
        guard let read = try? contents(bytes, "the file") else { return nil }
        return octets(read)
    }

    private static func wrap(_ bytes: [UInt8], _ damaged: ClientError) throws(ClientError) -> Wrap {
        let head = 4 + PasswordKeys.saltBytes
        guard bytes.count == head + SealedMessage.extraBytes + StoreKey.bytesCount else { throw damaged }
        return Wrap(cost: Array(bytes[..<4]), salt: Array(bytes[4..<head]), sealed: Array(bytes[head...]))
    }
}
