internal import ThicketCrypto

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// The name of this installation: made at random once, kept beside the local store, and put by the auth server into the
/// user's login tokens.
public enum DeviceID {
    /// Bytes of one that is read.
    static let bytesMax = 128

    /// A new one.
    public static func make() -> String { Hex.encode(RandomBytes.make(16)) }

    /// The one that belongs to a store: kept in a file beside it (`notes.db.device`), which only its owner reads, and
    /// made at the first call. Of a store in memory it is a new one each time.
    ///
    /// - Throws: `store` when the file cannot be read or made, or is damaged.
    public static func kept(by store: StoreLocation) throws(ClientError) -> String {
        switch store {
        case .memory: return make()
        case .file(let path), .sealed(let path, _): return try kept(at: path + ".device")
        }
    }

    /// - Parameter path: the file.
    package static func kept(at path: String) throws(ClientError) -> String {
        if let known = try read(path) { return known }
        try write(make(), to: path)
        // Perhaps another program was faster: then its one counts.
        guard let made = try read(path) else { throw failure("cannot be read", path) }
        return made
    }

    private static func read(_ path: String) throws(ClientError) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw failure("cannot be read: \(String(cString: strerror(errno)))", path)
        }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: bytesMax + 2)
        let count = Glue.read(file, &bytes)
        let text = bytes[..<max(0, count)].prefix { $0 != 0x0A }
        guard (8...bytesMax).contains(text.count), text.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw failure(
                "is damaged: with another device id the user has to log in again, so nothing is put in its place",
                path)
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The file appears whole or not at all, and never in the place of another.
    private static func write(_ id: String, to path: String) throws(ClientError) {
        let draft = "\(path).\(Hex.encode(RandomBytes.make(4)))"
        let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw failure("cannot be made: \(String(cString: strerror(errno)))", path) }
        defer { unlink(draft) }
        let bytes: [UInt8] = Array((id + "\n").utf8)
        let isWritten = Glue.write(file, bytes) == bytes.count && fsync(file) == 0
        let problem = errno
        close(file)
        guard isWritten else { throw failure("cannot be written: \(String(cString: strerror(problem)))", path) }
        guard link(draft, path) == 0 || errno == EEXIST else {
            throw failure("cannot be made: \(String(cString: strerror(errno)))", path)
        }
    }

    private static func failure(_ what: String, _ path: String) -> ClientError {
        ClientError(.store, "the file of the device id, \(path), \(what)")
    }
}

/// The system's calls, which have the names of ours.
private enum Glue {
    static func read(_ file: Int32, _ bytes: inout [UInt8]) -> Int { systemRead(file, &bytes, bytes.count) }
    static func write(_ file: Int32, _ bytes: [UInt8]) -> Int { systemWrite(file, bytes, bytes.count) }
}

private func systemRead(_ file: Int32, _ bytes: UnsafeMutableRawPointer, _ count: Int) -> Int {
    read(file, bytes, count)
}
private func systemWrite(_ file: Int32, _ bytes: UnsafeRawPointer, _ count: Int) -> Int { write(file, bytes, count) }
