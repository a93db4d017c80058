public import ThicketCrypto
public import ThicketKeyLog
public import ThicketProtocol
public import ThicketTreeShape

/// A content as a statement names it: its version, and the SHA-256 of its sealed bytes.
public struct ContentDigest: Sendable, Hashable {
    /// The version of the content.
    public let id: DataID
    /// Sealed bytes.
    public let length: UInt64
    /// SHA-256 of the sealed bytes.
    public let digest: Digest256

    /// Names a content.
    public init(_ id: DataID, length: UInt64, digest: Digest256) {
        (self.id, self.length, self.digest) = (id, length, digest)
    }

    /// The content of a record.
    ///
    /// - Parameter digest: of a content in a blob; for content in the record it is computed.
    /// - Returns: nil for a content in a blob without `digest`.
    public init?(_ data: RecordData, digest: Digest256? = nil) {
        switch data {
        case .inline(let id, let sealed): self.init(id, length: UInt64(sealed.count), digest: .of(sealed))
        case .withheld(let id, let length, let bytes):
            guard let digest = Digest256(bytes) else { return nil }
            self.init(id, length: UInt64(length), digest: digest)
        case .blob(let id, let length, _):
            guard let digest else { return nil }
            self.init(id, length: length, digest: digest)
        }
    }

    /// Whether a record has this content, as far as the record shows: of a blob, only its version and length.
    func isContent(of data: RecordData) -> Bool {
        if case .blob(let id, let length, _) = data { return id == self.id && length == self.length }
        return ContentDigest(data) == self
    }
}

/// A node of a message as a statement names it.
public struct OriginNode: Sendable, Hashable {
    /// The node.
    public let id: NodeID
    /// Its content; nil for a node without one.
    public let content: ContentDigest?

    /// Names a node.
    public init(_ id: NodeID, _ content: ContentDigest?) { (self.id, self.content) = (id, content) }
}

/// What the author of a message states and signs (decision 0067). It is in the sealed metadata, so that a server can
/// neither read nor remove it, and stays with the message when its receiver moves it.
///
/// `thicket/origin/1` ‖ 0, then each field with 16 bits of length: app, author, key id, device (8), recipients (each
/// with 16 bits of length), conversation (32), counter (8), previous (32), sent (8), nodes (each id ‖ 0, or id ‖ 1 ‖
/// data id ‖ length (8) ‖ SHA-256), head of the key log (144, or none), name (or none). These are signed; the
/// signature (64) follows with its length. Numbers are big-endian. The form of a statement is unique.
public struct OriginStatement: Sendable, Hashable {
    /// Recipients of a message at most.
    public static let recipientsMax = 256
    /// Nodes of a message at most: itself and 63 attachments.
    public static let nodesMax = 64
    /// Bytes of a statement at most: with name, keys and pairs it must fit into the metadata.
    public static let bytesMax = 12_288
    /// Bytes of the author's name at most.
    public static let nameBytesMax = 254
    /// Bound of counters, which are smaller.
    static let counterBound: UInt64 = 1 << 53

    /// What a statement says.
    public struct Fields: Sendable, Hashable {
        /// The app.
        public var app: AppID
        /// The account that wrote the message.
        public var author: UserID
        /// The id of the author's keys.
        public var keyID: String
        /// The author's device, a random number that it keeps: each device counts for itself.
        public var device: UInt64
        /// The accounts to which it was sent, without the author, in the order of their bytes.
        public var recipients: [UserID]
        /// The conversation.
        public var conversation: ConversationID
        /// The message's number among those of the device in the conversation, from 1.
        public var counter: UInt64
        /// The hash of the statement before it; zeros for the first.
        public var previous: Digest256
        /// Milliseconds since 1970 by the author's clock.
        public var sent: Int64
        /// The message first, then its attachments in the order of their ids.
        public var nodes: [OriginNode]
        /// The newest head of the key log that the author knows.
        public var head: KeyLogHead?
        /// The login name under which the author's keys can be looked up, as the author says: a receiver believes it
        /// once the look-up gives the author's keys. nil: the account has none.
        public var name: String?

        /// Fields; nodes and recipients are put in order.
        public init(
            app: AppID, author: UserID, keyID: String, device: UInt64, recipients: Set<UserID>,
            conversation: ConversationID, counter: UInt64, previous: Digest256, sent: Int64, message: OriginNode,
            attachments: [OriginNode], head: KeyLogHead?, name: String? = nil
        ) {
            (self.app, self.author, self.keyID, self.device) = (app, author, keyID, device)
            (self.recipients, self.conversation) = (UserID.inOrder(recipients), conversation)
            (self.counter, self.previous, self.sent, self.head, self.name) = (counter, previous, sent, head, name)
            nodes = [message] + attachments.sorted { $0.id < $1.id }
        }
    }

    /// What it says.
    public let fields: Fields
    /// The author's signature of the fields.
    public let signature: [UInt8]
    /// The written form.
    public let octets: [UInt8]
    /// SHA-256 of the written form: what the next statement names as `previous`.
    public let hash: Digest256

    /// Signs fields.
    ///
    /// - Throws: `outOfBounds` for fields that no statement has; `tooLarge`.
    public init(_ fields: Fields, signedBy key: Ed25519.SigningKey) throws(OriginFault) {
        guard fields.isValid else { throw .outOfBounds }
        guard let signature = try? key.signature(for: .origin, fields.octets) else { throw .tooLarge }
        self.fields = fields
        self.signature = signature
        octets = try Self.written(fields, signature)
        hash = .of(octets)
    }

    private static func written(_ fields: Fields, _ signature: [UInt8]) throws(OriginFault) -> [UInt8] {
        var bytes = LabelledBytes("thicket/origin/1")
        do throws(CryptoError) {
            for field in fields.octets + [signature] { try bytes.add(field) }
        } catch { throw .tooLarge }
        guard bytes.octets.count <= bytesMax else { throw .tooLarge }
        return bytes.octets
    }

    /// Reads the written form. The signature is not verified.
    ///
    /// - Throws: `tooLarge`, `malformed`.
    public init(octets: [UInt8]) throws(OriginFault) {
        guard octets.count <= Self.bytesMax else { throw .tooLarge }
        guard let (fields, signature) = OriginReader.statement(octets), fields.isValid,
            (try? Self.written(fields, signature)) == octets
        else { throw .malformed }
        (self.fields, self.signature, self.octets, hash) = (fields, signature, octets, .of(octets))
    }

    /// Whether an account has signed it.
    public func isSigned(by keys: PublicKeys) -> Bool {
        keys.user.utf8.elementsEqual(fields.author.text.utf8) && keys.id.utf8.elementsEqual(fields.keyID.utf8)
            && keys.identity.isSignature(signature, for: .origin, fields.octets)
    }
}

extension OriginStatement.Fields {
    /// The parts that are signed.
    fileprivate var octets: [[UInt8]] {
        [
            Array(app.text.utf8), Array(author.text.utf8), Array(keyID.utf8), device.octets,
            recipients.flatMap { UInt16($0.text.utf8.count).octets + Array($0.text.utf8) }, conversation.octets,
            counter.octets, previous.bytes, sent.octets, nodes.flatMap(\.octets), head?.bytes ?? [],
            name.map { Array($0.utf8) } ?? [],
        ]
    }

    /// Whether a statement can have them.
    fileprivate var isValid: Bool {
        let (names, ids) = (UserID.inOrder(Set(recipients)), nodes.dropFirst().map(\.id))
        return (1...OriginStatement.recipientsMax).contains(recipients.count) && names == recipients
            && !recipients.contains(author) && (1..<OriginStatement.counterBound).contains(counter)
            && (counter == 1) == (previous == .zero) && (0...TreeLimits.timeMax).contains(sent)
            && (1...OriginStatement.nodesMax).contains(nodes.count) && Set(nodes.map(\.id)).count == nodes.count
            && ids == ids.sorted() && (1...TreeLimits.keyIDBytesMax).contains(keyID.utf8.count)
            && (name.map { (1...OriginStatement.nameBytesMax).contains($0.utf8.count) } ?? true)
    }
}

extension OriginNode {
    fileprivate var octets: [UInt8] {
        guard let content else { return id.octets + [0] }
        return id.octets + [1] + content.id.octets + content.length.octets + content.digest.bytes
    }
}
