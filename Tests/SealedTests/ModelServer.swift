import ThicketCrypto
import ThicketPlatform
import ThicketSealed

/// What an honest server does for one object: puts operations in order, and takes compactions as the ordinary list
/// rebase would.
struct ModelServer {
    enum Change {
        case insertion([UInt8])
        case compaction
    }

    private(set) var entity: SealedEntity
    private(set) var feed: [Change] = []
    /// All operations of the incarnation, for whoever wants to look.
    private(set) var operations: [[UInt8]] = []
    private var known: Set<[UInt8]> = []

    init(snapshot: [UInt8]) { entity = SealedEntity(snapshots: [0: Base64.encodeURL(snapshot)]) }

    var position: Int { entity.position }

    /// - Returns: false for a ccid that was there before (409).
    mutating func insert(_ sealed: [UInt8], changeID: [UInt8]) -> Bool {
        guard known.insert(changeID).inserted else { return false }
        entity.tail.insert(Base64.encodeURL(sealed), at: 0)
        operations.append(sealed)
        feed.append(.insertion(sealed))
        return true
    }

    /// A compaction made by a device that knew snapshots and the operations up to `position`.
    mutating func compact(_ snapshot: [UInt8], at position: Int, knowing: [Int]) {
        guard let old: Int = knowing.max(), position > old, let newest: Int = entity.newest?.position else { return }
        entity.snapshots[position] = Base64.encodeURL(snapshot)
        for older: Int in knowing { entity.snapshots[older] = nil }
        // Those that another compaction has removed meanwhile are gone already.
        if position > newest { entity.tail.removeLast(position - newest) }
        feed.append(.compaction)
    }
}
