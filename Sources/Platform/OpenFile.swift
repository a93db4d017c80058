#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// An open file; closed with its last reference.
public final class OpenFile: Sendable {
    /// The descriptor; valid as long as this object.
    public let descriptor: Int32

    /// Owns the descriptor from now on.
    public init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }
}
