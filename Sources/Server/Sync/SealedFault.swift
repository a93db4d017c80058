import ThicketSealedShape

/// What a change had that is not taken in a sealed bucket; a label of `thicket_sealed_refused_total`.
public enum SealedFault: String, Sendable, Hashable, CaseIterable, MetricLabel {
    /// A difference or an object as open buckets have them, or of a newer shape.
    case clear
    /// A key that is not the tag of a name.
    case key
    /// A value that is not sealed: no base64url, an unknown suite or kind, a length that no padding gives.
    case value
    /// A sealed operation that came under another ccid than its own.
    case changeID = "ccid"
    /// A compaction that does not remove exactly what it covers.
    case compaction
    /// Too many operations since the last snapshot, or bytes of them: 413.
    case tail

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
