/// What people typed into one text and what they deleted again, character by character. Nobody types a character twice.
struct TypedText {
    /// Typed and kept.
    private(set) var kept: Set<UInt32> = []
    /// Deleted by somebody who saw it.
    private(set) var deleted: Set<UInt32> = []

    mutating func type(_ scalars: [Unicode.Scalar]) { kept.formUnion(scalars.map(\.value)) }

    mutating func delete(_ scalars: some Sequence<Unicode.Scalar>) {
        for scalar: Unicode.Scalar in scalars {
            kept.remove(scalar.value)
            deleted.insert(scalar.value)
        }
    }

    /// What is wrong with `text`; nil: nothing.
    /// - Parameter forgivesReturns: whether a deleted character may be there once, because a whole object took the place
    ///   of the change that deleted it.
    func flaw(in text: String, forgivesReturns: Bool) -> String? {
        var counts: [UInt32: Int] = [:]
        for scalar: Unicode.Scalar in text.unicodeScalars { counts[scalar.value, default: 0] += 1 }
        for value: UInt32 in kept.sorted() where counts[value] != 1 {
            return "\(name(value)) was typed and is there \(counts[value] ?? 0) times"
        }
        for (value, count): (UInt32, Int) in counts.sorted(by: { $0.key < $1.key }) where !kept.contains(value) {
            if !deleted.contains(value) { return "\(name(value)) is there and nobody typed it" }
            if count > 1 || !forgivesReturns { return "\(name(value)) was deleted and is there \(count) times" }
        }
        return nil
    }

    private func name(_ value: UInt32) -> String {
        Unicode.Scalar(value).map { "'\($0)'" } ?? "U+\(String(value, radix: 16))"
    }
}

/// Hands out characters, each once: one unit of UTF-16 mostly, two now and then.
struct MarkerSource {
    private var count: UInt32 = 0

    mutating func next() -> Unicode.Scalar? {
        count += 1
        return Unicode.Scalar(count % 5 == 0 ? 0x2_0000 + count : 0x4E00 + count % 0x5000)
    }
}
