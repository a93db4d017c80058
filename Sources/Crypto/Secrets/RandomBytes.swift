// Linux only: OpenSSL; on Apple platforms: CommonCrypto and SecRandomCopyBytes behind the same functions.
internal import COpenSSL
import ThicketPlatform

/// Unpredictable bytes from OpenSSL's generator (seeded by the kernel).
public enum RandomBytes {
    /// Random bytes.
    ///
    /// - Parameter count: number of bytes.
    public static func make(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        bytes.withUnsafeMutableBytes { fill($0) }
        return bytes
    }

    /// Fills memory with random bytes.
    public static func fill(_ room: UnsafeMutableRawBufferPointer) {
        let isDone = RAND_bytes(room.octets, Int32(room.count)) == 1
        precondition(isDone, "the kernel gave no random bytes: nothing safe can be done")
    }

    /// Lower-case hex of `count` random bytes.
    public static func hex(_ count: Int) -> String { Hex.encode(make(count)) }
}
