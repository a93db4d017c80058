import ThicketPlatform
import ThicketSealedShape

/// The part of a change that a sealed bucket does not accept; a label of `thicket_sealed_refused_total`.
public enum SealedFault: String, Sendable, Hashable, CaseIterable, MetricLabel {
    /// A difference or an object in the form of open buckets, or of a newer shape.
    case clear
    /// A key that is not the tag of a name.
    case key
    /// A value that is not sealed: not base64url, an unknown suite or kind, or a length that no padding produces.
    case value
    /// A sealed operation that was sent under another ccid than its own.
    case changeID = "ccid"
    /// A compaction that does not remove exactly what it covers.
    case compaction
    /// Too many operations, or bytes of operations, since the last snapshot: 413.
    case tail

    /// The label for an error of the shape check.
    init(_ error: SealedShapeError) {
        switch error.kind {
        case .otherMembers, .newerShape, .otherChange, .wholeObject: self = .clear
        case .clearKey: self = .key
        case .notSealed: self = .value
        case .otherChangeID: self = .changeID
        case .badPosition, .tooManySnapshots, .badCompaction: self = .compaction
        case .tailTooLong: self = .tail
        }
    }
}

extension ChangeRejection {
    init(_ error: SealedShapeError) {
        self.init(error.code, error.description, sealedFault: SealedFault(error))
    }
}
