/// A diff that only sets keys (`+` and `r`), in exactly the form of `ObjectDiff.write(to:)`: the usual creation of an
/// object.
///
/// The server need not decode its values: it can store and forward the bytes as received, and the size of the object
/// that the diff makes of `{}` follows from them.
public struct SettingDiff: Sendable, Equatable {
    /// Bytes, as compact JSON, of the object that the diff makes of `{}`.
    public let objectSize: Int
    /// Upper bound of that object's nesting, which itself counts as one level.
    public let depthMax: Int

    /// Bytes of `{"o":"+","v":` and `}`.
    private static let frameBytes = 14

    /// Checks a diff.
    ///
    /// - Parameter node: a change's `v`.
    /// - Returns: nil for any other diff, for an empty one, and for a text that differs from `ObjectDiff.write(to:)` in
    ///   any byte: white space, other members, unneeded escapes.
    public init?(_ node: JSONNode) {
        let found = node.storage.bytes.withUnsafeBufferPointer { bytes in
            bytes.baseAddress.flatMap { Self.measure($0, node.storage.tape, node.index) }
        }
        guard let found else { return nil }
        (objectSize, depthMax) = found
    }

    /// The object that the diff makes of `{}`.
    ///
    /// - Parameter text: the bytes of a `SettingDiff`; for other input, the object of all `v` members.
    public static func object(_ text: [UInt8]) -> JSONObject {
        guard let root = try? JSONDocument(parsing: text, maxDepth: JSONDocument.depthCeiling).root else {
            return JSONObject()
        }
        var object = JSONObject(reserving: root.count)
        for (key, operation) in root.pairs { object[key] = operation["v"]?.value }
        return object
    }

    private static func measure(
        _ base: UnsafePointer<UInt8>, _ tape: UnsafePointer<UInt64>, _ root: Int
    ) -> (size: Int, depth: Int)? {
        guard JSONTape.kind(tape[root]) == JSONTape.Kind.object else { return nil }
        let (count, end) = (JSONTape.count(tape[root + 1]), JSONTape.end(tape[root + 1]))
        guard count > 0 else { return nil }
        var (size, text, levels) = (count + 1, count + 1, 0)
        var key = root + 2
        while key < end {
            let value = key + 6
            guard isWritten(base, tape[key]), sets(base, tape, key + 1),
                let inside = containersIfWritten(base, tape, value)
            else { return nil }
            let pair = JSONTape.length(tape[key]) + 1 + JSONTape.length(tape[value])
            size += pair
            text += pair + frameBytes
            levels = max(levels, inside <= levelsCounted ? inside : depth(tape, value))
            key = JSONTape.next(tape, value)
        }
        return text == JSONTape.length(tape[root]) ? (size, levels + 1) : nil
    }

    /// Up to this many containers in a value, their number is used as the bound of its depth.
    private static let levelsCounted = 64

    /// Depth of a value's nesting; a container itself counts as one level.
    private static func depth(_ tape: UnsafePointer<UInt64>, _ value: Int) -> Int {
        let end = JSONTape.next(tape, value)
        // The ends of the containers around the current place; at most as many as the parser's depth limit.
        var (ends, deepest): ([Int], Int) = ([], 0)
        var at = value
        while at < end {
            while let inner: Int = ends.last, at >= inner { ends.removeLast() }
            guard JSONTape.kind(tape[at]) >= JSONTape.Kind.array else {
                at += 1
                continue
            }
            ends.append(JSONTape.next(tape, at))
            deepest = max(deepest, ends.count)
            at += 2
        }
        return deepest
    }

    /// Whether the value at `operation` is `{"o":"+","v":…}`, or the same with `r` instead of `+`.
    @inline(__always)
    private static func sets(_ base: UnsafePointer<UInt8>, _ tape: UnsafePointer<UInt64>, _ operation: Int) -> Bool {
        guard JSONTape.kind(tape[operation]) == JSONTape.Kind.object, JSONTape.count(tape[operation + 1]) == 2,
            letter(base, tape[operation + 2]) == UInt8(ascii: "o"),
            letter(base, tape[operation + 4]) == UInt8(ascii: "v")
        else { return false }
        let name = letter(base, tape[operation + 3])
        return name == UInt8(ascii: "+") || name == UInt8(ascii: "r")
    }

    /// The only byte of a string; 0 for any other value.
    @inline(__always)
    private static func letter(_ base: UnsafePointer<UInt8>, _ word: UInt64) -> UInt8 {
        guard JSONTape.kind(word) == JSONTape.Kind.string, JSONTape.length(word) == 3 else { return 0 }
        return base[JSONTape.offset(word) + 1]
    }

    /// Number of arrays and objects in a value, itself included; nil when its text is not in the writer's form.
    @inline(__always)
    private static func containersIfWritten(
        _ base: UnsafePointer<UInt8>, _ tape: UnsafePointer<UInt64>, _ value: Int
    ) -> Int? {
        let end = JSONTape.next(tape, value)
        var (text, containers) = (0, 0)
        var at = value
        while at < end {
            let word = tape[at]
            if JSONTape.kind(word) >= JSONTape.Kind.array {
                // Brackets, commas and colons.
                let count = JSONTape.count(tape[at + 1])
                text += max(count + 1, 2) + (JSONTape.kind(word) == JSONTape.Kind.object ? count : 0)
                containers += 1
                at += 2
            } else {
                guard isWritten(base, word) else { return nil }
                text += JSONTape.length(word)
                at += 1
            }
        }
        // If the sum is smaller, the text contains white space.
        return text == JSONTape.length(tape[value]) ? containers : nil
    }

    /// Whether a scalar's text is in the writer's form: any scalar except strings with escapes that the writer would
    /// not use.
    @inline(__always)
    private static func isWritten(_ base: UnsafePointer<UInt8>, _ word: UInt64) -> Bool {
        guard JSONTape.kind(word) == JSONTape.Kind.escapedString else { return true }
        return areEscapesWritten(base + JSONTape.offset(word), JSONTape.length(word))
    }

    private static func areEscapesWritten(_ string: UnsafePointer<UInt8>, _ count: Int) -> Bool {
        var at = 0
        while at < count {
            guard string[at] == UInt8(ascii: "\\") else {
                at += 1
                continue
            }
            switch string[at + 1] {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "b"), UInt8(ascii: "f"), UInt8(ascii: "n"),
                UInt8(ascii: "r"), UInt8(ascii: "t"):
                at += 2
            case UInt8(ascii: "u"):
                guard isControlWritten(string + at) else { return false }
                at += 6
            default:
                return false
            }
        }
        return true
    }

    /// Whether the `\u` escape, with digits in lower case, is that of a control character without a shorter escape.
    private static func isControlWritten(_ escape: UnsafePointer<UInt8>) -> Bool {
        let (high, low) = (escape[4], escape[5])
        guard escape[2] == 0x30, escape[3] == 0x30, high == 0x30 || high == 0x31 else { return false }
        guard (0x30...0x39).contains(low) || (0x61...0x66).contains(low) else { return false }
        guard high == 0x30 else { return true }
        // \b, \t,
        // , \f, \r.
        return ![UInt8(ascii: "8"), UInt8(ascii: "9"), UInt8(ascii: "a"), UInt8(ascii: "c"), UInt8(ascii: "d")]
            .contains(low)
    }
}
