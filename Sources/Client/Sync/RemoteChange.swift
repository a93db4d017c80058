import ThicketProtocol

/// A change that the server applied, as received.
struct RemoteChange {
    enum Effect {
        /// nil: the diff could not be parsed.
        case modify(ObjectDiff?)
        case remove
    }

    let key: EntityKey
    let changeIDs: [String]
    let position: ChangeVersion?
    let effect: Effect
    /// nil or 0: the object is new.
    let source: Version?
    let end: Version

    init(_ change: AppliedChange) {
        switch change.operation {
        case .remove: effect = .remove
        case .modify: effect = .modify(change.diff.flatMap { try? ObjectDiff($0.value) })
        }
        (key, changeIDs, position) = (change.key, change.ccids, change.cv)
        (source, end) = (change.sv, change.ev)
    }
}
