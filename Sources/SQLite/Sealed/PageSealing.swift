/// Where a sealed page stands: what is sealed for one place opens at no other.
public struct PagePlace: Sendable, Hashable {
    /// In the write-ahead log; otherwise in the database.
    public let isLog: Bool
    /// Of the page's first byte in its file.
    public let offset: Int64

    public init(isLog: Bool, offset: Int64) { (self.isLog, self.offset) = (isLog, offset) }
}

/// Seals the files of a database (`SealedFileSystem`), each under a key of its own.
public protocol PageCipher: Sendable {
    /// `SealedFileSystem.saltBytes` random bytes, for a new file.
    func makeSalt() -> [UInt8]
    /// What seals the file with this salt.
    func sealer(salt: [UInt8]) -> any PageSealer
}

/// Seals the pages of one database and of its log. Used by one thread at a time.
public protocol PageSealer: Sendable {
    /// - Parameters:
    ///   - clear: what is sealed; it stays as it is.
    ///   - room: `SealedFileSystem.extraBytes` more than `clear`.
    func seal(_ clear: UnsafeRawBufferPointer, at place: PagePlace, into room: UnsafeMutableRawBufferPointer)
    /// Opens in place: the clear bytes stand at the beginning.
    /// - Returns: false when anything is wrong with it; then it holds nothing of use.
    func open(_ sealed: UnsafeMutableRawBufferPointer, at place: PagePlace) -> Bool
    /// Permutes 16 bytes: whoever lacks the key sees of two results only whether they are equal.
    func hide(_ block: UnsafeMutableRawBufferPointer)
    /// Takes `hide` back.
    func show(_ block: UnsafeMutableRawBufferPointer)
}
