import ThicketCrypto
import ThicketPlatform
public import ThicketProtocol

/// A node as the server holds it (treesystem 4.3; decision 0092): the tree's shape in clear, all else sealed.
///
/// A record is written in one way: members in the order of `RecordKey`, wraps in the order of the bytes of `t`, numbers
/// in plain digits, binary values as base64url without padding. The members of a record that is read may be in any
/// order; `object` gives the written form.
public struct NodeRecord: Sendable, Hashable {
    /// The format that this version reads and writes.
    public static let format: Int64 = 1

    /// The place below which the node is.
    public var parent: NodeParent
    /// The tag of the name among its siblings.
    public var tag: NodeTag
    /// The epoch of the node's key.
    public var epoch: UInt32
    /// The node's key, wrapped for each reader; always in the order of the bytes of `RecordWrap.kind`.
    public var wraps: [RecordWrap] { didSet { wraps = wraps.inOrder } }
    /// The commitment to the node's key, 32 bytes.
    public var commitment: [UInt8]
    /// The sealed metadata: suite ‖ nonce ‖ ciphertext ‖ tag.
    public var metadata: [UInt8]
    /// The content; nil for a node without content.
    public var data: RecordData?
    /// The accounts that share the branch of which the node is the root; nil for any other node.
    public var shareList: ShareList?
    /// Milliseconds since 1970 at which the server removes the node; nil: never.
    public var burnTime: Int64?
    /// The version that the record replaces; 0 for a new node.
    public var base: Version
    /// The author's signature; nil in a private audience.
    public var signature: RecordSignature?
    /// What the server has added.
    public var stamps = RecordStamps()

    /// A record without signature and stamps, which is not checked.
    public init(
        parent: NodeParent, tag: NodeTag, epoch: UInt32, wraps: [RecordWrap], commitment: [UInt8],
        metadata: [UInt8] = [], data: RecordData? = nil, shareList: ShareList? = nil, burnTime: Int64? = nil,
        base: Version
    ) {
        (self.parent, self.tag, self.epoch, self.wraps) = (parent, tag, epoch, wraps.inOrder)
        (self.commitment, self.metadata, self.data) = (commitment, metadata, data)
        (self.shareList, self.burnTime, self.base) = (shareList, burnTime, base)
    }

    /// Who wrote the JSON that is read.
    public enum Origin: Sendable {
        /// A device: the record must not have stamps.
        case device
        /// A server: the record may have stamps.
        case server
    }

    /// Reads a record.
    ///
    /// - Throws: `RecordFault` for every deviation. Nothing is opened, and no signature is verified.
    public init(_ object: JSONObject, from origin: Origin) throws(RecordFault) {
        let size = object.serializedSize
        guard size <= TreeLimits.recordBytesMax + TreeLimits.stampBytesMax else { throw .tooLarge }
        try Self.checkMembers(object, origin)
        guard try RecordValue.number(object, .format, 0...Int64.max) == Self.format else { throw .otherFormat }
        guard let parent = NodeParent(text: try RecordValue.text(object, .parent)) else { throw .badParent }
        guard let tag = NodeTag(text: try RecordValue.text(object, .tag)) else { throw .badTag }
        self.init(
            parent: parent, tag: tag,
            epoch: UInt32(try RecordValue.number(object, .epoch, 0...Int64(UInt32.max))),
            wraps: try [RecordWrap](RecordValue.member(object, .wraps)),
            commitment: try RecordValue.octets(object, .commitment),
            metadata: try RecordValue.octets(object, .metadata), data: try object["d"].map(RecordData.init),
            shareList: try object[RecordKey.shareList.rawValue].map(Self.shareList),
            burnTime: try RecordValue.number(ifPresent: object, .burnTime, 1...TreeLimits.timeMax),
            base: try RecordValue.number(object, .base, 0...TreeLimits.versionMax))
        signature = try RecordSignature.read(object)
        stamps = try RecordStamps(object)
        if origin == .device, case .withheld? = data { throw .badData }
        try checkShareList()
        try checkLengths(size)
    }

    /// Reads the JSON text of a record. Its size is checked before it is parsed.
    ///
    /// - Throws: `RecordFault` for every deviation.
    public init(parsing text: [UInt8], from origin: Origin) throws(RecordFault) {
        guard text.count <= TreeLimits.recordBytesMax + TreeLimits.stampBytesMax else { throw .tooLarge }
        guard case .object(let object)? = try? JSONValue(parsing: text, maxDepth: TreeLimits.jsonDepthMax) else {
            throw .notJSON
        }
        try self.init(object, from: origin)
    }

    private static func checkMembers(_ object: JSONObject, _ origin: Origin) throws(RecordFault) {
        for name in object.keys {
            guard let key = RecordKey(rawValue: name) else { throw .unknownMember }
            if origin == .device, RecordKey.stamps.contains(key) { throw .stamped }
        }
    }

    private static func shareList(_ value: JSONValue) throws(RecordFault) -> ShareList {
        do throws(ShareListFault) { return try ShareList(value) } catch { throw .shareList(error) }
    }

    /// The root of a shared branch is signed, its list is for its key, and its key is wrapped for its owner and for
    /// exactly the readers in the list. A member that begins an epoch wraps it for the owner's keys in place of the
    /// parent's; `BranchCheck` and `BranchState` know which account that is.
    private func checkShareList() throws(RecordFault) {
        guard let list = shareList else { return }
        guard signature != nil else { throw .unsigned }
        guard list.epoch == epoch, list.commitment == commitment else { throw .otherShareKey }
        var readers = [String: String]()
        for member in list.members where member.permissions.contains(.read) {
            readers[member.user.text] = member.keyID
        }
        var mayHaveOther = !wraps.contains { $0.reader == .parent }
        for wrap in wraps {
            guard case .user(let user, let keyID) = wrap.reader else { continue }
            if mayHaveOther, readers[user.text] == nil {
                mayHaveOther = false
                continue
            }
            guard readers.removeValue(forKey: user.text)?.utf8.elementsEqual(keyID.utf8) == true else {
                throw .otherReaders
            }
        }
        guard readers.isEmpty else { throw .otherReaders }
    }

    /// Bytes by which the written form may be longer than another one: numbers with exponents.
    private static let numberBytesMax = 256

    /// - Parameter size: bytes of the object that was read.
    private func checkLengths(_ size: Int) throws(RecordFault) {
        guard commitment.count == NodeKey.bytesCount else { throw .badBytes(.commitment) }
        guard metadata.first.flatMap(AEADSuite.init(rawValue:)) != nil else { throw .unknownSuite }
        let clear = metadata.count - SealedMessage.extraBytes
        guard (TreeLimits.metadataStep...TreeLimits.metadataBytesMax).contains(clear),
            clear % TreeLimits.metadataStep == 0
        else { throw .badMetadata }
        // Most records are far from the limit: they need not be written to be measured.
        guard size + Self.numberBytesMax > TreeLimits.recordBytesMax else { return }
        var bare = self
        bare.stamps = RecordStamps()
        guard bare.object.serializedSize <= TreeLimits.recordBytesMax else { throw .tooLarge }
    }

    /// The record as JSON, in its written form.
    public var object: JSONObject {
        var object = JSONObject(reserving: RecordKey.allCases.count)
        for key in RecordKey.allCases {
            if let value = json(key) { object.append(key: key.rawValue, value: value) }
        }
        return object
    }

    private func json(_ key: RecordKey) -> JSONValue? {
        switch key {
        case .format: .number(JSONNumber(Self.format))
        case .parent: .string(parent.text)
        case .tag: .string(tag.text)
        case .epoch: .number(JSONNumber(Int64(epoch)))
        case .wraps: .array(wraps.map(\.json))
        case .commitment: .string(Base64.encodeURL(commitment))
        case .metadata: .string(Base64.encodeURL(metadata))
        case .data: data?.json
        case .shareList: shareList?.json
        case .burnTime: burnTime.map { .number(JSONNumber($0)) }
        case .base: .number(JSONNumber(base))
        case .author: (signature?.author.text).map { .string($0) }
        case .signingKey: (signature?.keyID).map { .string($0) }
        case .signature: (signature?.octets).map { .string(Base64.encodeURL($0)) }
        case .changed: stamps.changed.map { .number(JSONNumber($0)) }
        case .created: stamps.created.map { .number(JSONNumber($0)) }
        case .sender: (stamps.sender?.text).map { .string($0) }
        }
    }
}
