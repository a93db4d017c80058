import ThicketCrypto
import ThicketProtocol

/// Parses what `LabelledBytes` wrote, from its label to its last byte.
struct KeyLogFields {
    private var rest: ArraySlice<UInt8>
    private let what: String

    /// - Parameters:
    ///   - max: maximum bytes.
    ///   - what: name of the structure, for errors.
    /// - Throws: `tooMany`, `malformed` for another label.
    init(_ bytes: [UInt8], label: StaticString, max: Int, what: String) throws(KeyLogError) {
        guard bytes.count <= max else {
            throw KeyLogError(.tooMany, "key log: \(what) of \(bytes.count) bytes; the maximum is \(max)")
        }
        let head = LabelledBytes(label).octets
        guard bytes.starts(with: head) else { throw .malformed("\(what) has the wrong label") }
        (rest, self.what) = (bytes.dropFirst(head.count), what)
    }

    /// Bytes without a length.
    mutating func bare(_ count: Int) throws(KeyLogError) -> ArraySlice<UInt8> {
        guard rest.count >= count else { throw .malformed("\(what) is cut short") }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    /// A field with 16 bits of length.
    mutating func field() throws(KeyLogError) -> ArraySlice<UInt8> {
        let count = try bare(2)
        return try bare(count.reduce(0) { $0 << 8 | Int($1) })
    }

    /// A field of exactly this length or, if `orNone` is set, an empty one.
    mutating func field(_ count: Int, orNone: Bool = false) throws(KeyLogError) -> [UInt8] {
        let field = try field()
        guard field.count == count || (orNone && field.isEmpty) else {
            throw .malformed("\(what): a part has the wrong length")
        }
        return Array(field)
    }

    /// A 64-bit number without a length, below 2^53.
    mutating func number() throws(KeyLogError) -> UInt64 { try Self.number(try bare(8), what) }

    /// The same as a field.
    mutating func numberField() throws(KeyLogError) -> UInt64 { try Self.number(try field(8)[...], what) }

    private static func number(_ bytes: ArraySlice<UInt8>, _ what: String) throws(KeyLogError) -> UInt64 {
        let number = bytes.reduce(0) { $0 << 8 | UInt64($1) }
        guard number < KeyLogLimits.numberBound else { throw .malformed("\(what): a number is too large") }
        return number
    }

    /// The hashes of a log proof.
    mutating func proof() throws(KeyLogError) -> [Digest256] {
        guard let proof = MerkleTree.proof(Array(try field())) else {
            throw .malformed("\(what): a proof has an incomplete hash or too many hashes")
        }
        return proof
    }

    /// A user's name.
    mutating func user() throws(KeyLogError) -> String {
        guard let text = String(validating: try field(), as: UTF8.self), let user = try? UserID(text)
        else { throw .malformed("\(what): the user's name is invalid") }
        return user.text
    }

    /// An app's name, in lower case.
    mutating func app() throws(KeyLogError) -> String {
        guard let text = String(validating: try field(), as: UTF8.self) else {
            throw .malformed("\(what): the app's name is not UTF-8")
        }
        return try Self.app(text)
    }

    /// - Throws: `malformed` for an invalid app name, or one that is not in lower case.
    static func app(_ text: String) throws(KeyLogError) -> String {
        guard let app = try? AppID(text), app.text.utf8.elementsEqual(text.utf8) else {
            throw .malformed("the app's name is invalid or not in lower case")
        }
        return text
    }

    /// A number as a field; nil for an empty field.
    mutating func numberOrNone() throws(KeyLogError) -> UInt64? {
        let field = try field(8, orNone: true)
        return field.isEmpty ? nil : try Self.number(field[...], what)
    }

    /// Two public keys: 32 bytes of Ed25519, 32 of X25519.
    mutating func keys(of user: String) throws(KeyLogError) -> PublicKeys {
        let identity = try field(Ed25519.octetsCount)
        return try Self.keys(of: user, identity[...], try field(X25519.octetsCount)[...])
    }

    static func keys(
        of user: String, _ identity: ArraySlice<UInt8>, _ encryption: ArraySlice<UInt8>
    ) throws(KeyLogError) -> PublicKeys {
        do throws(CryptoError) {
            return try PublicKeys(
                user: user, identity: .init(Array(identity)), encryption: .init(Array(encryption)))
        } catch { throw .malformed("public keys are invalid") }
    }

    /// - Throws: `malformed` when more bytes follow.
    func end() throws(KeyLogError) {
        guard rest.isEmpty else { throw .malformed("\(what) has trailing bytes") }
    }
}

extension LabelledBytes {
    /// `add` for a field that is known to fit.
    mutating func put(_ field: some Collection<UInt8>) {
        precondition(field.count <= Self.fieldBytesMax, "the bounds of what is added are below that of a field")
        do { try add(field) } catch { preconditionFailure("a field that fits was refused: \(error)") }
    }
}
