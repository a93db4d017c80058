import ThicketProtocol

/// Decides one change against the newest state of its object, by the table of the wire contract, 6.3; performs no I/O.
///
/// Names, permissions and ccids have been checked before (`CheckedChange`, the bucket's set of ccids).
struct ChangeEngine: Sendable {
    /// Maximum bytes of an object as compact JSON; a larger one is answered with 413.
    var documentBytesMax = 1 << 20
    /// Maximum nesting of an object, counting the object itself as one; deeper ones are answered with 413. An operation
    /// takes two levels of a diff, so below half of the parser's limit every diff of such objects can be parsed inside
    /// any message.
    var documentDepthMax = (Limits.jsonDepthMax - 16) / 2
    /// Version before the first version of a key that never existed (raised by restores).
    var versionBase: Version = 0

    typealias Outcome = Result<Decision, ChangeRejection>

    /// - Parameters:
    ///   - state: newest state; nil when the key never existed.
    ///   - history: returns all changes after a version; nil when they are not all known. Called for late changes only;
    ///     throws only when the store failed.
    /// - Returns: the row to write, or the reason for a refusal.
    func decide<Failure: Error>(
        _ change: CheckedChange, state: ObjectState?, history: (Version) throws(Failure) -> LaterChanges?
    ) throws(Failure) -> Outcome {
        switch change.intent {
        case .remove:
            return Outcome { () throws(ChangeRejection) in try removal(change, state: state) }
        case .empty:
            return .failure(ChangeRejection(.invalidRequest, "EMPTY does not change a single object"))
        case .modify(let diff, .ghostRecord?):
            // The client cannot recover from this error by itself. After 412 it drops the change, and its next edit,
            // made from its newer ghost, contains everything (wire contract, 1.11).
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
        guard !state.isDeleted else { throw ChangeRejection(.emptyChange, "already removed") }
        if let source = change.source {
            guard source == state.version else {
                throw ChangeRejection(.badVersion, "removal of version \(source), the newest is \(state.version)")
            }
        } else if change.echoesRemoval, change.library == .nodeSimperium {
            throw ChangeRejection(.emptyChange, "echo of a removal, the object has been created again since")
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
                return .failure(ChangeRejection(.notFound, "sv \(source) of a missing object"))
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
            // Parsing and writing again also normalizes text deltas so that every client can read them: some libraries
            // escape more than JavaScript's decodeURI decodes (wire contract, 7.2).
            return try ObjectDiff(sent)
        } catch {
            throw ChangeRejection(.invalidDiff, "v is not a diff")
        }
    }

    /// Decides an ordinary creation from its text; nil for any other change, and for a creation that must be refused.
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

    /// Handles `d`: computes the difference from the version that the author saw if it is known, otherwise from the
    /// newest.
    /// - Parameter target: computes the object that the author wants from the sent value and the object it was based
    ///   on.
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
                return .failure(ChangeRejection(.notFound, "version \(source) of a missing object"))
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

    /// Parses an object of at most `sizeMax` bytes as compact JSON. Text that is too long even if every byte is an
    /// escape is not parsed, and an object that is too long is not compared.
    private func read(_ sent: JSONFragment, sizeMax: Int) throws(ChangeRejection) -> JSONObject {
        if case .node(let node) = sent, node.rawBytes.count > sizeMax * Limits.jsonEscapeBytesMax {
            throw ChangeRejection(.tooLarge, "\(node.rawBytes.count) bytes in d, the maximum is \(documentBytesMax)")
        }
        guard let object = sent.object else {
            throw ChangeRejection(.invalidRequest, "d is not an object")
        }
        let size = JSONValue.object(object).serializedSize
        guard size <= sizeMax else {
            throw ChangeRejection(.tooLarge, "\(size) bytes in d, the maximum is \(documentBytesMax)")
        }
        return object
    }

    // MARK: Shared steps

    /// Two clients created the same key: the second client's members are merged into the object (wire contract, 6.3).
    private func merge(_ edit: ObjectDiff, _ rule: TransformRule, into state: ObjectState) -> Outcome {
        guard (try? JSONDiff.apply(edit, to: JSONObject())) != nil else {
            return .failure(ChangeRejection(.invalidDiff, "a creation that does not apply to an empty object"))
        }
        let made = ObjectDiff(
            edit.operations.compactMap { key, _ in
                state.value[key].map { (key: key, operation: .insert($0)) }
            })
        let creation = LaterChange(action: .modify(made), before: nil)
        return rebase(edit, over: LaterChanges(base: JSONObject(), changes: [creation]), rule, onto: state)
    }

    /// - Parameter wanted: the object that the author set as a whole; nil for an ordinary edit. Values that already
    ///   have the wanted value are left unchanged (docs/decisions/0086).
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

    /// - Parameter sent: `edit` as it was sent; nil for an edit that has been rebased.
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

    /// Versions continue after a removal; `sv` is absent, and the diff applies to `{}` (wire contract, 6.3).
    private func create(_ edit: ObjectDiff, after state: ObjectState?) -> Outcome {
        Outcome { () throws(ChangeRejection) in
            let nothing = ObjectState.nothing(version: state?.version ?? versionBase)
            var edit = edit
            let after = try applied(&edit, to: nothing)
            return Decision(isRemoval: false, source: nil, edit: .value(edit), state: after)
        }
    }

    /// - Parameter edit: adjusted so that no delta in it splits a surrogate pair, because it goes to the log and to all
    ///   clients.
    private func applied(_ edit: inout ObjectDiff, to state: ObjectState) throws(ChangeRejection) -> ObjectState {
        let value: JSONObject
        do {
            value = try Self.apply(&edit, to: state.value)
        } catch {
            throw ChangeRejection(.invalidDiff, "the diff does not fit version \(state.version)")
        }
        let (size, nodes) = DocumentMeasure.measure(
            after: edit, before: state.value, size: state.size, nodes: state.nodes, after: value)
        // An object that was accepted under an earlier, higher limit may still shrink.
        guard size <= documentBytesMax || size <= state.size else {
            throw ChangeRejection(.tooLarge, "\(size) bytes, the maximum is \(documentBytesMax)")
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
