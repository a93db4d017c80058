/// The three-way merge of JSON values: what two sides made of one value, as one value.
///
/// A side that changed nothing yields the other one. Objects are merged member by member, lists element by element,
/// texts character by character, as edits of one object in a bucket (`JSONDiff.transform`, exact). Where both sides
/// changed one value and only one can stay, the local one does, and the other one is a loss. Pure; bounded by the depth
/// of the parser and a budget of steps.
public struct JSONMerge: Sendable, Equatable {
    /// A value that gave way.
    public struct Loss: Sendable, Equatable {
        /// Keys and list indexes from the outermost in; empty for the whole value. User content: not for logs.
        public let path: [String]
        /// What gave way; nil: a removal.
        public let losing: JSONValue?
        /// What stays; nil: a removal.
        public let winning: JSONValue?
    }

    /// The merged value.
    public let value: JSONValue
    /// What only the other side had and the merged value does not have, at most `lossesMax`.
    public let losses: [Loss]

    /// Most losses that are kept.
    public static let lossesMax = 1_000

    /// Merges two values.
    ///
    /// - Parameters:
    ///   - base: what both were made from.
    ///   - local: wins where only one can stay.
    ///   - remote: the other side.
    ///   - budget: steps for all comparisons; when it is used up, texts and lists are compared coarsely.
    /// - Throws: `DiffError` for a text that holds half of a character.
    public init(
        base: JSONValue, local: JSONValue, remote: JSONValue, budget: StepBudget = .standard
    ) throws(DiffError) {
        var walk = MergeWalk(budget: budget)
        value = try walk.merged(base, local, remote) ?? local
        losses = walk.losses
    }
}

/// The current place of a merge, and what it has found.
struct MergeWalk {
    var budget: StepBudget
    var losses = [JSONMerge.Loss]()
    private var path = [String]()

    init(budget: StepBudget) { self.budget = budget }

    /// - Parameter base: nil: neither side had the value.
    /// - Returns: nil for a value that is removed.
    mutating func merged(
        _ base: JSONValue?, _ local: JSONValue?, _ remote: JSONValue?
    ) throws(DiffError) -> JSONValue? {
        if local == remote || remote == base { return local }
        if local == base { return remote }
        switch (base, local, remote) {
        case (.object(let base), .object(let local), .object(let remote)):
            return .object(try members(base, local, remote))
        case (nil, .object(let local), .object(let remote)):
            return .object(try members(JSONObject(), local, remote))
        case (.array(let base), .array(let local), .array(let remote)):
            if let list = try elements(base, local, remote) { return .array(list) }
        case (nil, .array(let local), .array(let remote)):
            if let list = try elements([], local, remote) { return .array(list) }
        case (.string(let base), .string(let local), .string(let remote)):
            return .string(try text(base, local, remote))
        default: break
        }
        lose(remote, to: local)
        return local
    }

    /// Merges one level deeper.
    mutating func merged(
        at key: String, _ base: JSONValue?, _ local: JSONValue?, _ remote: JSONValue?
    ) throws(DiffError) -> JSONValue? {
        path.append(key)
        defer { path.removeLast() }
        return try merged(base, local, remote)
    }

    private mutating func lose(_ losing: JSONValue?, to winning: JSONValue?) {
        guard losses.count < JSONMerge.lossesMax else { return }
        losses.append(JSONMerge.Loss(path: path, losing: losing, winning: winning))
    }

    /// The other side's members first, in their order, then those that are new here.
    private mutating func members(
        _ base: JSONObject, _ local: JSONObject, _ remote: JSONObject
    ) throws(DiffError) -> JSONObject {
        var result = JSONObject(reserving: max(local.count, remote.count))
        for (key, theirs) in remote.pairs {
            guard let value = try merged(at: key, base[key], local[key], theirs) else { continue }
            result.append(key: key, value: value)
        }
        for (key, mine) in local.pairs where !remote.contains(key) {
            guard let value = try merged(at: key, base[key], mine, nil) else { continue }
            result.append(key: key, value: value)
        }
        return result
    }

    private mutating func text(_ base: String, _ local: String, _ remote: String) throws(DiffError) -> String {
        let mine = TextDelta.diff(from: base, to: local, keepsShortEqualities: true, budget: &budget)
        let theirs = TextDelta.diff(from: base, to: remote, keepsShortEqualities: true, budget: &budget)
        let moved = try JSONDiff.transform(
            .text(mine), over: .text(theirs), base: .string(base), rule: .exact(tie: .after), depth: 0, &budget)
        guard case .text(let delta)? = moved else { return remote }
        do throws(DeltaError) { return try delta.apply(to: remote) } catch {
            throw DiffError(.delta(error), path: path)
        }
    }
}
