public import ThicketCrypto
public import ThicketProtocol

/// Who wrote a record: `by`, `k` and `sig`. Optional in a private audience, and preserved (decision 0092); required in
/// the record of a copy (decision 0067).
public struct RecordSignature: Sendable, Hashable {
    /// Bytes of a signature (Ed25519).
    public static let bytesCount = 64

    /// The author.
    public let author: UserID
    /// The id of the author's key.
    public let keyID: String
    /// The signature of the canonical form.
    public let octets: [UInt8]

    /// - Parameters:
    ///   - author: the author.
    ///   - keyID: 1 to 64 letters, digits and `._-`.
    ///   - octets: 64 bytes.
    /// - Throws: `badKeyID` or `badBytes`. The signature is not verified.
    public init(author: UserID, keyID: String, octets: [UInt8]) throws(RecordFault) {
        guard Self.isKeyID(keyID) else { throw .badKeyID }
        guard octets.count == Self.bytesCount else { throw .badBytes(.signature) }
        (self.author, self.keyID, self.octets) = (author, keyID, octets)
    }

    /// Author and key without a signature yet: 64 zero bytes. Both are in the canonical form with which the metadata is
    /// sealed, so they are in the record before `m` is, and `sign` comes last.
    ///
    /// - Throws: `badKeyID`.
    public init(pending author: UserID, keyID: String) throws(RecordFault) {
        try self.init(author: author, keyID: keyID, octets: [UInt8](repeating: 0, count: Self.bytesCount))
    }

    /// Signs a record for a tree: Ed25519 over its canonical form, which begins with the label `thicket/record/1`.
    ///
    /// - Parameters:
    ///   - record: the complete record; its `signature` names author and key.
    ///   - node: the id of the node.
    ///   - tree: the tree that it is written to; of a copy, the receiver's.
    ///   - key: the author's identity key.
    /// - Throws: `unsigned` for a record without author.
    public static func sign(
        _ record: inout NodeRecord, _ node: NodeID, in tree: TreePlace, with key: Ed25519.SigningKey
    ) throws(RecordFault) {
        guard let pending = record.signature else { throw .unsigned }
        let form = CanonicalForm.signing.bytes(of: record, node, in: tree)
        record.signature = try RecordSignature(
            author: pending.author, keyID: pending.keyID, octets: key.signature(of: form))
    }

    /// Whether a record is signed for a tree. Author and key id are compared by the caller.
    ///
    /// - Parameters:
    ///   - record: the record as it was sent; stamps are outside the signature.
    ///   - node: the id of the node.
    ///   - tree: the tree that it was written to.
    ///   - key: the author's identity key.
    public static func verify(
        _ record: NodeRecord, _ node: NodeID, in tree: TreePlace, with key: Ed25519.VerifyingKey
    ) -> Bool {
        guard let signature = record.signature else { return false }
        return key.isSignature(signature.octets, of: CanonicalForm.signing.bytes(of: record, node, in: tree))
    }

    /// Compares the bytes of all three.
    public static func == (left: RecordSignature, right: RecordSignature) -> Bool {
        left.author == right.author && left.keyID.utf8.elementsEqual(right.keyID.utf8) && left.octets == right.octets
    }

    /// Whether a text can be the id of a key or of a service.
    static func isKeyID(_ text: String) -> Bool {
        (1...TreeLimits.keyIDBytesMax).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || byte == 0x2D || byte == 0x2E || byte == 0x5F
            }
    }

    /// Reads the three members.
    ///
    /// - Returns: nil when none is present.
    static func read(_ object: JSONObject) throws(RecordFault) -> RecordSignature? {
        let keys: [RecordKey] = [.author, .signingKey, .signature]
        let present = keys.filter { object.contains($0.rawValue) }
        guard !present.isEmpty else { return nil }
        guard present.count == keys.count else { throw .incompleteSignature }
        return try RecordSignature(
            author: RecordValue.user(object, .author), keyID: RecordValue.text(object, .signingKey),
            octets: RecordValue.octets(object, .signature))
    }
}

/// What the server adds to a record. Not authenticated, and never trusted alone.
public struct RecordStamps: Sendable, Hashable {
    /// Milliseconds since 1970 of the last change.
    public var changed: Int64?
    /// Milliseconds since 1970 at which the node came into this tree; a move keeps it.
    public var created: Int64?
    /// The user who wrote the record, if not the owner.
    public var sender: UserID?

    /// Stamps; all are absent by default.
    public init(changed: Int64? = nil, created: Int64? = nil, sender: UserID? = nil) {
        (self.changed, self.created, self.sender) = (changed, created, sender)
    }

    init(_ object: JSONObject) throws(RecordFault) {
        changed = try RecordValue.number(ifPresent: object, .changed, 0...TreeLimits.timeMax)
        created = try RecordValue.number(ifPresent: object, .created, 0...TreeLimits.timeMax)
        sender = object.contains(RecordKey.sender.rawValue) ? try RecordValue.user(object, .sender) : nil
    }
}
