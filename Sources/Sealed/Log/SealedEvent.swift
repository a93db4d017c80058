import ThicketProtocol

/// The events of a sealed object.
public enum SealedEvent: Sendable, Equatable {
    /// This edit changed what the app sees; nil when one edit cannot describe the change.
    case changed(Edit?)
    /// The change with this id is in the log and counts.
    case acknowledged([UInt8])
    /// The change with this id does not count. Its edit was kept and is sent again as another change.
    case rebased([UInt8])
    /// Two edits conflicted and one gave way.
    case conflict(SealedConflict)
    /// An author writes under rules that this device does not know: it stops after this position until it is updated.
    /// nil: the whole object has a newer shape.
    case stopped(after: Int?)
    /// The key was deleted and created again while this device was offline.
    case recreated
    /// The server, or an attacker with its powers, does not report the true history; or data is damaged.
    case integrity(SealedIntegrity)
}

/// Which part of the data is inconsistent.
public enum SealedIntegrity: Error, Sendable, Equatable, CustomStringConvertible {
    /// Why an operation that should change the object changes nothing.
    public enum Misfit: Sendable, Equatable {
        /// Its bytes do not decrypt.
        case doesNotOpen
        /// It decrypts, but is not an operation.
        case malformed
        /// It was in the log before.
        case repeated
        /// It does not fit the object for which it claims to be made.
        case doesNotFit
    }

    /// An honest device cannot have written the operation at this position. It changes nothing.
    case misfit(at: Int, Misfit)
    /// Other devices have seen another history: it differs at this position or before.
    case forked(at: Int)
    /// The server shows a state, up to this position, that is older than what this device has seen.
    case rolledBack(to: Int)
    /// The object is missing on the server, and no device has deleted it.
    case removed
    /// The object is not sealed.
    case clear
    /// The snapshot of this position does not open, or its content differs from the result of the operations.
    case snapshotMismatch(at: Int)

    /// Whether the user must choose between the local and the server's state before anything else is written.
    public var needsChoice: Bool { if case .misfit = self { false } else { true } }

    /// A text for stores: `forked 12`. nil for a misfit, which need not be stored.
    public var word: String? {
        switch self {
        case .misfit: nil
        case .forked(let position): "forked \(position)"
        case .rolledBack(let position): "rolledBack \(position)"
        case .removed: "removed"
        case .clear: "clear"
        case .snapshotMismatch(let position): "snapshotMismatch \(position)"
        }
    }

    /// Reads what `word` writes.
    public init?(word: String) {
        let parts: [Substring] = word.split(separator: " ")
        let position = parts.count == 2 ? Int(parts[1]) : nil
        switch (parts.first, position) {
        case ("forked", let position?): self = .forked(at: position)
        case ("rolledBack", let position?): self = .rolledBack(to: position)
        case ("snapshotMismatch", let position?): self = .snapshotMismatch(at: position)
        case ("removed", nil): self = .removed
        case ("clear", nil): self = .clear
        default: return nil
        }
    }

    /// For users and logs; contains no user content.
    public var description: String {
        switch self {
        case .misfit(let position, .doesNotOpen): "operation \(position) does not open"
        case .misfit(let position, .malformed): "operation \(position) is malformed"
        case .misfit(let position, .repeated): "operation \(position) is a repetition"
        case .misfit(let position, .doesNotFit): "operation \(position) does not fit"
        case .forked(let position): "other devices have seen another history, from operation \(position) or earlier"
        case .rolledBack(let position):
            "the server shows an older state, up to operation \(position): it is dishonest or was restored from a backup"
        case .removed: "the object is missing on the server, and no device has deleted it"
        case .clear: "the object is not sealed"
        case .snapshotMismatch(let position):
            "the snapshot of operation \(position) differs from the result of the operations"
        }
    }
}
