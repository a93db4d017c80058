import ThicketTreeShape

/// The part of the cache that a file counts for.
public enum DiskPool: Int, Sendable, Hashable, CaseIterable {
    /// Files with metadata only.
    case metadata
    /// Files with a thumbnail, without data.
    case thumbnail
    /// Files with data.
    case data

    /// The pool of a file with these sections.
    public init(_ components: ContentComponents) {
        self = components.contains(.data) ? .data : components.contains(.thumbnail) ? .thumbnail : .metadata
    }
}

/// Bounds of a store of sealed files.
public struct DiskLimits: Sendable, Hashable {
    /// Files and placeholders of one store.
    public static let entriesMax = 65_536

    /// Bytes of a pool and the age at which its files expire.
    public struct Pool: Sendable, Hashable {
        /// Bytes of files that are neither persistent nor retained.
        public var bytes: UInt64
        /// Milliseconds from storing to expiry; nil: no limit.
        public var age: Int64?
        /// A limit of bytes, and of age where one is given.
        public init(bytes: UInt64, age: Int64? = nil) { (self.bytes, self.age) = (bytes, age) }
    }

    /// Files with data: 25 MiB.
    public var data = Pool(bytes: 25 << 20)
    /// Files with metadata only: 5 MiB.
    public var metadata = Pool(bytes: 5 << 20)
    /// Files with a thumbnail: 5 MiB.
    public var thumbnail = Pool(bytes: 5 << 20)
    /// The standard bounds.
    public init() {}

    /// The bounds of a pool.
    public subscript(pool: DiskPool) -> Pool {
        switch pool {
        case .metadata: metadata
        case .thumbnail: thumbnail
        case .data: data
        }
    }
}

/// How a file is stored.
public struct DiskOptions: Sendable, Hashable {
    /// What happens to a file when its content has been uploaded.
    public enum AfterUpload: Int, Sendable, Hashable {
        /// It stays as it is.
        case keep
        /// It moves to the cache, where it can be evicted.
        case migrate
        /// It is deleted.
        case delete
        /// It stays persistent, without an expiry.
        case pin
    }

    /// A persistent file counts for no pool and is never evicted.
    public var isPersistent: Bool
    /// Milliseconds since 1970 from which on the file is removed unless it is retained; nil: the pool's age decides.
    public var expires: Int64?
    /// What happens after the upload.
    public var afterUpload: AfterUpload

    /// Options; by default a file of the cache.
    public init(isPersistent: Bool = false, expires: Int64? = nil, afterUpload: AfterUpload = .keep) {
        (self.isPersistent, self.expires, self.afterUpload) = (isPersistent, expires, afterUpload)
    }

    /// The later of two expiries; nil is never.
    static func later(_ first: Int64?, _ second: Int64?) -> Int64? {
        guard let first, let second else { return nil }
        return max(first, second)
    }

    /// The options of a file that another caller wants with `other`: the file stays as long as either of them wants.
    func joined(with other: DiskOptions) -> DiskOptions {
        guard other.isPersistent else { return self }
        let expires = isPersistent ? Self.later(expires, other.expires) : other.expires
        return DiskOptions(isPersistent: true, expires: expires, afterUpload: afterUpload)
    }

    /// A file of the cache.
    public static let cache = DiskOptions()
    /// A persistent file.
    public static let persistent = DiskOptions(isPersistent: true)
    /// A file that waits for its upload, and is a file of the cache afterwards.
    public static let migrateAfterUpload = DiskOptions(isPersistent: true, afterUpload: .migrate)
    /// A file that waits for its upload, and is deleted afterwards.
    public static let deleteAfterUpload = DiskOptions(isPersistent: true, afterUpload: .delete)
}

/// What a store has at the moment.
public struct DiskUsage: Sendable, Hashable {
    /// Bytes of each pool, retained files included.
    public var pools = [DiskPool: UInt64]()
    /// Bytes of persistent files.
    public var persistent: UInt64 = 0
    /// Files and placeholders.
    public var entries: Int = 0
    /// Files that were evicted since the store was opened.
    public var evicted: Int = 0
    init() {}
}

/// Names a file of the store: a version of a content and the sections that the file has.
struct DiskKey: Sendable, Hashable {
    let id: DataID
    let components: ContentComponents

    init(_ id: DataID, _ components: ContentComponents) { (self.id, self.components) = (id, components) }

    /// The file's name, which reveals neither node nor content.
    var fileName: String { "\(id.text)-\(components.rawValue)" }

    var pool: DiskPool { DiskPool(components) }
}
