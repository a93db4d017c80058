import ThicketProtocol

/// An operation that was given up before it was known whether it counts: it may still be in the log.
public struct SealedLetGo: Sendable, Equatable {
    /// The author that it names.
    public let author: AuthorID
    /// Position on which it was made, at least 0.
    public let base: Int

    init(author: AuthorID, base: Int) { (self.author, self.base) = (author, base) }

    /// - Returns: nil when the value does not have the form of `json`.
    init?(_ json: JSONValue) {
        guard let list = json.arrayValue, list.count == 2,
            let author = list[0].stringValue.flatMap(AuthorID.init(text:)),
            let base = list[1].intValue.flatMap({ Int(exactly: $0) }), base >= 0
        else { return nil }
        self.init(author: author, base: base)
    }

    var json: JSONValue { [.string(author.text), .number(JSONNumber(Int64(base)))] }
}

/// Checks what another author's snapshot claims about this device's own operations. A device knows what it has sealed:
/// of one author at most one operation counts after the part of the log that its device has read, because all its
/// operations were made on that.
extension SealedObject {
    /// The author that the pending operation names.
    var pendingAuthor: AuthorID { pending?.sealedAs ?? author }

    /// Gives up the pending operation, which may be in flight.
    mutating func letPendingGo() {
        guard let pending else { return }
        letGo = SealedLetGo(author: pendingAuthor, base: pending.base)
    }

    /// Sets the author that the object's operations name from now on, after the account's keys have changed. The
    /// pending operation keeps its bytes and the author that it names until it is known whether it counts.
    public mutating func write(as author: AuthorID) {
        if pending != nil, pending?.sealedAs == nil { pending?.sealedAs = self.author }
        self.author = author
    }

    /// The position at which a later snapshot claims to have the pending operation; nil: nowhere.
    func claimed(by snapshot: SealedLog) -> Int? {
        guard let last = snapshot.lastPositions[pendingAuthor], last > log.lastPositions[pendingAuthor] ?? 0 else {
            return nil
        }
        return last
    }

    /// Whether the claims of a later snapshot of the same chain about authors and positions are possible. We have read
    /// the part up to our position ourselves.
    func isPossible(_ snapshot: SealedLog) -> Bool {
        for (author, last) in snapshot.lastPositions
        where last != log.lastPositions[author] && last <= log.position { return false }
        return Set([author, pendingAuthor]).allSatisfy { isPossible($0, snapshot) }
    }

    private func isPossible(_ own: AuthorID, _ snapshot: SealedLog) -> Bool {
        let last = snapshot.lastPositions[own] ?? 0
        let begin = max(log.position, snapshot.position - snapshot.window.count)
        for position in (begin + 1)...snapshot.position {
            let isOwn = snapshot.entry(at: position).map { $0.author == own }
            guard isOwn == nil || isOwn == (position == last) else { return false }
        }
        guard last != log.lastPositions[own] ?? 0 else { return true }
        let bases = [
            pending != nil && pendingAuthor == own ? pending?.base : nil, letGo?.author == own ? letGo?.base : nil,
        ].compactMap { $0 }
        guard let newest = bases.max() else { return false }
        return last - newest <= SealedLimits.windowPositions
    }

    /// Whether `edit` has the effect of the pending operation on the object at its place in the log.
    func isDone(by edit: Edit?, on value: JSONValue?) -> Bool {
        Self.outcome(of: edit, on: value) == Self.outcome(of: pending?.edit, on: value)
    }

    /// An edit that does not fit changes nothing.
    private static func outcome(of edit: Edit?, on value: JSONValue?) -> JSONValue? {
        guard let outcome = try? edit?.apply(to: value) else { return value }
        return outcome.value
    }

    /// Reports what the app saw when a snapshot claims to include the pending operation and its object lacks the
    /// operation's content. The operations in between are not available: another device may have removed the content,
    /// or it was never included.
    ///
    /// - Parameter seen: the object with the pending edit, before the snapshot was taken.
    func lacking(_ done: Pending, _ seen: JSONValue?) -> [SealedEvent] {
        let now: JSONValue? = log.object.map { .object($0) }
        guard let edit = done.edit, let change: Edit = Self.difference(from: seen, to: now), change.undoes(edit)
        else { return [] }
        return [.conflict(SealedConflict(path: [], losing: seen, winning: now))]
    }
}

extension Edit {
    /// Whether this edit, made on the result of another, removes content that the other inserted; also true where that
    /// cannot be determined.
    func undoes(_ other: Edit) -> Bool {
        switch (self, other) {
        case (.members(let mine), .members(let theirs)):
            theirs.contains { their in
                mine.contains { $0.key.utf8.elementsEqual(their.key.utf8) && $0.edit.undoes(their.edit) }
            }
        case (.text(let mine), .text(let theirs)): !Self.deleted(by: mine).isDisjoint(with: Self.inserted(by: theirs))
        default: true
        }
    }

    /// Places in the earlier text.
    private static func deleted(by delta: TextDelta) -> Set<Int> {
        var (places, place): (Set<Int>, Int) = ([], 0)
        for operation in delta.operations {
            switch operation {
            case .retain(let count): place += count
            case .insert: break
            case .delete(let count):
                places.formUnion(place..<(place + count))
                place += count
            }
        }
        return places
    }

    /// Places in the later text.
    private static func inserted(by delta: TextDelta) -> Set<Int> {
        var (places, place): (Set<Int>, Int) = ([], 0)
        for operation in delta.operations {
            switch operation {
            case .retain(let count): place += count
            case .delete: break
            case .insert(let units):
                places.formUnion(place..<(place + units.count))
                place += units.count
            }
        }
        return places
    }
}
