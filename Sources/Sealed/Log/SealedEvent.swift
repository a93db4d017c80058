import ThicketProtocol

/// What a sealed object has to tell.
public enum SealedEvent: Sendable, Equatable {
    /// What the app sees has changed by this edit; nil when more happened than one edit tells.
    case changed(Edit?)
    /// The change with this id stands in the log, and counts.
    case acknowledged([UInt8])
    /// The change with this id counts for nothing. Its edit was kept, and goes out again as another change.
    case rebased([UInt8])
    /// Two edits met and one had to give way.
    case conflict(SealedConflict)
    /// Somebody writes under rules that this device does not know: it stops after this position until it is updated.
    /// nil: the whole object is of a newer shape.
    case stopped(after: Int?)
    /// The key was deleted and made again while we were away.
    case recreated
    /// The server, or somebody with its powers, does not tell the truth; or something is broken.
    case integrity(SealedIntegrity)
}

/// What does not fit together.
public enum SealedIntegrity: Error, Sendable, Equatable, CustomStringConvertible {
    /// Why an operation changes nothing that should have.
    public enum Misfit: Sendable, Equatable {
        case doesNotOpen
        case malformed
        /// It stood in the log before.
        case repeated
        case doesNotFit
    }

    /// The operation at this position is not what an honest device has written there. It changes nothing.
    case misfit(at: Int, Misfit)
    /// Others have seen another history: it differs at this position or before.
    case forked(at: Int)
    /// The server shows a state, up to this position, that is older than what this device has seen.
    case rolledBack(to: Int)
    /// The object is gone from the server, and nobody has deleted it.
    case removed
    /// The object is not sealed.
    case clear
    /// The snapshot of this position does not open, or holds something else than the operations give.
    case snapshotMismatch(at: Int)

    /// Whether the user must choose between what is here and what the server shows, before anything else is written.
    public var needsChoice: Bool { if case .misfit = self { false } else { true } }

    /// A word for stores: `forked 12`. A misfit has none, it needs nothing to be kept.
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

    /// For users and logs: no content.
    public var description: String {
        switch self {
        case .misfit(let position, .doesNotOpen): "operation \(position) does not open"
        case .misfit(let position, .malformed): "operation \(position) is none"
        case .misfit(let position, .repeated): "operation \(position) was there before"
        case .misfit(let position, .doesNotFit): "operation \(position) does not fit"
        case .forked(let position): "other devices have seen another history, from operation \(position) or earlier"
        case .rolledBack(let position):
            "the server shows an older state, up to operation \(position): it is not honest, or was restored from a backup"
        case .removed: "the object is gone from the server, and nobody has deleted it"
        case .clear: "the object is not sealed"
        case .snapshotMismatch(let position): "the snapshot of operation \(position) is not what the operations give"
        }
    }
}
