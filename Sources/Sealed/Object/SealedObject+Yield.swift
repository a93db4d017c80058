import ThicketProtocol

/// Merges a draft with an object that another device has created under its key.
extension SealedObject {
    /// Another device has created this key first: local content is put on top of it, key by key, and values that give
    /// way are reported.
    ///
    /// A draft that grew from an earlier incarnation (*keep mine*) may meet related objects, because other devices may
    /// have kept theirs too. Texts that are versions of one text are joined without leaving anything out; deleted text
    /// may come back.
    public mutating func yield(to theirs: SealedObject) -> [SealedEvent] {
        let (draft, base, past) = (object, draftBase, pastIncarnations)
        let requested = requestedMark
        self = theirs
        (pastIncarnations, requestedMark) = (past, max(requested, requestedMark))
        guard let mine = draft else { return [.changed(nil)] }
        guard let other = object else {
            (later, shown) = (.set(.object(mine)), .object(mine))
            return []
        }
        var joining = Joining()
        let target = joining.join(mine, onto: other, base: base)
        if target != other {
            let whole = JSONValue.object(target)
            let edit = Self.difference(from: shown, to: whole)
            // If that edit does not give the expected object, the draft is set as a whole, so that it is not lost.
            let isExact = (try? edit?.apply(to: shown))?.value == whole
            (later, shown) = (isExact ? edit : .set(whole), whole)
        }
        return [.changed(nil)] + joining.conflicts.map { .conflict($0) }
    }
}

/// Merges a draft into an object, member by member.
private struct Joining {
    /// The values that gave way.
    private(set) var conflicts = [SealedConflict]()
    private var path = [String]()

    /// - Parameter base: the object that the draft grew from; nil: the draft is new and has no common base.
    mutating func join(_ mine: JSONObject, onto other: JSONObject, base: JSONObject?) -> JSONObject {
        var joined = other
        for (key, value) in mine.pairs {
            guard let theirs = other[key] else {
                joined[key] = value
                continue
            }
            path.append(key)
            joined[key] = join(value, onto: theirs, base: base.map { $0[key] })
            path.removeLast()
        }
        for (key, before) in base?.pairs ?? [] where !mine.contains(key) {
            guard let theirs = other[key] else { continue }
            if theirs == before {
                joined.remove(key)
            } else {
                // Another device has edited what was deleted here: its content is kept.
                conflicts.append(SealedConflict(path: path + [key], losing: nil, winning: theirs))
            }
        }
        return joined
    }

    /// - Parameter base: nil: the draft is new; `.some(nil)`: its base has no such member.
    private mutating func join(_ mine: JSONValue, onto theirs: JSONValue, base: JSONValue??) -> JSONValue {
        guard mine != theirs else { return theirs }
        if let base {
            // The other value may be older than the base, so that an unchanged local value is not given up for it
            // either.
            if theirs == base { return mine }
            switch (mine, theirs) {
            case (.object(let mine), .object(let theirs)):
                return .object(join(mine, onto: theirs, base: base?.objectValue ?? JSONObject()))
            case (.string(let mine), .string(let theirs)):
                if let text = Self.joined(mine, theirs, base: base?.stringValue ?? "") { return .string(text) }
            default: break
            }
        }
        conflicts.append(SealedConflict(path: path, losing: theirs, winning: mine))
        return mine
    }

    /// All content of both texts; nil when they are not two versions of one text.
    private static func joined(_ mine: String, _ theirs: String, base: String) -> String? {
        guard
            [mine, theirs, base].contains(where: { $0.utf8.count >= proseBytes })
                || (isVersion(mine, of: base) && isVersion(theirs, of: base))
        else { return nil }
        return TextJoining.join(theirs, with: difference(from: theirs, to: mine))
    }

    /// UTF-8 bytes from which on a text counts as prose, of which nothing is left out. Shorter texts may be keywords
    /// for a program, which make no sense when joined.
    private static let proseBytes = 64

    /// Whether at least two thirds of the base are kept.
    private static func isVersion(_ text: String, of base: String) -> Bool {
        var kept = 0
        let edit = difference(from: base, to: text)
        for case .retain(let count) in edit.operations { kept += count }
        return kept * 3 >= edit.sourceLength * 2
    }

    private static func difference(from source: String, to target: String) -> TextDelta {
        var budget = StepBudget.standard
        return TextDelta.diff(from: source, to: target, keepsShortEqualities: true, budget: &budget)
    }
}
