import ThicketProtocol

/// The newest state of one object, as the next change meets it.
struct ObjectState: Sendable {
    /// Number of the newest revision, the removal included.
    var version: Version
    /// True after a removal; `value` is then `{}`.
    var isDeleted: Bool
    /// The object.
    var value: JSONObject
    /// Bytes of `value` as compact JSON.
    var size: Int

    /// What a removal leaves, and every creation starts from.
    static func nothing(version: Version) -> ObjectState {
        ObjectState(version: version, isDeleted: true, value: JSONObject(), size: 2)
    }
}

/// What was done to an object after the version that a late change names, oldest first.
struct LaterChanges: Sendable {
    /// The object at that version; `{}` when it was deleted.
    var base: JSONObject
    /// Never empty.
    var changes: [LaterChange]
}

/// One change made after the version that a late change names.
struct LaterChange: Sendable {
    /// What was done.
    enum Action: Sendable {
        case modify(ObjectDiff)
        case remove
    }
    let action: Action
    /// The object just before, when it is at hand; else it follows from the changes before this one.
    let before: JSONObject?

    /// The change as a diff of `base`, as far as `edit` meets it.
    ///
    /// A removal is the removal of every key: an edit then wins key by key, as it does inside an object (wire
    /// contract, 7.4), and nothing typed is lost when the object has been made anew in between.
    func diff(of base: JSONObject, meeting edit: ObjectDiff) -> ObjectDiff {
        switch action {
        case .modify(let diff):
            diff
        case .remove:
            ObjectDiff(
                edit.operations.compactMap { key, _ in
                    base.contains(key) ? (key: key, operation: .remove) : nil
                })
        }
    }

    /// The object just after.
    func applied(to base: JSONObject) throws(DiffError) -> JSONObject {
        switch action {
        case .modify(let diff): try JSONDiff.apply(diff, to: base)
        case .remove: JSONObject()
        }
    }
}

/// A change as it will stand in the log and on the wire, and the object after it.
struct Decision: Sendable {
    /// True for `-`.
    let isRemoval: Bool
    /// The version it now applies to; nil for creations and removals.
    let source: Version?
    /// What it does to the state it was decided on. Empty for a removal.
    let diff: ObjectDiff
    /// The object afterwards; its version is the change's `ev`.
    let state: ObjectState

    /// The removal of an object. Asks nobody: `EMPTY` uses it for each object.
    static func removal(of state: ObjectState) -> Decision {
        Decision(isRemoval: true, source: nil, diff: ObjectDiff(), state: .nothing(version: state.version + 1))
    }
}
