/// Writes of a large file that is not read again soon: every 16 MiB they are synced, and the system's memory for them
/// is released. Otherwise a film displaces the databases from the page cache, and each write needs a new page, which on
/// a virtual machine costs more than the disk does.
struct ReleasedWrites {
    /// Bytes after which memory is released.
    static let stepBytes: UInt64 = 16 << 20

    private var released: UInt64

    /// - Parameter offset: where the writes begin.
    init(from offset: UInt64 = 0) { released = offset }

    /// Called after each write.
    ///
    /// - Parameters:
    ///   - file: the file.
    ///   - end: all bytes before it are written.
    /// - Throws: `diskFull`, `disk`.
    mutating func wrote(to end: UInt64, of file: any ContentFile) throws(ContentError) {
        guard end >= released + Self.stepBytes else { return }
        try file.sync()
        file.release(released..<end)
        released = end
    }
}
