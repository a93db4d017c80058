#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Errors of the operating system.
package enum SystemError {
    /// The C library's description of an error number.
    package static func reason(_ number: Int32) -> String { String(cString: strerror(number)) }
}
