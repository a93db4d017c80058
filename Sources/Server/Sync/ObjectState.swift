import ThicketProtocol

/// The newest state of one object, as the next change meets it.
struct ObjectState: Sendable {
    private enum Content: Sendable {
        case value(JSONObject)
        /// The text of the `SettingDiff` that made the object: most objects are not changed soon after.
        case creation([UInt8])
    }

    /// Number of the newest revision, the removal included.
    var version: Version
    /// True after a removal; `value` is then `{}`.
    var isDeleted: Bool
    /// Bytes of `value` as compact JSON.
    var size: Int
    /// Members and elements of `value`, of all levels; 0 while it is text.
    private(set) var nodes: Int
    private var content: Content

    /// - Parameter nodes: when it is known; else they are counted.
    init(version: Version, isDeleted: Bool, value: JSONObject, size: Int, nodes: Int? = nil) {
        self.version = version
        self.isDeleted = isDeleted
        self.size = size
        self.nodes = nodes ?? DocumentMeasure.nodes(of: value)
        content = .value(value)
    }

    /// The state that a creation leaves.
    init(version: Version, madeBy diff: [UInt8], size: Int) {
        self.version = version
        isDeleted = false
        self.size = size
        nodes = 0
        content = .creation(diff)
    }

    /// Bytes that it takes in memory, roughly: a tree of many small members is ten times its text and more.
    var memory: Int { size + nodes * DocumentMeasure.nodeBytes }

    /// The object.
    var value: JSONObject {
        switch content {
        case .value(let value): value
        case .creation(let diff): SettingDiff.object(diff)
        }
    }

    /// It is a tree, not a text.
    var isMade: Bool { if case .value = content { true } else { false } }

    /// Makes the object now, so that nobody makes it twice.
    mutating func makeValue() {
        guard case .creation(let diff) = content else { return }
        let value = SettingDiff.object(diff)
        nodes = DocumentMeasure.nodes(of: value)
        content = .value(value)
    }

    /// What a removal leaves, and every creation starts from.
    static func nothing(version: Version) -> ObjectState {
        ObjectState(version: version, isDeleted: true, value: JSONObject(), size: 2, nodes: 0)
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
    /// What a change does, as a value or as the text that will stand in the log.
    enum Edit: Sendable {
        case value(ObjectDiff)
        /// A `SettingDiff`, as it came.
        case text([UInt8])
    }

    /// True for `-`.
    let isRemoval: Bool
    /// The version it now applies to; nil for creations and removals.
    let source: Version?
    /// What it does to the state it was decided on. Empty for a removal.
    let edit: Edit
    /// The object afterwards; its version is the change's `ev`.
    let state: ObjectState
    /// The diff as it came, when it is as the writer would write it.
    var sent: [UInt8]?

    /// The removal of an object. Asks nobody: `EMPTY` uses it for each object.
    static func removal(of state: ObjectState) -> Decision {
        Decision(
            isRemoval: true, source: nil, edit: .value(ObjectDiff()), state: .nothing(version: state.version + 1))
    }

    /// The diff as it will stand in the log; empty for a removal.
    var diffText: [UInt8] {
        if isRemoval { return [] }
        if let sent { return sent }
        switch edit {
        case .text(let text): return text
        case .value(let diff):
            // Most diffs fit; a buffer that has to grow is copied each time.
            var writer = JSONWriter(reservingBytes: 512)
            diff.write(to: &writer)
            return writer.bytes
        }
    }
}
