import ThicketProtocol

/// Decides one change against the newest state of its object: the table of the wire contract, 6.3, without I/O.
///
/// Names, rights and ccids have been checked before (`CheckedChange`, the bucket's set of ccids).
struct ChangeEngine: Sendable {
    /// Bytes of an object as compact JSON; more is answered 413.
    var documentBytesMax = 1 << 20
    /// Nesting of an object, the object itself counting one; more is answered 413. An operation takes two levels of a
    /// diff, so at less than half of the parser's limit every diff of such objects can be read inside any message.
    var documentDepthMax = (Limits.jsonDepthMax - 16) / 2
    /// Version before the first of a key that never existed (raised by restores).
    var versionBase: Version = 0

    typealias Outcome = Result<Decision, ChangeRejection>

    /// - Parameters:
    ///   - state: newest state; nil when the key never existed.
    ///   - history: everything done after a version; nil when it is not all known. Asked for late changes only, throws
    ///     only when the store failed.
    /// - Returns: what to write, or why not.
    func decide<Failure: Error>(
        _ change: CheckedChange, state: ObjectState?, history: (Version) throws(Failure) -> LaterChanges?
    ) throws(Failure) -> Outcome {
        switch change.intent {
        case .remove:
            return Outcome { () throws(ChangeRejection) in try removal(change, state: state) }
        case .empty:
            return .failure(ChangeRejection(.invalidRequest, "EMPTY is no change of one object"))
        case .modify(let diff, .ghostRecord?):
            // The client cannot get out of this by itself: after 412 it drops the change, and its next edit, made
            // from its newer ghost, carries everything (wire contract, 1.11).
            let outcome = try modification(change, diff: diff, state: state, history: history)
            guard case .failure(let reason) = outcome, [.notFound, .badVersion, .invalidDiff].contains(reason.code)
            else { return outcome }
            return .failure(ChangeRejection(.emptyChange, "a ghost record in d, and v: \(reason)"))
        case .modify(_, .object(let whole)?):
            return try replacement(change, whole: whole, state: state, history: history) { whole, _ in whole }
        case .modify(_, .members(let members)?):
            return try replacement(change, whole: members, state: state, history: history) { members, base in
                base.setting(members)
            }
        case .modify(let diff, nil):
            return try modification(change, diff: diff, state: state, history: history)
        }
    }

    // MARK: Removal

    private func removal(_ change: CheckedChange, state: ObjectState?) throws(ChangeRejection) -> Decision {
        guard let state else { throw ChangeRejection(.notFound, "removal of a key that never existed") }
        guard !state.isDeleted else { throw ChangeRejection(.emptyChange, "removed already") }
        if let source = change.source {
            guard source == state.version else {
                throw ChangeRejection(.badVersion, "removal of version \(source), the newest is \(state.version)")
            }
        } else if change.echoesRemoval, change.library == .nodeSimperium {
            throw ChangeRejection(.emptyChange, "echo of a removal, the object has been made anew since")
        }
        return .removal(of: state)
    }

    // MARK: Diff

    private func modification<Failure: Error>(
        _ change: CheckedChange, diff sent: ChangeRequest.Diff?, state: ObjectState?,
        history: (Version) throws(Failure) -> LaterChanges?
    ) throws(Failure) -> Outcome {
        if state?.isDeleted ?? true, change.source == nil, let creation = creation(sent, after: state) {
            return .success(creation)
        }
        let edit: ObjectDiff
        do {
            edit = try parse(sent)
        } catch {
            return .failure(error)
        }
        guard let state, !state.isDeleted else {
            if let source = change.source {
                return .failure(ChangeRejection(.notFound, "sv \(source) of an object that is not there"))
            }
            return create(edit, after: state)
        }
        guard let source = change.source else { return merge(edit, change.rule, into: state) }
        if source == state.version { return apply(edit, to: state, sent: sent) }
        guard source < state.version, let later = try history(source) else {
            return .failure(ChangeRejection(.badVersion, "sv \(source) is not kept, the newest is \(state.version)"))
        }
        let wanted = change.isWhole ? try? JSONDiff.apply(edit, to: later.base) : nil
        return rebase(edit, over: later, change.rule, onto: state, wanted: wanted)
    }

    private func parse(_ sent: ChangeRequest.Diff?) throws(ChangeRejection) -> ObjectDiff {
        guard let sent else { throw ChangeRejection(.invalidDiff, "no v") }
        do {
            // Reading and writing again also spells text deltas as every client reads them: some libraries escape
            // more than JavaScript's decodeURI undoes (wire contract, 7.2).
            return try ObjectDiff(sent)
        } catch {
            throw ChangeRejection(.invalidDiff, "v is not a diff")
        }
    }

    /// The usual creation, decided from its text; nil for any other, and for one that must be refused.
    private func creation(_ sent: ChangeRequest.Diff?, after state: ObjectState?) -> Decision? {
        guard case .node(let node)? = sent, let diff = SettingDiff(node), diff.objectSize <= documentBytesMax,
            diff.depthMax <= documentDepthMax
        else { return nil }
        let text = Array(node.rawBytes)
        return Decision(
            isRemoval: false, source: nil, edit: .text(text),
            state: ObjectState(
                version: (state?.version ?? versionBase) + 1, madeBy: text, size: diff.objectSize))
    }

    // MARK: Whole object

    /// `d`: the difference is computed here, from the version its author saw if that is known, else from the newest.
    /// - Parameter target: what the author wants, from what was sent and what it was made on.
    private func replacement<Failure: Error>(
        _ change: CheckedChange, whole sent: JSONFragment, state: ObjectState?,
        history: (Version) throws(Failure) -> LaterChanges?, target: (JSONObject, JSONObject) -> JSONObject
    ) throws(Failure) -> Outcome {
        let whole: JSONObject
        do {
            whole = try read(sent, sizeMax: max(documentBytesMax, state?.size ?? 0))
        } catch {
            return .failure(error)
        }
        guard let state, !state.isDeleted else {
            if change.needsSource, let source = change.source {
                return .failure(ChangeRejection(.notFound, "version \(source) of an object that is not there"))
            }
            return create(JSONDiff.diff(from: JSONObject(), to: whole), after: state)
        }
        if let source = change.source, source != state.version {
            if source < state.version, let later = try history(source) {
                let wanted = target(whole, later.base)
                let edit = JSONDiff.diff(from: later.base, to: wanted)
                return rebase(
                    edit, over: later, change.rule, onto: state, wanted: change.wantsWholeObject ? wanted : nil)
            }
            guard !change.needsSource else {
                return .failure(
                    ChangeRejection(.badVersion, "version \(source) is not kept, the newest is \(state.version)"))
            }
        }
        return apply(JSONDiff.diff(from: state.value, to: target(whole, state.value)), to: state)
    }

    /// Reads an object of at most `sizeMax` bytes as compact JSON. What is longer even if every byte of it is an escape
    /// is not read, and nothing too long is compared with anything.
    private func read(_ sent: JSONFragment, sizeMax: Int) throws(ChangeRejection) -> JSONObject {
        if case .node(let node) = sent, node.rawBytes.count > sizeMax * Limits.jsonEscapeBytesMax {
            throw ChangeRejection(.tooLarge, "\(node.rawBytes.count) bytes in d, the most is \(documentBytesMax)")
        }
        guard let object = sent.object else {
            throw ChangeRejection(.invalidRequest, "d is not an object")
        }
        let size = JSONValue.object(object).serializedSize
        guard size <= sizeMax else {
            throw ChangeRejection(.tooLarge, "\(size) bytes in d, the most is \(documentBytesMax)")
        }
        return object
    }

    // MARK: Shared steps

    /// Two clients made the same key: the second one's additions are merged into the object (wire contract, 6.3).
    private func merge(_ edit: ObjectDiff, _ rule: TransformRule, into state: ObjectState) -> Outcome {
        guard (try? JSONDiff.apply(edit, to: JSONObject())) != nil else {
            return .failure(ChangeRejection(.invalidDiff, "a creation that does not apply to nothing"))
        }
        let made = ObjectDiff(
            edit.operations.compactMap { key, _ in
                state.value[key].map { (key: key, operation: .insert($0)) }
            })
        let creation = LaterChange(action: .modify(made), before: nil)
        return rebase(edit, over: LaterChanges(base: JSONObject(), changes: [creation]), rule, onto: state)
    }

    /// - Parameter wanted: the object that the author wants to have set as a whole; nil for an edit that is only what
    ///   it does. Values that are already as wanted are left as they are (docs/decisions/0086).
    private func rebase(
        _ edit: ObjectDiff, over later: LaterChanges, _ rule: TransformRule, onto state: ObjectState,
        wanted: JSONObject? = nil
    ) -> Outcome {
        var late = LateEdit(JSONDiff.keepingPairsWhole(edit, in: later.base), on: later.base)
        do {
            try late.rebase(over: later.changes, rule: rule)
        } catch .tooLate {
            return .failure(ChangeRejection(.badVersion, "too much was done since, the newest is \(state.version)"))
        } catch {
            return .failure(ChangeRejection(.invalidDiff, "the diff does not fit its source version"))
        }
        let spared = wanted.flatMap { JSONDiff.sparing(late.edit, of: state.value, wanted: $0) }
        return apply(spared ?? late.edit, to: state)
    }

    /// - Parameter sent: `edit` as it came; nil for one that has been carried over others.
    private func apply(_ edit: ObjectDiff, to state: ObjectState, sent: ChangeRequest.Diff? = nil) -> Outcome {
        Outcome { () throws(ChangeRejection) in
            var edit = edit
            let after = try applied(&edit, to: state)
            let changes = edit.operations.contains { key, _ in state.value[key] != after.value[key] }
            guard changes else { throw ChangeRejection(.emptyChange, "nothing changes") }
            var decision = Decision(isRemoval: false, source: state.version, edit: .value(edit), state: after)
            if case .node(let node)? = sent, SettingDiff(node) != nil { decision.sent = Array(node.rawBytes) }
            return decision
        }
    }

    /// Versions go on after a removal; `sv` stays absent, and the diff is one from `{}` (wire contract, 6.3).
    private func create(_ edit: ObjectDiff, after state: ObjectState?) -> Outcome {
        Outcome { () throws(ChangeRejection) in
            let nothing = ObjectState.nothing(version: state?.version ?? versionBase)
            var edit = edit
            let after = try applied(&edit, to: nothing)
            return Decision(isRemoval: false, source: nil, edit: .value(edit), state: after)
        }
    }

    /// - Parameter edit: what it becomes stands in the log and goes to everybody: no delta in it cuts a surrogate pair.
    private func applied(_ edit: inout ObjectDiff, to state: ObjectState) throws(ChangeRejection) -> ObjectState {
        let value: JSONObject
        do {
            value = try Self.apply(&edit, to: state.value)
        } catch {
            throw ChangeRejection(.invalidDiff, "the diff does not fit version \(state.version)")
        }
        let (size, nodes) = DocumentMeasure.measure(
            after: edit, before: state.value, size: state.size, nodes: state.nodes, after: value)
        // An object that an earlier, higher limit let in may still shrink.
        guard size <= documentBytesMax || size <= state.size else {
            throw ChangeRejection(.tooLarge, "\(size) bytes, the most is \(documentBytesMax)")
        }
        guard DocumentMeasure.fits(edit, in: value, depth: documentDepthMax) else {
            throw ChangeRejection(.tooLarge, "nested deeper than \(documentDepthMax)")
        }
        return ObjectState(version: state.version + 1, isDeleted: false, value: value, size: size, nodes: nodes)
    }

    private static func apply(_ edit: inout ObjectDiff, to object: JSONObject) throws(DiffError) -> JSONObject {
        do throws(DiffError) { return try JSONDiff.applyWhole(edit, to: object) } catch {
            guard error.kind == .delta(.splitSurrogate) else { throw error }
            edit = JSONDiff.keepingPairsWhole(edit, in: object)
            return try JSONDiff.apply(edit, to: object)
        }
    }
}
