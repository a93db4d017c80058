import ThicketCrypto
import ThicketPlatform
import ThicketSealed

/// What a server does for one object of a shared bucket, and every value that it has ever stored.
struct StoringServer {
    enum Change {
        case insertion([UInt8])
        case compaction
    }

    private(set) var entity: SealedEntity
    private(set) var feed = [Change]()
    /// Every sealed value in its order.
    private(set) var stored: [(bytes: [UInt8], kind: SealedHeader.Kind, position: Int)]
    private var known = Set<[UInt8]>()

    init(snapshot: [UInt8]) {
        entity = SealedEntity(snapshots: [0: Base64.encodeURL(snapshot)])
        stored = [(snapshot, .snapshot, 0)]
    }

    /// - Returns: false for a known ccid (409).
    mutating func insert(_ sealed: [UInt8], changeID: [UInt8]) -> Bool {
        guard known.insert(changeID).inserted else { return false }
        entity.tail.insert(Base64.encodeURL(sealed), at: 0)
        stored.append((sealed, .operation, 0))
        feed.append(.insertion(sealed))
        return true
    }

    mutating func compact(_ snapshot: [UInt8], at position: Int, knowing: [Int]) {
        guard let old = knowing.max(), position > old, let newest = entity.newest?.position else { return }
        entity.snapshots[position] = Base64.encodeURL(snapshot)
        for older in knowing { entity.snapshots[older] = nil }
        if position > newest { entity.tail.removeLast(position - newest) }
        stored.append((snapshot, .snapshot, position))
        feed.append(.compaction)
    }
}
