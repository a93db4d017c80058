/// The layout of the tape of a `JSONDocument`: one word for each key and scalar, two for each array and object.
///
/// Word: kind in bits 60–63, length of the raw text in bits 30–59, its offset in bits 0–29. Second word of a container:
/// number of elements or pairs in the upper half, tape index after the container in the lower half.
enum JSONTape {
    enum Kind {
        static let null: UInt64 = 0
        static let falsehood: UInt64 = 1
        static let truth: UInt64 = 2
        static let number: UInt64 = 3
        /// A string without escapes: its bytes are its value.
        static let string: UInt64 = 4
        static let escapedString: UInt64 = 5
        static let array: UInt64 = 6
        static let object: UInt64 = 7
    }

    static let offsetMask: UInt64 = (1 << 30) - 1
    /// Kind and length, without the offset.
    static let shapeMask: UInt64 = ~offsetMask

    @inline(__always)
    static func word(_ kind: UInt64, offset: Int, length: Int) -> UInt64 {
        kind << 60 | UInt64(truncatingIfNeeded: length) << 30 | UInt64(truncatingIfNeeded: offset)
    }

    @inline(__always) static func kind(_ word: UInt64) -> UInt64 { word >> 60 }
    @inline(__always) static func offset(_ word: UInt64) -> Int { Int(truncatingIfNeeded: word & offsetMask) }
    @inline(__always) static func length(_ word: UInt64) -> Int {
        Int(truncatingIfNeeded: word >> 30 & offsetMask)
    }
    @inline(__always) static func end(_ second: UInt64) -> Int { Int(truncatingIfNeeded: second & 0xFFFF_FFFF) }
    @inline(__always) static func count(_ second: UInt64) -> Int { Int(truncatingIfNeeded: second >> 32) }

    /// Tape index after the value at `index`.
    @inline(__always)
    static func next(_ tape: UnsafePointer<UInt64>, _ index: Int) -> Int {
        kind(tape[index]) >= Kind.array ? end(tape[index + 1]) : index + 1
    }
}
