import ThicketCrypto
import ThicketPlatform
import ThicketSealed

/// What an honest server does for one object: it orders operations, and applies compactions as the ordinary list
/// rebase would.
struct ModelServer {
    enum Change {
        case insertion([UInt8])
        case compaction
    }

    private(set) var entity: SealedEntity
    private(set) var feed = [Change]()
    /// All operations of the incarnation, for tests to inspect.
    private(set) var operations = [[UInt8]]()
    private var known = Set<[UInt8]>()

    init(snapshot: [UInt8]) { entity = SealedEntity(snapshots: [0: Base64.encodeURL(snapshot)]) }

    var position: Int { entity.position }

    /// - Returns: false for a known ccid (409).
    mutating func insert(_ sealed: [UInt8], changeID: [UInt8]) -> Bool {
        guard known.insert(changeID).inserted else { return false }
        entity.tail.insert(Base64.encodeURL(sealed), at: 0)
        operations.append(sealed)
        feed.append(.insertion(sealed))
        return true
    }

    /// A compaction made by a device that knew snapshots and the operations up to `position`.
    mutating func compact(_ snapshot: [UInt8], at position: Int, knowing: [Int]) {
        guard let old = knowing.max(), position > old, let newest = entity.newest?.position else { return }
        entity.snapshots[position] = Base64.encodeURL(snapshot)
        for older in knowing { entity.snapshots[older] = nil }
        // Another compaction may have removed some of them already.
        if position > newest { entity.tail.removeLast(position - newest) }
        feed.append(.compaction)
    }
}
