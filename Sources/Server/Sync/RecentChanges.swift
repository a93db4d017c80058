import ThicketProtocol

/// The newest changes of one object, kept in memory so that late edits are rebased without reading the log.
///
/// Diffs are small and kept; the values between them are kept for the newest ones while they fit, and for every
/// sixteenth, from which the others are made again when somebody is that late.
struct RecentChanges {
    /// What was done, as a value or as a diff's text in the log: nobody may ever ask for it.
    enum Action: Sendable {
        case value(LaterChange.Action)
        case text([UInt8])
    }

    private struct Entry: Sendable {
        /// The version that the change made.
        let version: Version
        private(set) var action: Action
        /// The object before; nil when it was given up.
        var before: JSONObject?
        /// Bytes of `before`.
        let valueSize: Int
        /// Bytes of the diff.
        let diffSize: Int
        /// True when `before` stays as long as the entry.
        let isAnchor: Bool

        /// Holds nothing any more.
        mutating func empty() {
            before = nil
            action = .text([])
        }
    }

    private static let anchorDistance = 16

    /// Oldest first, versions without gaps. The first is an anchor.
    private var entries: ArraySlice<Entry> = []
    /// Entries before this index keep no value unless they are anchors.
    private var thinnedEnd = 0
    private var sinceAnchor = 0
    /// What was given up and is large: to let go of it takes time, which is not to be the shard's.
    private var large = [any Sendable]()
    /// Bytes held, roughly: values count whole though they share what a change did not touch.
    private(set) var size = 0

    var count: Int { entries.count }
    /// The version that the oldest change in here made; nil when there is none.
    var oldestVersion: Version? { entries.first?.version }

    /// - Parameters:
    ///   - before: the object before the change, and its bytes in memory.
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
        // Most objects are made and not changed soon: room for one is enough at first.
        if entries.isEmpty { entries = [entry] } else { entries.append(entry) }
        size += beforeSize + diffSize
    }

    /// Whether everything done after `version` is here.
    func reaches(back version: Version) -> Bool {
        guard let oldest = oldestVersion, let newest = entries.last?.version else { return false }
        return oldest <= version + 1 && version < newest
    }

    /// Everything done after `version`; nil when some of it is no longer here, or nothing was done.
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

    /// Gives up the oldest values, then the oldest changes, until the bounds hold.
    ///
    /// Only when all of them are durable: the log does not have the others.
    mutating func trim(countMax: Int, bytesMax: Int) {
        while size > bytesMax, thinOldest() {}
        while entries.count > countMax || size > bytesMax, dropOldest() {}
        // A slice keeps its whole buffer; give the forgotten part back now and then.
        if entries.startIndex > 4 * (entries.count + Self.anchorDistance) {
            thinnedEnd -= entries.startIndex
            entries = ArraySlice(Array(entries))
        }
    }

    /// What `trim` gave up that takes long to let go of.
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

    /// Gives up one value between anchors. False when there is none left.
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

    /// Forgets the oldest anchor and what hangs on it. False when nothing was left to forget.
    private mutating func dropOldest() -> Bool {
        guard entries.isEmpty == false else { return false }
        repeat {
            guard let entry = entries.first else { break }
            // A slice keeps what it has passed: what stood there must not be held by it.
            entries[entries.startIndex].empty()
            entries.removeFirst()
            size -= entry.diffSize + (entry.before == nil ? 0 : entry.valueSize)
            if entry.valueSize + entry.diffSize >= DocumentMeasure.largeBytes { large.append(entry) }
        } while entries.first.map({ !$0.isAnchor }) ?? false
        return true
    }
}

extension RecentChanges.Action {
    /// As a value; nil for a text that is no diff, which none in the log is.
    fileprivate var value: LaterChange.Action? {
        switch self {
        case .value(let action): action
        case .text(let text): (try? ObjectDiff(JSONDocument(parsing: text).root)).map { .modify($0) }
        }
    }
}
