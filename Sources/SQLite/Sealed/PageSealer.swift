/// The position of a sealed page; a page sealed for one position does not open at any other.
public struct PagePlace: Sendable, Hashable {
    /// Whether the page is in the write-ahead log; otherwise it is in the database.
    public let isLog: Bool
    /// Offset of the page's first byte in its file.
    public let offset: Int64

    /// Creates a position.
    public init(isLog: Bool, offset: Int64) { (self.isLog, self.offset) = (isLog, offset) }
}

/// Creates the sealers of databases (`SealedFileSystem`), each with its own key.
public protocol PageCipher: Sendable {
    /// `SealedFileSystem.saltBytes` random bytes, for a new file.
    func makeSalt() -> [UInt8]
    /// The sealer for the file with this salt.
    func sealer(salt: [UInt8]) -> any PageSealer
}

/// Seals the pages of one database and of its log. Used by one thread at a time.
public protocol PageSealer: Sendable {
    /// Seals a page.
    /// - Parameters:
    ///   - clear: the bytes to seal; not modified.
    ///   - room: output, `SealedFileSystem.extraBytes` longer than `clear`.
    func seal(_ clear: UnsafeRawBufferPointer, at place: PagePlace, into room: UnsafeMutableRawBufferPointer)
    /// Opens a page in place: the clear bytes are at the beginning.
    /// - Returns: false when authentication fails; the buffer's content is then useless.
    func open(_ sealed: UnsafeMutableRawBufferPointer, at place: PagePlace) -> Bool
    /// Permutes 16 bytes under the key. Without the key, two results reveal only whether they are equal.
    func hide(_ block: UnsafeMutableRawBufferPointer)
    /// Reverses `hide`.
    func show(_ block: UnsafeMutableRawBufferPointer)
}
