/// Why a JSON object is not a record. Contains nothing of the record.
public enum RecordFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// The bytes are not JSON, or JSON that is nested deeper than a record.
    case notJSON
    /// More than `TreeLimits.recordBytesMax` bytes.
    case tooLarge
    /// A member that this version does not know. Nothing would authenticate it.
    case unknownMember
    /// A member that only the server writes is in a record from a device.
    case stamped
    /// `l` is not a list of members.
    case shareList(ShareListFault)
    /// `l` is for another key than the record's: another epoch or commitment.
    case otherShareKey
    /// A required member is missing.
    case missing(RecordKey)
    /// A member has another JSON type.
    case wrongType(RecordKey)
    /// A number is not whole, out of bounds, or not in plain decimal digits.
    case badNumber(RecordKey)
    /// A binary value is not base64url without padding, or has another length than it must have.
    case badBytes(RecordKey)
    /// The format is not 1.
    case otherFormat
    /// `p` is neither a trunk nor the id of a node.
    case badParent
    /// `n` is not the base32 of 20 bytes.
    case badTag
    /// `w` is empty.
    case noWraps
    /// `w` has more than `TreeLimits.wrapsMax` elements.
    case tooManyWraps
    /// An element of `w` has other members than its kind, an unknown kind, or another length.
    case badWrap
    /// Two elements of `w` are for one reader.
    case repeatedWrap
    /// `m` or a wrap begins with the number of an unknown suite.
    case unknownSuite
    /// The length of `m` does not result from padding.
    case badMetadata
    /// `d` has other members than either form, or an id that is not one.
    case badData
    /// `d.i` has more than `TreeLimits.inlineBytesMax` bytes or fewer than a header.
    case badInlineSize
    /// `d.z` is a length that sealed content cannot have.
    case badBlobSize
    /// `by` or `_from` is not the name of a user.
    case badUser(RecordKey)
    /// `k` is not the id of a key.
    case badKeyID
    /// Only some of `by`, `k` and `sig` are present.
    case incompleteSignature
    /// The record of a copy, or of the root of a shared branch, has no `by`, `k` and `sig`.
    case unsigned
    /// The record of a copy has other wrapped keys than one: the receiver's in the inbox, elsewhere one under the
    /// parent's key. Or the key of a shared branch's root is wrapped for other users than the readers in its list.
    case otherReaders

    /// The word for the answer of a server.
    public var reason: RefusalReason { self == .tooLarge ? .record : .badRecord }

    /// A sentence without content of the record.
    public var description: String {
        switch self {
        case .notJSON: "the record is not JSON, or nested too deep"
        case .tooLarge: "a record has at most \(TreeLimits.recordBytesMax) bytes"
        case .unknownMember: "the record has a member that this version does not know"
        case .stamped: "only the server writes members that begin with _"
        case .shareList(let fault): "l is not a list of members: \(fault.description)"
        case .otherShareKey: "l is for another key than the record's"
        case .missing(let key): "the record lacks \(key.rawValue)"
        case .wrongType(let key): "\(key.rawValue) has another JSON type"
        case .badNumber(let key): "\(key.rawValue) is not a whole number within its bounds, in plain digits"
        case .badBytes(let key): "\(key.rawValue) is not base64url without padding of the right length"
        case .otherFormat: "the format of a record is \(NodeRecord.format)"
        case .badParent: "p is neither a trunk nor the id of a node"
        case .badTag: "n is not the base32 of 20 bytes"
        case .noWraps: "w has no wrapped key"
        case .tooManyWraps: "w has more than \(TreeLimits.wrapsMax) wrapped keys"
        case .badWrap: "an element of w is not a wrapped key"
        case .repeatedWrap: "w has two wrapped keys for one reader"
        case .unknownSuite: "an unknown number of a suite"
        case .badMetadata: "m has a length that no sealed metadata has"
        case .badData: "d is neither {id, i} nor {id, z, b}"
        case .badInlineSize: "d.i is content of \(TreeLimits.contentBytesMin) to \(TreeLimits.inlineBytesMax) bytes"
        case .badBlobSize: "d.z is a length that no sealed content has"
        case .badUser(let key): "\(key.rawValue) is not the name of a user"
        case .badKeyID: "k is not the id of a key"
        case .incompleteSignature: "by, k and sig are either all present or all absent"
        case .unsigned: "the record of a copy, or of a shared branch's root, has by, k and sig"
        case .otherReaders: "w has other readers: a copy has one, the root of a shared branch those in its list"
        }
    }
}
