#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

extension String {
    /// Runs `body` on the UTF-8 bytes without copying them (native strings are contiguous).
    @inlinable @inline(__always)
    package func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        if let result = utf8.withContiguousStorageIfAvailable(body) { return result }
        var copy = self
        return copy.withUTF8(body)
    }

    /// True when both hold the same bytes. Swift's own `==` also holds "é" and "e" + accent equal.
    @inlinable @inline(__always)
    package func hasSameBytes(as other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        return withBytes { (left: UnsafeBufferPointer<UInt8>) -> Bool in
            other.withBytes { (right: UnsafeBufferPointer<UInt8>) -> Bool in sameBytes(left, right) }
        }
    }

    /// Feeds the bytes (and an end mark, so that neighbours do not run together) to `hasher`.
    package func hashBytes(into hasher: inout Hasher) {
        withBytes { (bytes: UnsafeBufferPointer<UInt8>) -> Void in
            hasher.combine(bytes: UnsafeRawBufferPointer(bytes))
        }
        hasher.combine(0xFF as UInt8)
    }
}

/// Compares two runs of bytes.
@inlinable @inline(__always)
package func sameBytes(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Bool {
    guard left.count == right.count else { return false }
    guard let leftBase = left.baseAddress, let rightBase = right.baseAddress else { return true }
    return memcmp(leftBase, rightBase, left.count) == 0
}

/// Tests on eight bytes at once. Each answer has the high bit set in (at least) the first byte, counted from the low
/// end, that fits; bytes above it may be marked wrongly, so only the lowest mark counts.
enum EightBytes {
    static let ones: UInt64 = 0x0101_0101_0101_0101
    static let highBits: UInt64 = 0x8080_8080_8080_8080

    /// Loads eight bytes; the first one ends up lowest.
    @inline(__always)
    static func load(_ pointer: UnsafePointer<UInt8>) -> UInt64 {
        UInt64(littleEndian: UnsafeRawPointer(pointer).loadUnaligned(as: UInt64.self))
    }

    /// Marks quotes, backslashes and bytes below 0x20: what a writer of a string must escape.
    @inline(__always)
    static func escapes(_ word: UInt64) -> UInt64 {
        let quotes = word ^ 0x2222_2222_2222_2222
        let backslashes = word ^ 0x5C5C_5C5C_5C5C_5C5C
        let hits =
            ((quotes &- ones) & ~quotes) | ((backslashes &- ones) & ~backslashes)
            | ((word &- 0x2020_2020_2020_2020) & ~word)
        return hits & highBits
    }

    /// Marks what `escapes` marks, and bytes from 0x80 on: everything a reader of a string must look at.
    @inline(__always)
    static func special(_ word: UInt64) -> UInt64 { escapes(word) | (word & highBits) }

    /// Place of the lowest mark, 0...7.
    @inline(__always)
    static func first(_ marks: UInt64) -> Int { marks.trailingZeroBitCount >> 3 }
}
