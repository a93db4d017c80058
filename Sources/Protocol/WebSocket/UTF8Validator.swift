/// Checks UTF-8 that arrives in pieces, and fails at the first byte that cannot belong to a valid text.
///
/// Well-formed sequences are those of the Unicode Standard, table 3-7: no overlong forms, no surrogates, nothing above
/// U+10FFFF. The state has three bytes, so that every connection can have a validator.
public struct UTF8Validator: Sendable, Equatable {
    /// Continuation bytes that the open sequence still needs.
    private var missing: UInt8 = 0
    /// Bounds of the next continuation byte; narrower than 80–BF only after E0, ED, F0 and F4.
    private var lower: UInt8 = 0x80
    private var upper: UInt8 = 0xBF

    /// Starts at the first byte of a text.
    public init() {}

    /// Whether the text so far ends between two characters.
    public var isComplete: Bool { missing == 0 }

    /// Checks the next piece of the text.
    ///
    /// - Returns: the offset of the first byte that makes the text invalid, or nil. After an invalid byte the validator
    ///   must not be used again.
    public mutating func firstInvalid(in bytes: UnsafeRawBufferPointer) -> Int? {
        var index = 0
        while index < bytes.count {
            if missing == 0 {
                index = Self.endOfASCII(bytes, from: index)
                if index == bytes.count { return nil }
            }
            guard accept(bytes[index]) else { return index }
            index += 1
        }
        return nil
    }

    /// Whether `bytes` alone are valid and complete UTF-8.
    public static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var validator = UTF8Validator()
        return validator.firstInvalid(in: bytes) == nil && validator.isComplete
    }

    private mutating func accept(_ byte: UInt8) -> Bool {
        guard missing == 0 else {
            guard byte >= lower && byte <= upper else { return false }
            (missing, lower, upper) = (missing - 1, 0x80, 0xBF)
            return true
        }
        switch byte {
        case 0x00...0x7F: return true
        case 0xC2...0xDF: missing = 1
        case 0xE0: (missing, lower) = (2, 0xA0)
        case 0xED: (missing, upper) = (2, 0x9F)
        case 0xE1...0xEF: missing = 2
        case 0xF0: (missing, lower) = (3, 0x90)
        case 0xF1...0xF3: missing = 3
        case 0xF4: (missing, upper) = (3, 0x8F)
        default: return false
        }
        return true
    }

    /// The first byte at or after `start` that is not ASCII. It checks 32 bytes at a time, because most text on the
    /// wire is ASCII.
    private static func endOfASCII(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start
        let highBits = SIMD4<UInt64>(repeating: 0x8080_8080_8080_8080)
        while index + 32 <= bytes.count {
            let block = bytes.loadUnaligned(fromByteOffset: index, as: SIMD4<UInt64>.self) & highBits
            if block != .zero { break }
            index += 32
        }
        while index < bytes.count && bytes[index] < 0x80 { index += 1 }
        return index
    }
}
