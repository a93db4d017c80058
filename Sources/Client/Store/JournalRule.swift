import ThicketProtocol

/// Decides between appending a step and writing the whole value, by the server's rule for keyframes
/// (docs/decisions/0008).
enum JournalRule {
    /// Below this size in bytes, writing the whole ghost costs no more than a step: it fits into one page of the file.
    static let ghostBytesMin = 4_096
    /// The same bound for edits, which share their page with others.
    static let editBytesMin = 1_024
    /// Steps that are kept in any case.
    static let stepsMin = 16
    /// Most steps: reading an object applies all of them.
    static let stepsMax = 1_024

    /// - Parameters:
    ///   - count: number of steps to append; together they have `bytes` bytes.
    ///   - chain: the steps already stored, on top of a whole value of `whole` bytes.
    static func appends(_ count: Int, bytes: Int, to chain: StepChain, whole: Int, wholeMin: Int) -> Bool {
        whole >= wholeMin && bytes <= whole && chain.count + count <= stepsMax
            && (chain.count < stepsMin || chain.bytes < whole)
    }
}

/// The steps stored for one part of an object.
struct StepChain {
    var count = 0
    /// Total size of the diffs as stored in the file.
    var bytes = 0
    /// The place of the next step.
    var next: Int64 = 1
}

/// The stored size of one object, in bytes.
struct JournalSizes {
    /// Size of the row with the whole ghost; 0 when it does not exist.
    var ghost = 0
    /// Approximate size of the row with the edits; 0 when it does not exist.
    var edits = 0
    var ghostChain = StepChain()
    var laterChain = StepChain()
}

extension JSONObject {
    /// Whether the object holds at least that many bytes of text. Stops as soon as the answer is known.
    func holds(bytes: Int) -> Bool {
        var left = bytes
        Self.deduct(.object(self), &left)
        return left <= 0
    }

    private static func deduct(_ value: JSONValue, _ left: inout Int) {
        switch value {
        case .null, .bool, .number: left -= 4
        case .string(let text): left -= text.utf8.count + 2
        case .array(let elements):
            for element in elements where left > 0 { deduct(element, &left) }
        case .object(let object):
            for (key, value) in object.pairs where left > 0 {
                left -= key.utf8.count + 4
                deduct(value, &left)
            }
        }
    }
}
