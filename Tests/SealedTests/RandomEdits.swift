import ThicketProtocol
import ThicketTestSupport

/// Characters that are each inserted once, so that a test can check the fate of each.
struct Letters {
    private var next: UInt32 = 0
    private(set) var inserted = Set<UInt32>()
    private(set) var deleted = Set<UInt32>()

    /// New characters, every fifth of them outside of the BMP.
    mutating func insert(_ count: Int) -> String {
        var text = ""
        for _ in 0..<count {
            let value = next % 5 == 4 ? 0x2_0000 + next : 0x4E00 + next % 20_000
            next += 1
            guard inserted.insert(value).inserted, let scalar = Unicode.Scalar(value) else { continue }
            text.unicodeScalars.append(scalar)
        }
        return text
    }

    mutating func delete(_ scalars: some Sequence<Unicode.Scalar>) {
        for scalar in scalars { deleted.insert(scalar.value) }
    }

    /// Throws unless a text holds exactly the characters that were inserted and not deleted, once each.
    func check(_ text: String) throws {
        let values = text.unicodeScalars.map(\.value)
        let wanted = inserted.subtracting(deleted)
        guard Set(values).count == values.count else { throw World.Failure(description: "a character is doubled") }
        guard Set(values) == wanted else {
            throw World.Failure(
                description: "missing: \(wanted.subtracting(values)), back again: \(Set(values).subtracting(wanted))")
        }
    }
}

extension SeededRandom {
    mutating func below(_ bound: Int) -> Int { bound <= 1 ? 0 : Int(next() % UInt64(bound)) }

    mutating func bytes(_ count: Int) -> [UInt8] {
        var bytes = [UInt8]()
        bytes.reserveCapacity(count + 8)
        while bytes.count < count {
            let word = next()
            for shift: UInt64 in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: word >> (shift * 8))) }
        }
        return Array(bytes.prefix(count))
    }

    /// An edit of an object as apps make them.
    mutating func edit(of object: JSONObject, _ kinds: World.EditKinds, _ letters: inout Letters) -> ObjectDiff {
        guard case .everything = kinds, below(2) == 0 else { return ObjectDiff([typing(object, &letters)]) }
        var operations = [(key: String, operation: Operation)]()
        for (key, value) in object.pairs where key != "t" && below(3) == 0 {
            operations.append((key: key, operation: operation(on: value, depth: 0)))
        }
        if below(3) == 0 { operations.append(typing(object, &letters)) }
        let new = ["n", "o", "l", "q", "r"][below(5)]
        if !object.contains(new) { operations.append((key: new, operation: .insert(value(depth: 0)))) }
        return ObjectDiff(operations)
    }

    private mutating func typing(
        _ object: JSONObject, _ letters: inout Letters
    ) -> (key: String, operation: Operation) {
        let text = Array((object["t"]?.stringValue ?? "").unicodeScalars)
        var delta = TextDelta()
        var place = 0
        for _ in 0...below(2) {
            let skipped = below(text.count - place + 1)
            delta.retain(units(text[place..<(place + skipped)]))
            place += skipped
            let gone = below(3) == 0 ? below(min(6, text.count - place + 1)) : 0
            let typed: [UInt16] = Array(letters.insert(below(4)).utf16)
            let isBefore = below(2) == 0
            if isBefore { delta.insert(typed) }
            delta.delete(units(text[place..<(place + gone)]))
            letters.delete(text[place..<(place + gone)])
            if !isBefore { delta.insert(typed) }
            place += gone
        }
        delta.retain(units(text[place...]))
        return (key: "t", operation: .text(delta))
    }

    private func units(_ scalars: ArraySlice<Unicode.Scalar>) -> Int {
        scalars.reduce(0) { $0 + ($1.value > 0xFFFF ? 2 : 1) }
    }

    private mutating func operation(on value: JSONValue, depth: Int) -> Operation {
        if below(8) == 0 { return depth == 0 ? .remove : .replace(self.value(depth: depth)) }
        if below(8) == 0 { return .replace(self.value(depth: depth)) }
        switch value {
        case .number: return .increment(JSONNumber(Int64(below(9)) - 4))
        case .string(let text): return .text(delta(Array(text.utf16)))
        case .object(let object): return .object(diff(object, depth))
        case .array(let list): return .list(diff(list, depth))
        case .null, .bool: return .replace(self.value(depth: depth))
        }
    }

    private mutating func delta(_ text: [UInt16]) -> TextDelta {
        // ASCII only: it has no surrogate pairs to keep whole.
        let (start, gone) = (below(text.count + 1), below(3))
        let count = min(gone, text.count - start)
        var delta = TextDelta()
        delta.retain(start)
        if below(2) == 0 { delta.insert([UInt16(97 + below(26))]) }
        delta.delete(count)
        if below(2) == 0 { delta.insert([UInt16(65 + below(26))]) }
        delta.retain(text.count - start - count)
        return delta
    }

    private mutating func diff(_ object: JSONObject, _ depth: Int) -> ObjectDiff {
        var operations = [(key: String, operation: Operation)]()
        for (key, value) in object.pairs where below(2) == 0 {
            let isGone = below(6) == 0
            operations.append((key: key, operation: isGone ? .remove : operation(on: value, depth: depth + 1)))
        }
        let new = ["a", "b", "e\u{301}", "é"][below(4)]
        if !object.contains(new) { operations.append((key: new, operation: .insert(value(depth: depth + 1)))) }
        return ObjectDiff(operations)
    }

    private mutating func diff(_ list: [JSONValue], _ depth: Int) -> ListDiff {
        var operations = [(index: Int, operation: Operation)]()
        var place = 0
        for element in list {
            if below(4) == 0 {
                operations.append((index: place, operation: .insert(value(depth: depth + 1))))
                place += 1
            }
            switch below(4) {
            case 0: operations.append((index: place, operation: .remove))
            case 1: operations.append((index: place, operation: operation(on: element, depth: depth + 1)))
            default: break
            }
            place += 1
        }
        if below(3) == 0 { operations.append((index: place, operation: .insert(value(depth: depth + 1)))) }
        return ListDiff(operations)
    }

    private mutating func value(depth: Int) -> JSONValue {
        switch below(depth > 2 ? 4 : 6) {
        case 0: return .number(JSONNumber(Int64(below(100))))
        case 1: return .string(String(repeating: "z", count: below(4)) + "é")
        case 2: return nil
        case 3: return .bool(below(2) == 0)
        case 4: return .array((0..<below(3)).map { _ in value(depth: depth + 1) })
        default: return .object(JSONObject((0..<below(3)).map { (key: "k\($0)", value: value(depth: depth + 1)) }))
        }
    }
}
