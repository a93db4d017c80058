/// Why the body of a request cannot be read as JSON, as a message to the author of the request. Contains nothing of the
/// body, which may be a password.
public struct JSONBodyProblem: Error, Hashable, Sendable {
    /// The rest of the sentence that begins with the body: "not JSON: a repeated key (line 1, column 9)".
    public let text: String
    /// The body is well formed as far as it was read, but too large or too deeply nested.
    public let isTooLarge: Bool

    /// Describes an error.
    ///
    /// - Parameters:
    ///   - depthMax: levels of nesting that the reader of the body accepts.
    ///   - body: the bytes that were read.
    public init(_ error: JSONError, in body: [UInt8], depthMax: Int = Limits.jsonDepthMax) {
        let reason = error.explanation(in: body, depthMax: depthMax)
        isTooLarge = error.kind == .tooDeep || error.kind == .tooLarge
        text = isTooLarge ? reason : "not JSON: \(reason)"
    }

    private init(_ text: String) { (self.text, isTooLarge) = (text, false) }

    /// The body is valid JSON, but not an object.
    public static let noObject = JSONBodyProblem("JSON, but not one object")
}

extension JSONDocument {
    /// Reads the body of a request, which must be one JSON object.
    ///
    /// - Throws: `JSONBodyProblem` when it is not.
    public static func object(
        in body: [UInt8], depthMax: Int = Limits.jsonDepthMax
    ) throws(JSONBodyProblem) -> JSONNode {
        let root: JSONNode
        do throws(JSONError) { root = try JSONDocument(parsing: body, maxDepth: depthMax).root } catch {
            throw JSONBodyProblem(error, in: body, depthMax: depthMax)
        }
        guard root.kind == .object else { throw .noObject }
        return root
    }
}
