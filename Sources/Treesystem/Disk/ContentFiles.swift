#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// What tells one state of a file from another: a program that writes into the file changes at least one member.
package struct FileIdentity: Sendable, Hashable {
    package var device: UInt64 = 0
    package var inode: UInt64 = 0
    /// Bytes of the file.
    package var size: UInt64 = 0
    /// Nanoseconds since 1970 of the last write.
    package var modified: Int64 = 0
    /// Nanoseconds since 1970 of the last change of content or attributes; a program cannot set it back.
    package var changed: Int64 = 0
    package init() {}
}

/// An open file. Closed when it is released. Used by one thread at a time.
package protocol ContentFile: AnyObject {
    /// - Throws: `disk`.
    func identity() throws(ContentError) -> FileIdentity
    /// Fills `room` from an offset.
    ///
    /// - Returns: bytes read; fewer than `room` has only at the end of the file.
    /// - Throws: `disk`.
    func read(at offset: UInt64, into room: UnsafeMutableRawBufferPointer) throws(ContentError) -> Int
    /// Writes all bytes at an offset.
    ///
    /// - Throws: `diskFull`, `disk`; some of the bytes may have been written.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(ContentError)
    /// Shortens the file.
    ///
    /// - Throws: `disk`.
    func truncate(to size: UInt64) throws(ContentError)
    /// Returns when the written bytes are on disk.
    ///
    /// - Throws: `diskFull`, `disk`.
    func sync() throws(ContentError)
    /// The system need not keep a range in memory, if it is on disk: it is not read again soon. A hint.
    func release(_ range: Range<UInt64>)
}

extension ContentFile {
    /// Does nothing.
    package func release(_ range: Range<UInt64>) {}
}

/// The file system as the parts of this module see it, passed in so that tests can fail each call.
package protocol ContentFiles: Sendable {
    /// Creates a file that only this user can read.
    ///
    /// - Throws: `diskFull`; `disk`, also when the file exists.
    func create(_ path: String) throws(ContentError) -> any ContentFile
    /// Opens an existing file.
    ///
    /// - Returns: nil when there is none.
    /// - Throws: `disk`.
    func open(_ path: String, writable: Bool) throws(ContentError) -> (any ContentFile)?
    /// Renames a file over another, and returns when the names are on disk.
    ///
    /// - Throws: `diskFull`, `disk`.
    func rename(_ path: String, to target: String) throws(ContentError)
    /// Removes a file, if it exists.
    ///
    /// - Throws: `disk`.
    func remove(_ path: String) throws(ContentError)
    /// Creates a folder that only this user can enter, unless it exists.
    ///
    /// - Throws: `diskFull`, `disk`.
    func makeFolder(_ path: String) throws(ContentError)
    /// The names of a folder's files.
    ///
    /// - Throws: `disk`.
    func names(in folder: String) throws(ContentError) -> [String]
}

extension ContentError {
    /// The error for a number of the system.
    package static func number(_ number: Int32) -> ContentError {
        number == ENOSPC || number == EDQUOT || number == EFBIG ? .diskFull : .disk(number)
    }
}
