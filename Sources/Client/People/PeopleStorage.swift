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

    package func update<Value>(
        _ change: (inout [UInt8]?) throws(ClientError) -> Value
    ) throws(ClientError) -> Value {
        let lock = try StoreLock(path: path + ".lock", waits: true)
        defer { withExtendedLifetime(lock) {} }
        let sealed = try PrivateFile.read(path, max: PeopleLimits.stateBytesMax)
        let before = try sealed.map { (sealed) throws(ClientError) in
            try key.open(sealed.withUnsafeBytes { Array($0) }, as: "thicket/store-people/1")
        }
        var after = before
        let value = try change(&after)
        if let after, after != before {
            let bytes = SecureBytes(copying: key.seal(after, as: "thicket/store-people/1"))
            try PrivateFile.write(bytes, to: path, isNew: false)
        }
        return value
    }
}
