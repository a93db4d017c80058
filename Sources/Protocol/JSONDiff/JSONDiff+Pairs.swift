extension JSONDiff {
    /// The same edit of `object` with whole characters in every text delta: no step ends between the halves of a
    /// surrogate pair, and no insertion begins or ends with one half.
    ///
    /// Older libraries cut pairs (wire contract 7.2), and strict decoders refuse such deltas.
    ///
    /// - Parameters:
    ///   - diff: an edit of `object`; operations that do not fit are left as they are.
    ///   - object: the object before the edit.
    public static func keepingPairsWhole(_ diff: ObjectDiff, in object: JSONObject) -> ObjectDiff {
        widened(diff, in: object, depth: 0) ?? diff
    }

    /// Nil when no pair is cut.
    private static func widened(_ diff: ObjectDiff, in object: JSONObject, depth: Int) -> ObjectDiff? {
        guard depth <= Limits.jsonDepthMax else { return nil }
        var result: ObjectDiff?
        for place in diff.operations.indices {
            let (key, operation) = diff.operations[place]
            guard operation.mayCutPairs, let value = object[key],
                let whole = widened(operation, of: value, depth: depth)
            else { continue }
            if result == nil { result = diff }
            result?.operations[place].operation = whole
        }
        return result
    }

    private static func widened(_ operation: Operation, of value: JSONValue, depth: Int) -> Operation? {
        switch (operation, value) {
        case (.text(let delta), .string(let text)):
            if delta.hasWholeSteps(in: text) { return nil }
            return (try? delta.keepingPairsWhole(in: UTF16Text.units(of: text))).map { .text($0) }
        case (.object(let diff), .object(let object)):
            return widened(diff, in: object, depth: depth + 1).map { .object($0) }
        case (.list(let diff), .array(let list)):
            return widened(diff, in: list, depth: depth + 1).map { .list($0) }
        case (.listText(let delta), .array(let list)):
            return widened(delta, in: list).map { .listText($0) }
        default:
            return nil
        }
    }

    private static func widened(_ delta: TextDelta, in list: [JSONValue]) -> TextDelta? {
        let lines = Array(ListText.lines(of: list).joined())
        guard let whole = try? delta.keepingPairsWhole(in: lines), whole != delta else { return nil }
        return whole
    }

    /// Whether a `dL` cuts a pair of the list's text, or inserts half of one.
    static func cutsPairs(_ delta: TextDelta, in list: [JSONValue]) -> Bool { widened(delta, in: list) != nil }

    private static func widened(_ diff: ListDiff, in list: [JSONValue], depth: Int) -> ListDiff? {
        var result: ListDiff?
        // An index also counts the elements that are inserted before it.
        var inserted = 0
        for place in diff.operations.indices {
            let (index, operation) = diff.operations[place]
            if case .insert = operation { inserted += 1 }
            guard operation.mayCutPairs, list.indices.contains(index - inserted),
                let whole = widened(operation, of: list[index - inserted], depth: depth)
            else { continue }
            if result == nil { result = diff }
            result?.operations[place].operation = whole
        }
        return result
    }
}

extension Operation {
    /// Whether the operation can contain a text delta.
    fileprivate var mayCutPairs: Bool {
        switch self {
        case .text, .listText, .object, .list: true
        case .insert, .remove, .replace, .increment: false
        }
    }
}

extension TextDelta {
    /// Whether every step covers whole characters of `text`, and every insertion contains whole ones. Reads UTF-8; a
    /// text without surrogate pairs is only searched for one.
    func hasWholeSteps(in text: String) -> Bool {
        for case .insert(let units) in operations {
            if let first = units.first, UTF16Text.isLow(first) { return false }
            if let last = units.last, UTF16Text.isHigh(last) { return false }
        }
        return text.withBytes { bytes in
            guard UTF16Text.hasPairs(bytes) else { return true }
            var place = 0
            for operation in operations {
                switch operation {
                case .retain(let count), .delete(let count):
                    guard let end = UTF16Text.offset(in: bytes, from: place, units: count) else { return false }
                    place = end
                case .insert: continue
                }
            }
            return true
        }
    }
}
