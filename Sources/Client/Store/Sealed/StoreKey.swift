package import ThicketCrypto
internal import ThicketSQLite

/// The key under which local stores are sealed: 32 random bytes that stay on this machine. One key may serve many
/// stores; each file has its own key, derived from this one and the file's salt.
///
/// `StoreKeyFile` stores one.
public final class StoreKey: Sendable {
    /// The key's length in bytes.
    package static let bytesCount = 32

    package let secret: SecureBytes

    /// - Throws: `store` for another length.
    package init(_ secret: SecureBytes) throws(ClientError) {
        guard secret.count == Self.bytesCount else { throw ClientError(.store, "the key of a local store is damaged") }
        self.secret = secret
    }

    private init(random: Void) { secret = .random(Self.bytesCount) }

    /// Generates a key.
    package static func random() -> StoreKey { StoreKey(random: ()) }

    /// Derives a key for one purpose: HKDF-SHA-256 (RFC 5869).
    package func derived(_ label: StaticString, salt: [UInt8] = [], count: Int = 32) -> SecureBytes {
        let info = label.withUTF8Buffer { Array($0) }
        guard let key = try? HKDF.derive(.sha256, secret: secret, salt: salt, info: info, count: count)
        else { preconditionFailure("HKDF takes every salt and a short info") }
        return key
    }

    /// Seals data that a program keeps beside its stores, such as a login.
    ///
    /// - Parameter label: the kind of data; it opens under the same label only.
    /// - Returns: a `SealedMessage`.
    package func seal(_ clear: [UInt8], as label: StaticString) -> [UInt8] {
        let data = LabelledBytes(label).octets
        guard let sealed = try? SealedMessage.seal(clear, key: derived(label), data: data) else {
            preconditionFailure("a derived key has 32 bytes")
        }
        return sealed
    }

    /// As above, for a secret.
    package func seal(_ clear: SecureBytes, as label: StaticString) -> [UInt8] {
        let data = LabelledBytes(label).octets
        guard let sealed = try? SealedMessage.seal(clear, key: derived(label), data: data) else {
            preconditionFailure("a derived key has 32 bytes")
        }
        return sealed
    }

    /// Opens a sealed secret.
    ///
    /// - Throws: `store` when the data is damaged, or was sealed under another key.
    package func openSecret(_ sealed: [UInt8], as label: StaticString) throws(ClientError) -> SecureBytes {
        do {
            return try SealedMessage.openSecret(sealed, key: derived(label), data: LabelledBytes(label).octets)
        } catch {
            throw ClientError(.store, "it is damaged, or sealed under another key than this machine's")
        }
    }

    /// Opens the result of `seal`.
    ///
    /// - Throws: `store` when the data is damaged, or was sealed under another key.
    package func open(_ sealed: [UInt8], as label: StaticString) throws(ClientError) -> [UInt8] {
        do {
            return try SealedMessage.open(sealed, key: derived(label), data: LabelledBytes(label).octets)
        } catch {
            throw ClientError(.store, "it is damaged, or sealed under another key than this machine's")
        }
    }
}

extension StoreKey: Hashable {
    /// Compares the keys' bytes in constant time.
    public static func == (left: StoreKey, right: StoreKey) -> Bool { left.secret == right.secret }
    /// Adds nothing to the hash: equal keys must hash equally, and few keys are ever in one table.
    public func hash(into hasher: inout Hasher) {}
}

extension StoreKey: CustomStringConvertible, CustomReflectable {
    /// A fixed text: the key never reaches a log.
    public var description: String { "(key of local stores)" }
    /// Empty, for the same reason.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .class) }
}

/// Seals the files of a store.
struct StoreCipher: PageCipher {
    let key: StoreKey

    func makeSalt() -> [UInt8] { RandomBytes.make(SealedFileSystem.saltBytes) }
    func sealer(salt: [UInt8]) -> any PageSealer { StoreSealer(key, salt) }
}

/// Seals pages by AES-256-GCM with random nonces: ciphertext ‖ tag ‖ nonce ‖ suite ‖ zeros.
///
/// A key may seal at most 2^32 pages (SP 800-38D, 8.3): 16 TiB written to one file.
private final class StoreSealer: PageSealer {
    private let pages: AEAD
    private let blocks: AESBlock

    private static let suite = AEADSuite.aes256GCM
    /// The places of the seal's parts, after the page's content.
    private static let tag = 0..<16
    private static let nonce = 16..<28
    private static let suitePlace = 28

    init(_ key: StoreKey, _ salt: [UInt8]) {
        guard let pages = try? AEAD(Self.suite, key: key.derived("thicket/store-page/1", salt: salt)) else {
            preconditionFailure("a derived key has 32 bytes")
        }
        self.pages = pages
        blocks = key.derived("thicket/store-frame/1", salt: salt, count: 16).withUnsafeBytes {
            AESBlock(key: Array($0))
        }
    }

    func seal(_ clear: UnsafeRawBufferPointer, at place: PagePlace, into room: UnsafeMutableRawBufferPointer) {
        let nonce = AEADNonce.random()
        let extra = UnsafeMutableRawBufferPointer(rebasing: room[clear.count...])
        Self.withData(place) { data in
            pages.seal(
                clear, nonce: nonce, data: data, into: .init(rebasing: room[..<(clear.count + Self.tag.count)]))
        }
        nonce.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: extra[Self.nonce]).copyMemory(from: $0) }
        for place in Self.nonce.upperBound..<extra.count { extra[place] = 0 }
        extra[Self.suitePlace] = Self.suite.rawValue
    }

    func open(_ sealed: UnsafeMutableRawBufferPointer, at place: PagePlace) -> Bool {
        let count = sealed.count - SealedFileSystem.extraBytes
        let extra = UnsafeMutableRawBufferPointer(rebasing: sealed[count...])
        guard extra[Self.suitePlace] == Self.suite.rawValue,
            let nonce = try? AEADNonce(extra[Self.nonce])
        else { return false }
        return Self.withData(place) { data in
            let text = UnsafeRawBufferPointer(rebasing: sealed[..<(count + Self.tag.count)])
            let room = UnsafeMutableRawBufferPointer(rebasing: sealed[..<count])
            return (try? pages.open(text, nonce: nonce, data: data, into: room)) != nil
        }
    }

    func hide(_ block: UnsafeMutableRawBufferPointer) { block.copyBytes(from: blocks.encrypt(Array(block))) }
    func show(_ block: UnsafeMutableRawBufferPointer) { block.copyBytes(from: blocks.decrypt(Array(block))) }

    /// Calls `body` with the additional data: kind of file ‖ offset (8 bytes).
    private static func withData<Result>(_ place: PagePlace, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        var data: (UInt64, UInt64) = (place.isLog ? 1 : 0, UInt64(bitPattern: place.offset).bigEndian)
        return withUnsafeBytes(of: &data) { body($0) }
    }
}
