import ThicketProtocol

/// The newest state of one object, on which the next change is decided.
struct ObjectState: Sendable {
    private enum Content: Sendable {
        case value(JSONObject)
        /// The text of the `SettingDiff` that created the object; most objects are not changed soon after, so it is not
        /// parsed.
        case creation([UInt8])
    }

    /// Number of the newest version; a removal makes a version too.
    var version: Version
    /// True after a removal; `value` is then `{}`.
    var isDeleted: Bool
    /// Bytes of `value` as compact JSON.
    var size: Int
    /// Number of members and elements of `value`, of all levels; 0 while it is held as text.
    private(set) var nodes: Int
    private var content: Content

    /// - Parameter nodes: counted if not given.
    init(version: Version, isDeleted: Bool, value: JSONObject, size: Int, nodes: Int? = nil) {
        self.version = version
        self.isDeleted = isDeleted
        self.size = size
        self.nodes = nodes ?? DocumentMeasure.nodes(of: value)
        content = .value(value)
    }

    /// The state after a creation.
    init(version: Version, madeBy diff: [UInt8], size: Int) {
        self.version = version
        isDeleted = false
        self.size = size
        nodes = 0
        content = .creation(diff)
    }

    /// Approximate bytes in memory: a tree of many small members takes ten times its text or more.
    var memory: Int { size + nodes * DocumentMeasure.nodeBytes }

    /// The object; parsed on each call while it is held as text.
    var value: JSONObject {
        switch content {
        case .value(let value): value
        case .creation(let diff): SettingDiff.object(diff)
        }
    }

    /// Whether the object is held as a tree, not as text.
    var isMade: Bool { if case .value = content { true } else { false } }

    /// Parses the object, so that it is not parsed again later.
    mutating func makeValue() {
        guard case .creation(let diff) = content else { return }
        let value = SettingDiff.object(diff)
        nodes = DocumentMeasure.nodes(of: value)
        content = .value(value)
    }

    /// The state after a removal, from which every creation starts.
    static func nothing(version: Version) -> ObjectState {
        ObjectState(version: version, isDeleted: true, value: JSONObject(), size: 2, nodes: 0)
    }
}

/// The changes made to an object after the source version of a late change, oldest first.
struct LaterChanges: Sendable {
    /// The object at that version; `{}` when it was deleted.
    var base: JSONObject
    /// Never empty.
    var changes: [LaterChange]
}

/// One change made after the source version of a late change.
struct LaterChange: Sendable {
    enum Action: Sendable {
        case modify(ObjectDiff)
        case remove
    }
    let action: Action
    /// The object immediately before the change, if available; otherwise it follows from the earlier changes.
    let before: JSONObject?

    /// The change as a diff of `base`, restricted to what affects `edit`.
    ///
    /// A removal counts as the removal of every key: the edit then wins key by key, as it does inside an object (wire
    /// contract, 7.4), and no typed text is lost when the object has been created again in between.
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

    /// The object immediately after the change.
    func applied(to base: JSONObject) throws(DiffError) -> JSONObject {
        switch action {
        case .modify(let diff): try JSONDiff.apply(diff, to: base)
        case .remove: JSONObject()
        }
    }
}

/// A decided change in its form for the log and the wire, and the object after it.
struct Decision: Sendable {
    /// The effect of a change, as a value or as the text for the log.
    enum Edit: Sendable {
        case value(ObjectDiff)
        /// A `SettingDiff`, as it was sent.
        case text([UInt8])
    }

    /// True for `-`.
    let isRemoval: Bool
    /// The version that the diff applies to; nil for creations and removals.
    let source: Version?
    /// The diff from the state on which the change was decided. Empty for a removal.
    let edit: Edit
    /// The object after the change; its version is the change's `ev`.
    let state: ObjectState
    /// The diff as it was sent, if it equals the text that the writer would produce.
    var sent: [UInt8]?

    /// The removal of an object, without any checks; `EMPTY` uses it for each object.
    static func removal(of state: ObjectState) -> Decision {
        Decision(
            isRemoval: true, source: nil, edit: .value(ObjectDiff()), state: .nothing(version: state.version + 1))
    }

    /// The diff as text for the log; empty for a removal.
    var diffText: [UInt8] {
        if isRemoval { return [] }
        if let sent { return sent }
        switch edit {
        case .text(let text): return text
        case .value(let diff):
            // Most diffs fit; growing the buffer would copy it.
            var writer = JSONWriter(reservingBytes: 512)
            diff.write(to: &writer)
            return writer.bytes
        }
    }
}
