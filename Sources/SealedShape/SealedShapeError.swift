import ThicketProtocol

/// Why an object or a change does not have the shape of a sealed bucket. The wire code is 400, except for
/// `tailTooLong`.
public struct SealedShapeError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kinds of violation.
    public enum Kind: Equatable, Sendable {
        /// The object's key cannot result from a name key.
        case clearKey
        /// Other members than `z`, `s` and `d`, or of another type.
        case otherMembers
        /// `z` is a whole number beyond `SealedEntity.shape`: a newer program has written it.
        case newerShape
        /// A key of `s` is not a position.
        case badPosition
        /// A value is not base64url of a sealed value, which has a known suite, the kind of its place, and a padded
        /// length.
        case notSealed
        /// Neither the creation, nor one insertion at 0, nor a compaction.
        case otherChange
        /// The whole object in `d`.
        case wholeObject
        /// More than one snapshot in a creation, none, or more than `SealedLimits.snapshotsMax`.
        case tooManySnapshots
        /// The operation's id is not the ccid of its change.
        case otherChangeID
        /// A compaction that removes what it does not cover, or the newest snapshot.
        case badCompaction
        /// The tail has too many operations or bytes: 413 until a client compacts.
        case tailTooLong
    }

    /// The violation.
    public let kind: Kind

    /// An error of this kind.
    public init(_ kind: Kind) { self.kind = kind }

    /// The code for the wire.
    public var code: ErrorCode { kind == .tailTooLong ? .tooLarge : .invalidRequest }

    /// Contains no user content.
    public var description: String {
        switch kind {
        case .clearKey: "an object's key in a sealed bucket is the base32 of 20 bytes"
        case .otherMembers: "a sealed object has exactly the members z, s and d"
        case .newerShape: "a sealed object of a newer shape than this program knows"
        case .badPosition: "a snapshot's position is not a number"
        case .notSealed: "a value is not sealed"
        case .otherChange: "neither a creation, nor an insertion at 0, nor a compaction"
        case .wholeObject: "whole objects are not accepted in a sealed bucket"
        case .tooManySnapshots: "wrong number of snapshots"
        case .otherChangeID: "the sealed operation names another change"
        case .badCompaction: "the compaction removes what it does not cover"
        case .tailTooLong: "too many operations since the last snapshot"
        }
    }
}
