import ThicketProtocol

/// Puts what one person did to an object on top of what others did meanwhile.
///
/// Texts are merged character by character and exactly by position: no insertion of either side is lost. Where only one
/// value can stay (both changed the same number, list or truth value), `mine` stays and the key is named.
struct ThreeWayMerge: Equatable {
    /// The object with both.
    let object: JSONObject
    /// What turns `theirs` into `object`.
    let diff: ObjectDiff
    /// Others changed something too.
    let isMerged: Bool
    /// Paths of values where both said something different and `mine` stays.
    let overridden: [String]

    /// - Parameters:
    ///   - base: what `mine` was made from; nil: there was no object.
    ///   - theirs: the object as it is now.
    init(base: JSONObject?, mine: JSONObject, theirs: JSONObject) throws(DiffError) {
        let base = base ?? JSONObject()
        let own = JSONDiff.diff(from: base, to: mine)
        let other = JSONDiff.diff(from: base, to: theirs)
        let carried = try JSONDiff.transform(own, over: other, base: base, rule: .exact(tie: .after))
        // What both have set to the same value stands once.
        diff = JSONDiff.sparing(carried, of: theirs, wanted: mine) ?? carried
        object = try JSONDiff.apply(diff, to: theirs)
        isMerged = !other.isEmpty
        overridden = ThreeWayMerge.clashes(own, other, path: "")
    }

    private static func clashes(_ own: ObjectDiff, _ other: ObjectDiff, path: String) -> [String] {
        own.operations.flatMap { (key, mine) -> [String] in
            guard let theirs = other[key], theirs != mine else { return [] }
            switch (mine, theirs) {
            case (.text, .text): return []
            case (.object(let mine), .object(let theirs)): return clashes(mine, theirs, path: path + key + ".")
            default: return [path + key]
            }
        }
    }
}
