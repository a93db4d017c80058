import ThicketProtocol

/// The order of one index walk: a bucket's live objects as they stood at `current`, newest change first.
///
/// Never changes once made, so readers of all threads share it. Keys stand in one buffer: a walk of 100,000 objects
/// takes some 4 MB.
final class IndexWalk: Sendable {
    private let gids: [GlobalID]
    private let versions: [Version]
    /// Entry n's key is `keyBytes[keyEnds[n - 1]..<keyEnds[n]]`.
    private let keyEnds: [Int]
    private let keyBytes: [UInt8]

    init(_ entries: [(key: EntityKey, version: Version, gid: GlobalID)]) {
        let sorted: [(key: EntityKey, version: Version, gid: GlobalID)] = entries.sorted { $0.gid > $1.gid }
        gids = sorted.map(\.gid)
        versions = sorted.map(\.version)
        var ends: [Int] = []
        var bytes: [UInt8] = []
        ends.reserveCapacity(sorted.count)
        for entry in sorted {
            bytes.append(contentsOf: entry.key.text.utf8)
            ends.append(bytes.count)
        }
        keyEnds = ends
        keyBytes = bytes
    }

    var count: Int { gids.count }

    func entry(_ place: Int) throws(StoreError) -> (EntityKey, Version, GlobalID) {
        let start: Int = place == 0 ? 0 : keyEnds[place - 1]
        let key: EntityKey = try .stored(String(decoding: keyBytes[start..<keyEnds[place]], as: UTF8.self))
        return (key, versions[place], gids[place])
    }

    /// Place of the first entry whose gid is below `gid`.
    func firstBelow(_ gid: GlobalID) -> Int {
        var low: Int = 0
        var high: Int = gids.count
        while low < high {
            let middle: Int = (low + high) / 2
            if gids[middle] >= gid { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
