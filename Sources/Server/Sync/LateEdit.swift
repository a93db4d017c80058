import ThicketProtocol

/// Carries an edit over what was done to its object since the version it was made on, in bounded time: one thread
/// decides the changes of all users.
///
/// The first changes are met one by one, by the rule of the author's library. When that has cost enough, what is left
/// is composed and met at once, exactly. Both ways give the same object, but for where an insertion stands among others
/// of the same place, and for what somebody typed into a text that the edit sets whole and somebody else has replaced
/// since: one by one it comes back. Nothing that somebody typed is lost.
struct LateEdit {
    /// Bytes of objects read while changes are met one by one; 5 to 30 ms in a release build, fuzzy patching included.
    static let singleWorkMax = 4 << 20
    /// The same in all. Beyond it the edit is too late (405). Reached only by changes that do not compose.
    static let workMax = 32 << 20
    /// What meeting a change costs with an object of no size, in the same unit.
    static let stepWork = 16 << 10

    enum Failure: Error {
        case diff(DiffError)
        case tooLate
    }

    private(set) var edit: ObjectDiff
    private var base: JSONObject
    /// Bytes of objects read so far.
    private(set) var work = 0
    /// Changes and compositions met so far.
    private(set) var steps = 0
    /// The change met last: what it makes of the object is only needed when another follows.
    private var last: LaterChange?

    /// - Parameters:
    ///   - edit: made on `base`.
    ///   - base: the object at the edit's version.
    init(_ edit: ObjectDiff, on base: JSONObject) {
        self.edit = edit
        self.base = base
    }

    /// - Parameter singleWorkMax: work after which the rest is composed.
    mutating func rebase(
        over changes: [LaterChange], rule: TransformRule, singleWorkMax: Int = Self.singleWorkMax
    ) throws(Failure) {
        let budget = Self.budget(steps: changes.count)
        var index = 0
        while index < changes.count, work < singleWorkMax {
            try meet(changes, index, rule, budget)
            index += 1
        }
        guard index < changes.count else { return }
        let rest = Self.compose(changes[index...], sparing: EditedKeys(edit))
        let exact = rule == .reference ? .exact(tie: .after) : rule
        for index in rest.indices { try meet(rest, index, exact, budget) }
    }

    private mutating func meet(
        _ changes: [LaterChange], _ index: Int, _ rule: TransformRule, _ budget: StepBudget
    ) throws(Failure) {
        guard work < Self.workMax else { throw .tooLate }
        do throws(DiffError) {
            // What the change before this one left; the first meets the edit's own base.
            if steps > 0, let before = changes[index].before {
                base = before
            } else if let last {
                base = try last.applied(to: base)
            }
            edit = try JSONDiff.transform(
                edit, over: changes[index].diff(of: base, meeting: edit), base: base, rule: rule, budget: budget)
        } catch {
            throw .diff(error)
        }
        last = changes[index]
        steps += 1
        work += Self.stepWork + base.serializedSize
    }

    /// What one step may spend on fuzzy patching: the usual sum for the whole rebase, but always enough for a short
    /// edit. When it is used up, texts are transformed exactly, which loses nothing.
    private static func budget(steps: Int) -> StepBudget {
        StepBudget(steps: max(20_000, StepBudget.standard.remaining / max(steps, 1)))
    }

    // MARK: Composing

    /// As few changes as do the same, by halves: each byte of a diff is copied a few times, not once per change.
    static func compose(_ changes: ArraySlice<LaterChange>, sparing edited: EditedKeys) -> [LaterChange] {
        guard changes.count > 1 else { return Array(changes) }
        let middle = changes.startIndex + changes.count / 2
        var result = compose(changes[..<middle], sparing: edited)
        let right = compose(changes[middle...], sparing: edited)
        guard let first = result.last, let second = right.first,
            let both = compose(first, second, edited)
        else { return result + right }
        result[result.count - 1] = both
        result.append(contentsOf: right.dropFirst())
        return result
    }

    /// Nil when the two must be met one after the other.
    private static func compose(_ first: LaterChange, _ second: LaterChange, _ edited: EditedKeys) -> LaterChange? {
        guard case .modify(let one) = first.action, case .modify(let two) = second.action,
            !edited.areSet(by: one), !edited.areSet(by: two),
            let both = try? JSONDiff.compose(one, two)
        else { return nil }
        return LaterChange(action: .modify(both), before: first.before)
    }
}

/// The keys that an edit touches, at every level.
///
/// When somebody makes, replaces or removes such a value, what the edit becomes follows from the value just before and
/// just after. So that change is met by itself, with all that was done until then. Only an edit that sets the value
/// itself takes no notice of others that set it.
struct EditedKeys {
    private enum Use {
        case sets
        case edits(EditedKeys)
    }
    private var keys = [String: Use]()

    init(_ edit: ObjectDiff) {
        for (key, operation) in edit.operations {
            switch operation {
            case .replace: keys[key] = .sets
            case .object(let nested): keys[key] = .edits(EditedKeys(nested))
            case .insert, .remove, .increment, .text, .list, .listText: keys[key] = .edits(EditedKeys(ObjectDiff()))
            }
        }
    }

    /// Whether the change must be met by itself. Keys that are only canonically equal may count: that costs time, never
    /// an edit.
    func areSet(by diff: ObjectDiff) -> Bool {
        guard !keys.isEmpty else { return false }
        return diff.operations.contains { key, operation in
            switch (keys[key], operation) {
            case (nil, _): false
            case (_, .insert), (_, .remove), (.edits, .replace): true
            case (.edits(let inner), .object(let nested)): inner.areSet(by: nested)
            default: false
            }
        }
    }
}
