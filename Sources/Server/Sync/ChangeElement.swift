import ThicketProtocol
import ThicketTreeShape

/// Encodes one applied change as an element of a `c:[…]` message (wire contract, 6.2).
///
/// Every receiver gets the same bytes, live or catching up, including the author.
public enum ChangeElement {
    /// Maximum bytes of the fixed texts, the cv and two numbers.
    private static let frameBytes = 160
    /// Maximum bytes of `tx`: an id, two numbers and the fixed texts.
    private static let markBytes = 80

    /// Returns one JSON object, without a line break.
    /// - Parameters:
    ///   - change: a row of the log.
    ///   - tag: tag of the bucket, for the cv.
    public static func encode(_ change: borrowing ChangeRecord, _ codec: ChangeVersionCodec, tag: UInt32) -> [UInt8] {
        let mark = BatchMark(ccid: change.changeID.text)
        let length =
            (mark == nil ? frameBytes : frameBytes + markBytes) + JSONText.quotedSize(change.clientID.text)
            + JSONText.quotedSize(change.changeID.text)
            + JSONText.quotedSize(change.key.text) + change.diff.count
        return [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            guard let base = buffer.baseAddress else { return }
            var place = TextPlace(base)
            place.put("{\"clientid\":")
            place.put(quoted: change.clientID.text)
            place.put(",\"cv\":\"")
            codec.write(change.gid, tag: tag, to: place.next)
            place.next += ChangeVersionCodec.textBytes
            place.put("\",\"id\":")
            place.put(quoted: change.key.text)
            switch change.kind {
            case .remove:
                place.put(",\"o\":\"-\"")
            case .modify:
                place.put(",\"o\":\"M\",\"v\":")
                place.put(change.diff)
                if let source = change.sourceVersion {
                    place.put(",\"sv\":")
                    place.put(source)
                }
            }
            place.put(",\"ev\":")
            place.put(change.endVersion)
            place.put(",\"ccids\":[")
            place.put(quoted: change.changeID.text)
            place.put("]")
            if let mark { place.put(mark) }
            place.put("}")
            count = place.next - base
            precondition(count <= length, "an element exceeds its calculated length")
        }
    }
}

/// A write position in a buffer. The caller has calculated the capacity before; writes are not bounds-checked.
struct TextPlace {
    var next: UnsafeMutablePointer<UInt8>

    init(_ start: UnsafeMutablePointer<UInt8>) { next = start }

    @inline(__always)
    mutating func put(_ text: StaticString) {
        next.update(from: text.utf8Start, count: text.utf8CodeUnitCount)
        next += text.utf8CodeUnitCount
    }

    @inline(__always)
    mutating func put(_ bytes: [UInt8]) {
        bytes.withUnsafeBufferPointer { source in
            guard let base = source.baseAddress else { return }
            next.update(from: base, count: source.count)
            next += source.count
        }
    }

    /// Writes a decimal number.
    mutating func put(_ number: Int64) {
        guard number < 0 || number > 9 else {
            next[0] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: number)
            next += 1
            return
        }
        var rest = number.magnitude
        if number < 0 {
            next[0] = UInt8(ascii: "-")
            next += 1
        }
        var digits = 1
        var bound: UInt64 = 10
        while digits < 19, rest >= bound { (digits, bound) = (digits + 1, bound &* 10) }
        var place = digits
        while place > 0 {
            place -= 1
            next[place] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        }
        next += digits
    }

    /// Writes `tx`, from which a client knows which changes belong to one batch (decision 0093).
    mutating func put(_ mark: BatchMark) {
        put(",\"tx\":{\"id\":")
        put(quoted: mark.batch.text)
        put(",\"i\":")
        put(Int64(mark.index))
        put(",\"n\":")
        put(Int64(mark.count))
        put("}")
    }

    /// Writes a string with its quotes, escaped as `JSONWriter` does.
    mutating func put(quoted text: String) {
        next[0] = UInt8(ascii: "\"")
        next += 1
        next += JSONText.write(text, to: next)
        next[0] = UInt8(ascii: "\"")
        next += 1
    }
}
