import ThicketProtocol

/// When a step is appended, and when the whole is written anew: the server's rule for keyframes (docs/decisions/0008).
enum JournalRule {
    /// Bytes below which writing the whole costs no more than a step: what fits into one page of the file.
    static let ghostBytesMin = 4_096
    /// The same for edits, which share their page with others.
    static let editBytesMin = 1_024
    /// Steps that are kept in any case.
    static let stepsMin = 16
    /// Steps at most: reading an object applies them all.
    static let stepsMax = 1_024

    /// - Parameters:
    ///   - count: steps to append, of `bytes` in all.
    ///   - chain: steps that are kept, over a whole of `whole` bytes.
    static func appends(_ count: Int, bytes: Int, to chain: StepChain, whole: Int, wholeMin: Int) -> Bool {
        whole >= wholeMin && bytes <= whole && chain.count + count <= stepsMax
            && (chain.count < stepsMin || chain.bytes < whole)
    }
}

/// The steps kept for one part of an object.
struct StepChain {
    var count = 0
    /// Of the steps' diffs as they stand in the file.
    var bytes = 0
    /// Place of the next step.
    var next: Int64 = 1
}

/// What is kept of one object, in bytes.
struct JournalSizes {
    /// The row with the whole ghost; 0: there is none.
    var ghost = 0
    /// The row with the edits, roughly; 0: there is none.
    var edits = 0
    var ghostChain = StepChain()
    var laterChain = StepChain()
}

extension JSONObject {
    /// Whether the object holds at least that many bytes of text. Looks no further than it must.
    func holds(bytes: Int) -> Bool {
        var left = bytes
        Self.take(.object(self), &left)
        return left <= 0
    }

    private static func take(_ value: JSONValue, _ left: inout Int) {
        switch value {
        case .null, .bool, .number: left -= 4
        case .string(let text): left -= text.utf8.count + 2
        case .array(let elements):
            for element in elements where left > 0 { take(element, &left) }
        case .object(let object):
            for (key, value) in object.pairs where left > 0 {
                left -= key.utf8.count + 4
                take(value, &left)
            }
        }
    }
}
