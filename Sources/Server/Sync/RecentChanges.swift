import ThicketProtocol

/// The newest changes of one object, kept in memory so that late edits are rebased without reading the log.
///
/// Diffs are small and all kept. The values between them are kept for the newest changes as far as they fit, and for
/// every sixteenth change; the other values are recomputed from those when an edit is that late.
struct RecentChanges {
    /// The change as a value, or as the diff's log text, which is parsed only when needed.
    enum Action: Sendable {
        case value(LaterChange.Action)
        case text([UInt8])
    }

    private struct Entry: Sendable {
        /// The version that the change made.
        let version: Version
        private(set) var action: Action
        /// The object before the change; nil when it was dropped.
        var before: JSONObject?
        /// Bytes of `before`.
        let valueSize: Int
        /// Bytes of the diff.
        let diffSize: Int
        /// Whether `before` is kept until the entry is dropped.
        let isAnchor: Bool

        /// Releases the entry's content.
        mutating func empty() {
            before = nil
            action = .text([])
        }
    }

    private static let anchorDistance = 16

    /// Oldest first, versions without gaps. The first entry is an anchor.
    private var entries = ArraySlice<Entry>()
    /// Entries before this index have no value unless they are anchors.
    private var thinnedEnd = 0
    private var sinceAnchor = 0
    /// Dropped large values. Deallocating them takes long, so it is left to another thread than the shard's.
    private var large = [any Sendable]()
    /// Approximate bytes: values count in full, although they share what a change did not touch.
    private(set) var size = 0

    var count: Int { entries.count }
    /// The version made by the oldest change in memory; nil when there is none.
    var oldestVersion: Version? { entries.first?.version }

    /// - Parameters:
    ///   - before: the object before the change.
    ///   - beforeSize: bytes of `before` in memory.
    ///   - diffSize: bytes of the diff in memory.
    mutating func append(
        _ action: Action, before: JSONObject, beforeSize: Int, makes version: Version, diffSize: Int
    ) {
        if let last = entries.last, last.version + 1 != version { removeAll() }
        if entries.isEmpty { thinnedEnd = 0 }
        let isAnchor = entries.isEmpty || sinceAnchor >= Self.anchorDistance
        sinceAnchor = isAnchor ? 1 : sinceAnchor + 1
        let entry = Entry(
            version: version, action: action, before: before, valueSize: beforeSize, diffSize: diffSize,
            isAnchor: isAnchor)
        // Most objects are created and not changed soon, so the initial capacity is one.
        if entries.isEmpty { entries = [entry] } else { entries.append(entry) }
        size += beforeSize + diffSize
    }

    /// Whether all changes after `version` are in memory.
    func reaches(back version: Version) -> Bool {
        guard let oldest = oldestVersion, let newest = entries.last?.version else { return false }
        return oldest <= version + 1 && version < newest
    }

    /// All changes after `version`; nil when some of them are no longer in memory, or when no change was made.
    func changes(after version: Version) -> LaterChanges? {
        guard let oldest = oldestVersion, oldest <= version + 1, let newest = entries.last?.version,
            version < newest
        else { return nil }
        let first = entries.startIndex + Int(version + 1 - oldest)
        guard let anchor = entries[...first].lastIndex(where: { $0.before != nil }),
            var base = entries[anchor].before
        else { return nil }
        for index in anchor..<first {
            guard let action = entries[index].action.value,
                let after = try? LaterChange(action: action, before: nil).applied(to: base)
            else { return nil }
            base = after
        }
        var changes = [LaterChange]()
        changes.reserveCapacity(entries.endIndex - first)
        for entry in entries[first...] {
            guard let action = entry.action.value else { return nil }
            changes.append(LaterChange(action: action, before: entry.before))
        }
        return LaterChanges(base: base, changes: changes)
    }

    /// Drops the oldest values, then the oldest changes, until the bounds hold.
    ///
    /// Must be called only when all changes are durable, because the log does not have the others.
    mutating func trim(countMax: Int, bytesMax: Int) {
        while size > bytesMax, thinOldest() {}
        while entries.count > countMax || size > bytesMax, dropOldest() {}
        // A slice keeps its whole buffer; the unused part is released from time to time.
        if entries.startIndex > 4 * (entries.count + Self.anchorDistance) {
            thinnedEnd -= entries.startIndex
            entries = ArraySlice(Array(entries))
        }
    }

    /// The large values that `trim` dropped.
    mutating func takeLarge() -> [any Sendable] {
        guard !large.isEmpty else { return [] }
        defer { large = [] }
        return large
    }

    mutating func removeAll() {
        entries = []
        size = 0
        thinnedEnd = 0
        sinceAnchor = 0
    }

    /// Drops one value between anchors. False when none is left.
    private mutating func thinOldest() -> Bool {
        thinnedEnd = max(thinnedEnd, entries.startIndex)
        while thinnedEnd < entries.endIndex {
            let index = thinnedEnd
            thinnedEnd += 1
            if !entries[index].isAnchor, entries[index].before != nil {
                if entries[index].valueSize >= DocumentMeasure.largeBytes, let value = entries[index].before {
                    large.append(value)
                }
                entries[index].before = nil
                size -= entries[index].valueSize
                return true
            }
        }
        return false
    }

    /// Drops the oldest anchor and the entries that depend on it. False when no entry was left.
    private mutating func dropOldest() -> Bool {
        guard entries.isEmpty == false else { return false }
        repeat {
            guard let entry = entries.first else { break }
            // A slice keeps the elements before its start, so the content is released explicitly.
            entries[entries.startIndex].empty()
            entries.removeFirst()
            size -= entry.diffSize + (entry.before == nil ? 0 : entry.valueSize)
            if entry.valueSize + entry.diffSize >= DocumentMeasure.largeBytes { large.append(entry) }
        } while entries.first.map({ !$0.isAnchor }) ?? false
        return true
    }
}

extension RecentChanges.Action {
    /// As a value; nil for a text that is not a diff, which does not occur in the log.
    fileprivate var value: LaterChange.Action? {
        switch self {
        case .value(let action): action
        case .text(let text): (try? ObjectDiff(JSONDocument(parsing: text).root)).map { .modify($0) }
        }
    }
}
