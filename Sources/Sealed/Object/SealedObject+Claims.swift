import ThicketProtocol

/// An operation that was given up before it was known whether it counts: it may stand in the log all the same.
public struct SealedLetGo: Sendable, Equatable {
    public let author: AuthorID
    /// Position that it was made on, at least 0.
    public let base: Int

    init(author: AuthorID, base: Int) { (self.author, self.base) = (author, base) }

    /// - Returns: nil when it is not what `json` writes.
    init?(_ json: JSONValue) {
        guard let list = json.arrayValue, list.count == 2,
            let author = list[0].stringValue.flatMap(AuthorID.init(text:)),
            let base = list[1].intValue.flatMap({ Int(exactly: $0) }), base >= 0
        else { return nil }
        self.init(author: author, base: base)
    }

    var json: JSONValue { [.string(author.text), .number(JSONNumber(Int64(base)))] }
}

/// What a snapshot that somebody else has made says of this device's own operations. A device knows what it has sealed:
/// of one author at most one operation counts behind what its device has read, since whatever it has sealed was made on
/// that.
extension SealedObject {
    /// The author that the pending operation names.
    var pendingAuthor: AuthorID { pending?.sealedAs ?? author }

    /// The pending operation is given up, and may be on its way.
    mutating func letPendingGo() {
        guard let pending else { return }
        letGo = SealedLetGo(author: pendingAuthor, base: pending.base)
    }

    /// From now on the object's operations name this author: the account has other keys. The pending operation keeps
    /// the bytes that it has, and the author that it names, until it is known whether it counts.
    public mutating func write(as author: AuthorID) {
        if pending != nil, pending?.sealedAs == nil { pending?.sealedAs = self.author }
        self.author = author
    }

    /// Where a snapshot ahead of us has the pending operation, as it says; nil: nowhere.
    func claimed(by snapshot: SealedLog) -> Int? {
        guard let last = snapshot.lastPositions[pendingAuthor], last > log.lastPositions[pendingAuthor] ?? 0 else {
            return nil
        }
        return last
    }

    /// Whether a snapshot ahead of us, of the same chain as far as can be seen, may be right in what it says of who
    /// wrote where. What stands up to our position we have read ourselves.
    func isPossible(_ snapshot: SealedLog) -> Bool {
        for (author, last) in snapshot.lastPositions
        where last != log.lastPositions[author] && last <= log.position { return false }
        return Set([author, pendingAuthor]).allSatisfy { isPossible($0, snapshot) }
    }

    private func isPossible(_ own: AuthorID, _ snapshot: SealedLog) -> Bool {
        let last = snapshot.lastPositions[own] ?? 0
        let begin = max(log.position, snapshot.position - snapshot.window.count)
        for position in (begin + 1)...snapshot.position {
            let isOwn = snapshot.settled(at: position).map { $0.author == own }
            guard isOwn == nil || isOwn == (position == last) else { return false }
        }
        guard last != log.lastPositions[own] ?? 0 else { return true }
        let bases = [
            pending != nil && pendingAuthor == own ? pending?.base : nil, letGo?.author == own ? letGo?.base : nil,
        ].compactMap { $0 }
        guard let newest = bases.max() else { return false }
        return last - newest <= SealedLimits.windowPositions
    }

    /// Whether this is what the pending operation does to the object at its place in the log.
    func isDone(by edit: Edit?, on value: JSONValue?) -> Bool {
        Self.outcome(of: edit, on: value) == Self.outcome(of: pending?.edit, on: value)
    }

    /// What does not fit changes nothing.
    private static func outcome(of edit: Edit?, on value: JSONValue?) -> JSONValue? {
        guard let outcome = try? edit?.apply(to: value) else { return value }
        return outcome.value
    }

    /// What the app saw, where a snapshot has the pending operation, as it says, and its object lacks what that put
    /// there. The operations between are not to be had: somebody may have taken it out again, or it was never in.
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
    /// Whether this edit, made on what another has left, takes away something that the other put there; also where that
    /// cannot be told.
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

    /// Places in the text before.
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

    /// Places in the text afterwards.
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
