// Linux only: OpenSSL; on Apple platforms: memset_s and timingsafe_bcmp.
internal import COpenSSL

/// A key, a password or another secret (spec 3.7): bytes in memory of their own that is overwritten when nobody holds
/// them any more.
///
/// It never changes, has no copy besides itself, and tells nothing of itself in text, mirrors and errors. What is no
/// secret stays in `[UInt8]`. Its pages are locked where the system allows it and left out of core files
/// (`SecureMemory`).
public final class SecureBytes: @unchecked Sendable {
    // Written inside of `init` only, before anybody else can have it.
    private let room: UnsafeMutableRawBufferPointer

    /// Makes a secret in place.
    ///
    /// - Parameters:
    ///   - count: bytes, 0 or more.
    ///   - fill: writes them; they are zeros before. What it throws is passed on, and what it has written is
    ///     overwritten.
    public init<E: Error>(
        count: Int, _ fill: (UnsafeMutableRawBufferPointer) throws(E) -> Void
    ) throws(E) {
        room = .init(start: SecureMemory.take(count), count: count)
        try fill(room)
    }

    /// Copies bytes that stand somewhere else. Whoever made them sees to it that they go from there.
    public convenience init(copying bytes: UnsafeRawBufferPointer) {
        self.init(count: bytes.count) { $0.copyMemory(from: bytes) }
    }

    /// Copies bytes of an array, which holds them still: for bytes that come in, and for tests.
    public convenience init(copying bytes: [UInt8]) {
        self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
    }

    /// Takes the bytes over: the array is empty behind it, and its memory overwritten unless somebody else shares it.
    public convenience init(taking bytes: inout [UInt8]) {
        self.init(copying: bytes)
        bytes.withUnsafeMutableBytes { $0.cleanse() }
        bytes = []
    }

    /// Bytes nobody can guess, from OpenSSL's generator for secrets (seeded by the kernel).
    public static func random(_ count: Int) -> SecureBytes {
        SecureBytes(count: count) { room in
            let isDone = RAND_priv_bytes(room.octets, Int32(count)) == 1
            precondition(isDone, "the kernel gave no random bytes: nothing safe can be done")
        }
    }

    /// Several secrets, one behind the other.
    public static func joined(_ parts: [SecureBytes]) -> SecureBytes {
        SecureBytes(count: parts.reduce(0) { $0 + $1.count }) { room in
            var place = 0
            for part in parts {
                part.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: room[place...]).copyMemory(from: $0) }
                place += part.count
            }
        }
    }

    deinit {
        room.cleanse()
        if let start = room.baseAddress { SecureMemory.give(start, room.count) }
    }

    /// How many bytes; no secret.
    public var count: Int { room.count }

    /// Lends the bytes for the length of a call. They must not be kept, nor copied to where they are not overwritten.
    /// The address is never null.
    public func withUnsafeBytes<Result, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> Result
    ) throws(E) -> Result {
        defer { withExtendedLifetime(self) {} }
        return try body(UnsafeRawBufferPointer(room))
    }

    /// A part of it, as a secret of its own.
    /// - Parameter range: within 0..<`count`.
    public func part(_ range: Range<Int>) -> SecureBytes {
        withUnsafeBytes { SecureBytes(copying: UnsafeRawBufferPointer(rebasing: $0[range])) }
    }
}

extension SecureBytes: Equatable {
    /// Takes as long wherever they differ; lengths are no secret.
    public static func == (left: SecureBytes, right: SecureBytes) -> Bool {
        left.withUnsafeBytes { first in right.withUnsafeBytes { ConstantTime.equal(first, $0) } }
    }
}

extension SecureBytes: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Says nothing of what it holds.
    public var description: String { "(secret)" }
    /// Says nothing of what it holds.
    public var debugDescription: String { description }
    /// Shows nothing of what it holds.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
