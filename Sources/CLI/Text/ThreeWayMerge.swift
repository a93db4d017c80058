import ThicketProtocol

/// Applies the changes of one author to an object that others have changed meanwhile.
///
/// Texts are merged character by character at exact positions: no insertion of either side is lost. Where only one
/// value can remain (both changed the same number, list or truth value), `mine` remains and the path is listed.
struct ThreeWayMerge: Equatable {
    /// The object with both changes.
    let object: JSONObject
    /// The difference from `theirs` to `object`.
    let diff: ObjectDiff
    /// Others made changes, too.
    let isMerged: Bool
    /// Paths of values that both sides changed differently and where `mine` remains.
    let overridden: [String]

    /// - Parameters:
    ///   - base: the object from which `mine` was made; nil: the object did not exist.
    ///   - theirs: the present object.
    init(base: JSONObject?, mine: JSONObject, theirs: JSONObject) throws(DiffError) {
        let base = base ?? JSONObject()
        let own = JSONDiff.diff(from: base, to: mine)
        let other = JSONDiff.diff(from: base, to: theirs)
        let carried = try JSONDiff.transform(own, over: other, base: base, rule: .exact(tie: .after))
        // A value that both sides have set alike is set only once.
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
