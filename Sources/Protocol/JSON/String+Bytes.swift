#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

extension String {
    /// Calls `body` with the UTF-8 bytes, without copying them (native strings are contiguous).
    @inlinable @inline(__always)
    package func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        if let result = utf8.withContiguousStorageIfAvailable(body) { return result }
        var copy = self
        return copy.withUTF8(body)
    }

    /// Whether both have the same bytes. Swift's own `==` also treats "é" and "e" + accent as equal.
    @inlinable @inline(__always)
    package func hasSameBytes(as other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        return withBytes { (left: UnsafeBufferPointer<UInt8>) -> Bool in
            other.withBytes { (right: UnsafeBufferPointer<UInt8>) -> Bool in sameBytes(left, right) }
        }
    }

    /// Feeds the bytes to `hasher`, and an end mark, so that adjacent strings cannot be confused.
    package func hashBytes(into hasher: inout Hasher) {
        withBytes { (bytes: UnsafeBufferPointer<UInt8>) -> Void in
            hasher.combine(bytes: UnsafeRawBufferPointer(bytes))
        }
        hasher.combine(0xFF as UInt8)
    }
}

/// Whether both have the same bytes.
@inlinable @inline(__always)
package func sameBytes(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Bool {
    guard left.count == right.count else { return false }
    guard let leftBase = left.baseAddress, let rightBase = right.baseAddress else { return true }
    return memcmp(leftBase, rightBase, left.count) == 0
}

/// Tests on eight bytes at once. Each result has the high bit set in the first byte that matches, counted from the low
/// end. Higher bytes may be marked wrongly, so only the lowest mark is valid.
enum EightBytes {
    static let ones: UInt64 = 0x0101_0101_0101_0101
    static let highBits: UInt64 = 0x8080_8080_8080_8080

    /// Loads eight bytes; the first byte becomes the lowest.
    @inline(__always)
    static func load(_ pointer: UnsafePointer<UInt8>) -> UInt64 {
        UInt64(littleEndian: UnsafeRawPointer(pointer).loadUnaligned(as: UInt64.self))
    }

    /// Marks quotes, backslashes and bytes below 0x20: the bytes that a writer of strings must escape.
    @inline(__always)
    static func escapes(_ word: UInt64) -> UInt64 {
        let quotes = word ^ 0x2222_2222_2222_2222
        let backslashes = word ^ 0x5C5C_5C5C_5C5C_5C5C
        let hits =
            ((quotes &- ones) & ~quotes) | ((backslashes &- ones) & ~backslashes)
            | ((word &- 0x2020_2020_2020_2020) & ~word)
        return hits & highBits
    }

    /// Marks the bytes that `escapes` marks, and those of 0x80 and above: all bytes that a reader of strings must
    /// check.
    @inline(__always)
    static func special(_ word: UInt64) -> UInt64 { escapes(word) | (word & highBits) }

    /// Index of the lowest mark, 0...7.
    @inline(__always)
    static func first(_ marks: UInt64) -> Int { marks.trailingZeroBitCount >> 3 }
}
