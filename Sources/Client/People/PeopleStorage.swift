internal import Synchronization
internal import ThicketCrypto
import ThicketPlatform

/// Keeps the state of a key book. One change at a time, also of several programs.
package protocol PeopleStorage: Sendable {
    /// Reads the state, lets the caller change it, and returns when the change is on disk.
    ///
    /// - Parameter change: receives the stored bytes, nil when there are none.
    /// - Throws: `store`, and what `change` throws; nothing is written then.
    func update<Value>(
        _ change: (inout [UInt8]?) throws(ClientError) -> Value
    ) throws(ClientError) -> Value
}

/// In memory, for sessions whose store is in memory.
package final class MemoryPeopleStorage: PeopleStorage {
    private let bytes: Mutex<[UInt8]?> = Mutex(nil)

    package init() {}

    package func update<Value>(
        _ change: (inout [UInt8]?) throws(ClientError) -> Value
    ) throws(ClientError) -> Value {
        var kept = bytes.withLock { $0 }
        let value = try change(&kept)
        let changed = kept
        bytes.withLock { $0 = changed }
        return value
    }
}

/// A file sealed under the store's key, replaced as a whole. Several programs may use it: a lock file beside it is held
/// while one of them changes it, for milliseconds.
package final class FilePeopleStorage: PeopleStorage {
    private let path: String
    private let key: StoreKey

    /// - Parameter key: the key of the local store beside which the file is.
    package init(path: String, key: StoreKey) { (self.path, self.key) = (path, key) }

    /// The state as it was last written, without waiting for a program that changes it: the file is replaced whole.
    ///
    /// - Returns: nil when there is none.
    /// - Throws: `store` for a file that was cut or changed, or that other users can read or own.
    package func read() throws(ClientError) -> [UInt8]? {
        guard let sealed = try PrivateFile.read(path, max: PeopleLimits.stateBytesMax) else { return nil }
        return try key.open(sealed.withUnsafeBytes { Array($0) }, as: "thicket/store-people/1")
    }

    package func update<Value>(
        _ change: (inout [UInt8]?) throws(ClientError) -> Value
    ) throws(ClientError) -> Value {
        let lock = try StoreLock(path: path + ".lock", waits: true)
        defer { withExtendedLifetime(lock) {} }
        let before = try read()
        var after = before
        let value = try change(&after)
        if let after, after != before {
            let bytes = SecureBytes(copying: key.seal(after, as: "thicket/store-people/1"))
            try PrivateFile.write(bytes, to: path, isNew: false)
        }
        return value
    }
}
