// Linux only: OpenSSL; on Apple platforms: timingsafe_bcmp.
internal import COpenSSL

/// Comparisons whose time says nothing of the content.
public enum ConstantTime {
    /// Whether both hold the same bytes. Takes as long wherever they differ; lengths are no secret.
    public static func equal(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
    }

    /// The same of bytes that are lent.
    public static func equal(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
        left.count == right.count && CRYPTO_memcmp(left.octets, right.octets, left.count) == 0
    }
}
