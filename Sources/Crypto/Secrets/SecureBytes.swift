// Linux only: OpenSSL; on Apple platforms: memset_s and timingsafe_bcmp.
internal import COpenSSL

/// A key, a password or another secret (spec 3.7): bytes in separate memory that is overwritten when the last reference
/// to the object is released.
///
/// Immutable. Its content does not appear in descriptions, mirrors and errors. Public values stay in `[UInt8]`. The
/// pages are locked where the system permits it, and left out of core files (`SecureMemory`).
public final class SecureBytes: @unchecked Sendable {
    // Written only inside `init`, before another thread can have a reference.
    private let room: UnsafeMutableRawBufferPointer

    /// Makes a secret in place.
    ///
    /// - Parameters:
    ///   - count: number of bytes, 0 or more.
    ///   - fill: writes the bytes, which are zeros before. If it throws, the error is passed on, and the written bytes
    ///     are overwritten.
    public init<E: Error>(
        count: Int, _ fill: (UnsafeMutableRawBufferPointer) throws(E) -> Void
    ) throws(E) {
        room = .init(start: SecureMemory.allocate(count), count: count)
        try fill(room)
    }

    /// Copies bytes from elsewhere. The caller must overwrite the original.
    public convenience init(copying bytes: UnsafeRawBufferPointer) {
        self.init(count: bytes.count) { $0.copyMemory(from: bytes) }
    }

    /// Copies the bytes of an array, which keeps them. For bytes from outside, and for tests.
    public convenience init(copying bytes: [UInt8]) {
        self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
    }

    /// Moves the bytes of an array: it is empty afterwards, and its memory is overwritten unless another array shares
    /// it.
    public convenience init(taking bytes: inout [UInt8]) {
        self.init(copying: bytes)
        bytes.withUnsafeMutableBytes { $0.cleanse() }
        bytes = []
    }

    /// Unpredictable bytes, from OpenSSL's generator for secrets (seeded by the kernel).
    public static func random(_ count: Int) -> SecureBytes {
        SecureBytes(count: count) { room in
            let isDone = RAND_priv_bytes(room.octets, Int32(count)) == 1
            precondition(isDone, "the kernel gave no random bytes: nothing safe can be done")
        }
    }

    /// The concatenation of several secrets.
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

    /// Number of bytes; not secret.
    public var count: Int { room.count }

    /// Lends the bytes for the duration of a call. The caller must not keep them, nor copy them to memory that is not
    /// overwritten. The address is never null.
    public func withUnsafeBytes<Result, E: Error>(
        _ body: (UnsafeRawBufferPointer) throws(E) -> Result
    ) throws(E) -> Result {
        defer { withExtendedLifetime(self) {} }
        return try body(UnsafeRawBufferPointer(room))
    }

    /// A part of the secret, as a separate secret.
    ///
    /// - Parameter range: a range within 0..<`count`.
    public func part(_ range: Range<Int>) -> SecureBytes {
        withUnsafeBytes { SecureBytes(copying: UnsafeRawBufferPointer(rebasing: $0[range])) }
    }
}

extension SecureBytes: Equatable {
    /// Compares in constant time for equal lengths; lengths are not secret.
    public static func == (left: SecureBytes, right: SecureBytes) -> Bool {
        left.withUnsafeBytes { first in right.withUnsafeBytes { ConstantTime.equal(first, $0) } }
    }
}

extension SecureBytes: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// A fixed text without the content.
    public var description: String { "(secret)" }
    /// A fixed text without the content.
    public var debugDescription: String { description }
    /// A mirror without the content.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
