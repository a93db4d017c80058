// Linux only: OpenSSL; on Apple platforms: timingsafe_bcmp.
internal import COpenSSL

/// Comparisons whose time does not depend on the content.
public enum ConstantTime {
    /// Whether both contain the same bytes. Constant time for equal lengths; lengths are not secret.
    public static func equal(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
    }

    /// Whether both contain the same bytes, in memory that the caller lends. Constant time for equal lengths.
    public static func equal(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
        left.count == right.count && CRYPTO_memcmp(left.octets, right.octets, left.count) == 0
    }
}
