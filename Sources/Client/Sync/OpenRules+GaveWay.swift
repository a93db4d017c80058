import ThicketProtocol

/// Reports values of others that gave way to an edit of this device. A waiting local edit is ordered after the server's
/// changes, so the local value prevails; only this device knows that its author had not seen the other value.
extension OpenRules {
    /// Reports each value of a foreign change that a local edit replaced.
    ///
    /// - Parameters:
    ///   - edits: the local edits before the change arrived.
    ///   - ghost: the state from which both were made.
    ///   - next: the object after the foreign change.
    ///   - local: the object with the local edits on top.
    static func reportGaveWay(
        _ bucket: inout BucketMachine, _ key: EntityKey, _ edits: EditState, over change: Edit?, ghost: JSONObject?,
        next: JSONObject?,
        local: JSONObject?, _ turn: inout SyncTurn
    ) {
        guard let change, let mine = try? Edits.compose(edits.pending?.edit, edits.later, base: ghost) else { return }
        var paths = [[String]]()
        switch (mine, change) {
        case (.remove, .remove): return
        case (.remove, _), (_, .remove): paths = [[]]
        case (.modify(let own), .modify(let theirs)): Self.contested(own, theirs, under: [], &paths)
        }
        for path in paths.prefix(SyncLimits.gaveWayMax) {
            let (losing, winning) = (Self.value(at: path, in: next), Self.value(at: path, in: local))
            guard losing != winning, !Self.isOnTop(winning, of: losing, path) else { continue }
            let report = ConflictReport(key: bucket.shownKey(key, &turn), path: path, losing: losing, winning: winning)
            bucket.reportOnce(.conflict(report), &turn)
        }
    }

    /// The paths at which both edits touch one value and one of them sets or removes it as a whole. Texts, lists and
    /// sums that both edit are merged.
    private static func contested(
        _ mine: ObjectDiff, _ theirs: ObjectDiff, under path: [String], _ paths: inout [[String]]
    ) {
        for (key, operation) in mine.operations {
            guard let other = theirs[key] else { continue }
            switch (operation, other) {
            case (.object(let own), .object(let foreign)): contested(own, foreign, under: path + [key], &paths)
            case (.insert, _), (.replace, _), (.remove, _), (_, .insert), (_, .replace), (_, .remove):
                paths.append(path + [key])
            default: break
            }
        }
    }

    /// A local edit inside an object that others have set was applied on top of theirs: nothing gave way.
    private static func isOnTop(_ winning: JSONValue?, of losing: JSONValue?, _ path: [String]) -> Bool {
        guard !path.isEmpty, let own = winning?.objectValue, let theirs = losing?.objectValue else { return false }
        return theirs.pairs.allSatisfy { own[$0.key] != nil }
    }

    private static func value(at path: [String], in object: JSONObject?) -> JSONValue? {
        var value = object.map(JSONValue.object)
        for key in path { value = value?[key] }
        return value
    }
}
