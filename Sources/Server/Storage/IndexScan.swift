import ThicketProtocol

/// The order of one index scan: the live objects of a bucket as of the change `current`, newest change first.
///
/// Immutable, so that readers on all threads share it. All keys are in one buffer: a scan of 100,000 objects takes
/// about 4 MB.
final class IndexScan: Sendable {
    /// Approximate bytes per object: two integers, the end offset of a key, and the key.
    static let bytesPerObject = 60
    private let gids: [GlobalID]
    private let versions: [Version]
    /// The key of entry n is `keyBytes[keyEnds[n - 1]..<keyEnds[n]]`.
    private let keyEnds: [Int]
    private let keyBytes: [UInt8]

    private init(_ builder: Builder) {
        let order: [Int] = builder.gids.indices.sorted { builder.gids[$0] > builder.gids[$1] }
        gids = order.map { builder.gids[$0] }
        versions = order.map { builder.versions[$0] }
        var ends = [Int]()
        var bytes = [UInt8]()
        ends.reserveCapacity(order.count)
        bytes.reserveCapacity(builder.keyBytes.count)
        for place in order {
            bytes.append(contentsOf: builder.keyBytes[builder.keyStart(place)..<builder.keyEnds[place]])
            ends.append(bytes.count)
        }
        keyEnds = ends
        keyBytes = bytes
    }

    /// Creates the scan for a later position from an earlier scan.
    ///
    /// - Parameters:
    ///   - old: the earlier scan.
    ///   - gone: gids of `old` that are no longer listed, descending; gids that `old` does not contain are ignored.
    ///   - fresh: entries to list instead, newest first, all newer than any entry of `old`.
    init(_ old: IndexScan, without gone: [GlobalID], fresh: [(key: EntityKey, version: Version, gid: GlobalID)]) {
        var builder = Builder()
        for object in fresh { builder.add(key: object.key.text.utf8, version: object.version, gid: object.gid) }
        builder.reserve(old.gids.count, bytes: old.keyBytes.count)
        var place = 0
        for gid in gone {
            let found = old.firstBelow(gid + 1)
            guard found >= place, found < old.gids.count, old.gids[found] == gid else { continue }
            builder.add(old, place..<found)
            place = found + 1
        }
        builder.add(old, place..<old.gids.count)
        (gids, versions, keyEnds, keyBytes) = (builder.gids, builder.versions, builder.keyEnds, builder.keyBytes)
    }

    var count: Int { gids.count }
    /// Newest first.
    var positions: [GlobalID] { gids }

    func entry(_ place: Int) throws(StoreError) -> (EntityKey, Version, GlobalID) {
        let start = place == 0 ? 0 : keyEnds[place - 1]
        let key: EntityKey = try .stored(String(decoding: keyBytes[start..<keyEnds[place]], as: UTF8.self))
        return (key, versions[place], gids[place])
    }

    /// Index of the first entry whose gid is below `gid`.
    func firstBelow(_ gid: GlobalID) -> Int {
        var low = 0
        var high = gids.count
        while low < high {
            let middle = (low + high) / 2
            if gids[middle] >= gid { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Collects objects in any order.
    struct Builder {
        fileprivate var gids = [GlobalID]()
        fileprivate var versions = [Version]()
        fileprivate var keyEnds = [Int]()
        fileprivate var keyBytes = [UInt8]()

        mutating func add(key: some Sequence<UInt8>, version: Version, gid: GlobalID) {
            gids.append(gid)
            versions.append(version)
            keyBytes.append(contentsOf: key)
            keyEnds.append(keyBytes.count)
        }

        func scan() -> IndexScan { IndexScan(self) }

        fileprivate mutating func reserve(_ count: Int, bytes: Int) {
            gids.reserveCapacity(gids.count + count)
            versions.reserveCapacity(versions.count + count)
            keyEnds.reserveCapacity(keyEnds.count + count)
            keyBytes.reserveCapacity(keyBytes.count + bytes)
        }

        /// Appends a range of entries of another scan.
        fileprivate mutating func add(_ scan: IndexScan, _ places: Range<Int>) {
            guard let last = places.last else { return }
            let start = places.lowerBound == 0 ? 0 : scan.keyEnds[places.lowerBound - 1]
            let moved = keyBytes.count - start
            gids.append(contentsOf: scan.gids[places])
            versions.append(contentsOf: scan.versions[places])
            keyBytes.append(contentsOf: scan.keyBytes[start..<scan.keyEnds[last]])
            for end in scan.keyEnds[places] { keyEnds.append(end + moved) }
        }

        fileprivate func keyStart(_ place: Int) -> Int { place == 0 ? 0 : keyEnds[place - 1] }
    }
}
