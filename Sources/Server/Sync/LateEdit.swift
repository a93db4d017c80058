import ThicketProtocol

/// Rebases an edit over the changes made to its object since the edit's base version, in bounded time, because one
/// thread decides the changes of all users.
///
/// The first changes are transformed over one by one, by the rule of the author's library. When that has cost enough,
/// the remaining changes are composed and transformed over at once, by the exact rule. Both ways give the same object,
/// with two exceptions: the order of insertions at the same place, and text that one client typed into a text that the
/// edit sets as a whole and that another client has replaced since (it reappears when transforming one by one). No
/// typed text is lost.
struct LateEdit {
    /// Bytes of objects read while transforming one by one; 5 to 30 ms in a release build, including fuzzy patching.
    static let singleWorkMax = 4 << 20
    /// Total bytes of objects read. Beyond it the edit is too late (405). Only changes that do not compose reach this
    /// bound.
    static let workMax = 32 << 20
    /// Cost of transforming over one change of an object of size 0, in the same unit.
    static let stepWork = 16 << 10

    enum Failure: Error {
        case diff(DiffError)
        case tooLate
    }

    private(set) var edit: ObjectDiff
    private var base: JSONObject
    /// Bytes of objects read so far.
    private(set) var work = 0
    /// Changes and compositions transformed over so far.
    private(set) var steps = 0
    /// The latest change. Its result is computed only if another change follows.
    private var last: LaterChange?

    /// - Parameters:
    ///   - edit: made on `base`.
    ///   - base: the object at the edit's version.
    init(_ edit: ObjectDiff, on base: JSONObject) {
        self.edit = edit
        self.base = base
    }

    /// - Parameter singleWorkMax: work after which the remaining changes are composed.
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
            // The result of the previous change; the first change applies to the edit's own base.
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

    /// The bound on fuzzy patching in one step: the usual total divided by the number of steps, but enough for a short
    /// edit. When it is used up, texts are transformed exactly, without loss.
    private static func budget(steps: Int) -> StepBudget {
        StepBudget(steps: max(20_000, StepBudget.standard.remaining / max(steps, 1)))
    }

    // MARK: Composing

    /// Composes changes into as few as possible by halving: each byte of a diff is copied a few times, not once per
    /// change.
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

    /// Nil when the two changes must be transformed over one after the other.
    private static func compose(_ first: LaterChange, _ second: LaterChange, _ edited: EditedKeys) -> LaterChange? {
        guard case .modify(let one) = first.action, case .modify(let two) = second.action,
            !edited.areSet(by: one), !edited.areSet(by: two),
            let both = try? JSONDiff.compose(one, two)
        else { return nil }
        return LaterChange(action: .modify(both), before: first.before)
    }
}

/// The keys that an edit changes, at every level.
///
/// When another change creates, replaces or removes the value of such a key, the result of the edit depends on the
/// value immediately before and after that change. That change is therefore transformed over separately, after all
/// changes before it. Only an edit that sets the value itself is independent of other changes that set it.
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

    /// Whether the change must be transformed over separately. Keys that are only canonically equal may also match:
    /// that costs time, but never loses an edit.
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
