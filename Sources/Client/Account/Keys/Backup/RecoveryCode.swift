public import ThicketCrypto

/// The access key as 24 words to keep on paper (BIP-39, spec 3.5).
extension AccessKey {
    /// The words in lower case, separated by one space: a secret.
    public var words: SecureBytes {
        guard let words = try? RecoveryWords.words(secret) else {
            preconditionFailure("32 bytes have 24 words")
        }
        return words
    }

    /// Reads words as typed: with capitals, numbers and punctuation between them, or only the first four letters of
    /// each.
    ///
    /// - Throws: `unreadableWords`.
    public init(words text: SecureBytes) throws(AccountError) {
        let entropy: SecureBytes
        do throws(RecoveryWords.Failure) {
            entropy = try RecoveryWords.entropy(text)
        } catch {
            switch error {
            case .count: throw .unreadableWords(.count)
            case .unknownWord(let place): throw .unreadableWords(.unknownWord(place))
            // Twelve words can be a valid phrase, but recovery words are 24.
            case .checksum:
                let count = Self.wordCount(PastedText.plain(text))
                throw .unreadableWords(count == RecoveryWords.wordCount ? .checksum : .count)
            }
        }
        guard let key = try? AccessKey(entropy) else { throw .unreadableWords(.count) }
        self = key
    }

    private static func wordCount(_ text: SecureBytes) -> Int {
        text.withUnsafeBytes { bytes in
            var (count, isInside) = (0, false)
            for byte in bytes {
                let isSpace = byte < 0x80 && !(0x61...0x7A).contains(byte | 0x20)
                if !isSpace, !isInside { count += 1 }
                isInside = !isSpace
            }
            return count
        }
    }
}

/// The access key sealed under a passcode, as four lines to write down or print: an attacker with the lines has to
/// guess the passcode, and each guess costs a scrypt of N = 2^17 (feature K4).
///
/// Bytes: 0x01 ‖ log2 N ‖ p ‖ 0x00 ‖ 16 bytes of salt ‖ 60 bytes of nonce, sealed key and tag (AES-256-GCM under the
/// passcode's `PasswordKeys.vaultKey`; additional data `thicket/code/1` ‖ 0x00 ‖ the first 20 bytes); written as
/// `WrittenCode`.
public enum RecoveryCode {
    private static let version: UInt8 = 1
    private static let headBytes: Int = 4 + PasswordKeys.saltBytes
    private static let suite = AEADSuite.aes256GCM
    private static let bytesCount: Int = headBytes + SealedMessage.extraBytes - 1 + AccessKey.bytesCount

    /// Seals a key. Takes about a second.
    ///
    /// - Parameters:
    ///   - passcode: UTF-8, not empty.
    ///   - key: the access key to seal or to split.
    /// - Throws: `unusable` for an empty passcode, `memory`.
    public static func make(_ key: AccessKey, passcode: SecureBytes) throws(AccountError) -> SecureBytes {
        try make(key, passcode: passcode, cost: .standard, salt: RandomBytes.make(PasswordKeys.saltBytes))
    }

    package static func make(
        _ key: AccessKey, passcode: SecureBytes, cost: PasswordCost, salt: [UInt8]
    ) throws(AccountError) -> SecureBytes {
        guard passcode.count > 0 else { throw .unusable("the passcode is empty") }
        let head = [version, UInt8(cost.log2N), UInt8(cost.p), 0] + salt
        let sealed: [UInt8]
        do throws(CryptoError) {
            let keys = try PasswordKeys(password: passcode, salt: salt, cost: cost)
            sealed = try SealedMessage.seal(key.secret, suite, key: keys.vaultKey, data: data(head))
        } catch { throw .init(stretching: error) }
        let bytes = SecureBytes(copying: head + sealed.dropFirst())
        guard let text = WrittenCode.text(of: bytes) else { throw .unreadableCode(line: nil) }
        return text
    }

    /// Opens a code as typed. Takes about a second.
    ///
    /// - Throws: `unreadableCode` for a typing error, `downgrade` for parameters out of bounds, `wrongPasscode`,
    ///   `memory`.
    public static func open(_ code: SecureBytes, passcode: SecureBytes) throws(AccountError) -> AccessKey {
        try open(code, passcode: passcode, rules: .product)
    }

    package static func open(
        _ code: SecureBytes, passcode: SecureBytes, rules: PasswordRules
    ) throws(AccountError) -> AccessKey {
        let written = try Written(code, rules: rules)
        let keys: PasswordKeys
        do throws(CryptoError) {
            keys = try .init(password: passcode, salt: written.salt, cost: written.cost)
        } catch { throw .init(stretching: error) }
        guard
            let secret = try? SealedMessage.openSecret(
                [suite.rawValue] + written.sealed, key: keys.vaultKey, data: data(written.head)),
            let key = try? AccessKey(secret)
        else { throw .wrongPasscode }
        return key
    }

    /// The parsed content of a code, before a passcode is tried.
    package struct Written: Sendable {
        /// The cost of trying a passcode, within the bounds of the rules.
        package let cost: PasswordCost
        fileprivate let head: [UInt8]
        fileprivate let sealed: [UInt8]

        /// - Throws: `unreadableCode`, `downgrade`.
        package init(_ code: SecureBytes, rules: PasswordRules) throws(AccountError) {
            let bytes: [UInt8] = try RecoveryCode.read(code).withUnsafeBytes { Array($0) }
            guard bytes.count == bytesCount, bytes[0] == version, bytes[3] == 0 else {
                throw .unreadableCode(line: nil)
            }
            do throws(CryptoError) {
                cost = try rules.cost(
                    kdf: PasswordRules.scryptNumber, log2N: Int(bytes[1]), r: 8, p: Int(bytes[2]))
            } catch { throw .downgrade("N 2^\(bytes[1]), p \(bytes[2])") }
            (head, sealed) = (Array(bytes[..<headBytes]), Array(bytes[headBytes...]))
        }

        package var salt: [UInt8] { Array(head[4...]) }
        /// All bytes of the code.
        package var octets: [UInt8] { head + sealed }
    }

    private static func data(_ head: [UInt8]) -> [UInt8] { LabelledBytes("thicket/code/1").octets + head }

    /// Decodes a written code to bytes.
    static func read(_ code: SecureBytes) throws(AccountError) -> SecureBytes {
        do throws(WrittenCode.Failure) { return try WrittenCode.bytes(of: code) } catch {
            switch error {
            case .unreadable: throw .unreadableCode(line: nil)
            case .line(let number): throw .unreadableCode(line: number)
            }
        }
    }
}

/// The access key in pieces for several people or places: any `needed` of them give the key, fewer reveal nothing about
/// it (feature K5).
///
/// Each piece is a `SecretShare`, written as `WrittenCode` under a heading that begins with `#`. A piece identifies its
/// set, so that a wrong piece can be named.
public enum KeyPieces {
    /// Most pieces of a set.
    public static let piecesMax: Int = 16

    /// Splits a key into pieces.
    ///
    /// - Parameters:
    ///   - needed: pieces that give the key, 2 or more.
    ///   - count: pieces in total, `needed` to 16.
    ///   - key: the access key to seal or to split.
    /// - Returns: one text per piece, with its heading: secrets.
    /// - Throws: `unusable`.
    public static func split(_ key: AccessKey, needed: Int, count: Int) throws(AccountError) -> [SecureBytes] {
        guard count <= piecesMax, needed >= 2, needed <= count else {
            throw .unusable("a key has 2 to 16 pieces, of which at least 2 and at most all are required")
        }
        let shares: [SecretShare]
        do throws(ShareFailure) {
            shares = try SecretShare.split(key.secret, threshold: needed, count: count)
        } catch { throw .unusable("a key has 2 to 16 pieces, of which at least 2 and at most all are required") }
        return shares.compactMap { share in
            let heading = SecureBytes(copying: Array("# \(share)\n".utf8))
            return WrittenCode.text(of: share.bytes).map { .joined([heading, $0]) }
        }
    }

    /// Joins pieces from a text in which each follows a heading or an empty line.
    ///
    /// - Throws: `pieces`, `unreadableCode` with the line of the piece that has the typing error.
    public static func join(_ text: SecureBytes) throws(AccountError) -> AccessKey {
        var shares = [SecretShare]()
        for piece in parts(of: PastedText.plain(text)) {
            let bytes: SecureBytes = try RecoveryCode.read(piece)
            do throws(ShareFailure) { shares.append(try SecretShare(bytes)) } catch {
                throw error == .unreadable ? .unreadableCode(line: nil) : .pieces(.foreign(shares.count + 1))
            }
        }
        let secret: SecureBytes
        do throws(ShareFailure) { secret = try SecretShare.combine(shares) } catch {
            switch error {
            case .tooFew(let has, let needs): throw .pieces(.tooFew(has: has, needs: needs))
            case .mixed(let places): throw .pieces(.mixed(places.map { $0 + 1 }))
            default: throw .unreadableCode(line: nil)
            }
        }
        guard let key: AccessKey = try? AccessKey(secret) else { throw .unreadableCode(line: nil) }
        return key
    }

    /// The texts between headings and empty lines.
    private static func parts(of text: SecureBytes) -> [SecureBytes] {
        let ranges: [Range<Int>] = text.withUnsafeBytes { bytes in
            var (ranges, start): ([Range<Int>], Int?) = ([], nil)
            var place = 0
            while place < bytes.count {
                let end: Int = bytes[place...].firstIndex(of: 0x0A) ?? bytes.count
                let line = bytes[place..<end]
                let isBreak = line.first == UInt8(ascii: "#") || line.allSatisfy { $0 == 0x20 || $0 == 0x0D }
                if isBreak {
                    if let begin = start { ranges.append(begin..<place) }
                    start = nil
                } else if start == nil {
                    start = place
                }
                place = end + 1
            }
            if let begin = start { ranges.append(begin..<bytes.count) }
            return ranges
        }
        return ranges.map { text.part($0) }
    }
}
