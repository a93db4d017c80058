/// Diff, apply and transform as lines of JSON, so that any program can be compared with this one.
///
/// | verb | line in | line out |
/// |---|---|---|
/// | diff | `{"source":{…},"target":{…}}` | `{"diff":{…}}` |
/// | apply | `{"source":{…},"diff":{…}}` | `{"applied":{…}}` |
/// | transform | `{"base":{…},"a_diff":{…},"b_diff":{…}}` | `{"transformed":{…},"result":{…}}` |
///
/// A diff is the map of a change's `v`. `transformed` is a rebased over b by the reference's rule, `result` the object
/// after b and `transformed`. Other members are ignored. Any error gives `{"error":"…"}`.
public enum JSONDiffLines {
    /// The operation to run; its raw value is the verb of the command line.
    public enum Verb: String, Sendable, CaseIterable {
        /// The difference of two objects.
        case diff
        /// The object after a diff.
        case apply
        /// A diff rebased over another one.
        case transform
    }

    /// Bound of the JSON nesting of a line: an edit needs two levels per level of the object.
    static let depthMax: Int = 2 * Limits.jsonDepthMax + 8

    /// The answer to one line, without a line feed. Errors are answers too.
    public static func answer(line: [UInt8], verb: Verb) -> [UInt8] {
        do {
            return JSONValue.object(try answer(to: JSONValue(parsing: line, maxDepth: depthMax), verb)).serialized()
        } catch {
            let reason =
                switch error {
                case let error as JSONError: error.description
                case let error as DiffError: error.description
                case let error as MissingMember: "no object called \(error.name)"
                default: "failed"
                }
            return JSONValue.object(["error": .string(reason)]).serialized()
        }
    }

    private struct MissingMember: Error { let name: String }

    private static func answer(to line: JSONValue, _ verb: Verb) throws -> JSONObject {
        func object(_ name: String) throws(MissingMember) -> JSONObject {
            guard let object = line[name]?.objectValue else { throw MissingMember(name: name) }
            return object
        }
        func diff(_ name: String) throws -> ObjectDiff { try ObjectDiff(.object(object(name))) }

        switch verb {
        case .diff:
            return ["diff": JSONDiff.diff(from: try object("source"), to: try object("target")).json]
        case .apply:
            return ["applied": .object(try JSONDiff.apply(diff("diff"), to: object("source")))]
        case .transform:
            let base = try object("base")
            let (a, b) = (try diff("a_diff"), try diff("b_diff"))
            let theirs = try JSONDiff.apply(b, to: base)
            let moved = try JSONDiff.transform(a, over: b, base: base, rule: .reference)
            return ["transformed": moved.json, "result": .object(try JSONDiff.apply(moved, to: theirs))]
        }
    }
}
