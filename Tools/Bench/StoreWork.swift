import Glibc
import ThicketProtocol
import ThicketServer

/// Groups of changes as the store's writer gets them: random objects of random buckets, each change one small
/// difference, with whole bodies where the server's rule requires them.
struct StoreWork {
    /// The sizes of changes, and the number of objects over which they are spread.
    struct Shape: Sendable {
        let buckets: Int
        /// Objects in each bucket.
        let objects: Int
        let diff: [UInt8]
        let bodyBytes: Int

        /// 2,000 buckets of 50 objects, 180 bytes of diff: the worst case for pages touched.
        static let usual = Shape(buckets: 2_000, objects: 50, diffBytes: 180, bodyBytes: 800)

        init(buckets: Int, objects: Int, diffBytes: Int, bodyBytes: Int) {
            let text: String = String(repeating: "x", count: max(diffBytes - 25, 1))
            self.init(
                buckets: buckets, objects: objects, diff: Array("{\"text\":{\"o\":\"r\",\"v\":\"\(text)\"}}".utf8),
                bodyBytes: bodyBytes)
        }

        init(buckets: Int, objects: Int, diff: [UInt8], bodyBytes: Int) {
            (self.buckets, self.objects, self.diff, self.bodyBytes) = (buckets, objects, diff, bodyBytes)
        }
    }

    let shape: Shape
    /// An object as JSON.
    let body: [UInt8]
    let ids: [BucketID]
    private(set) var heads: [GlobalID]

    private struct Place {
        var version: Version = 0
        var newest: GlobalID = 0
        var keyframe: GlobalID = 0
        var diffs = 0
        var diffBytes = 0
    }

    private var random: UInt64
    private var places: [Place]
    private var gid: GlobalID = 0
    private let keys: [EntityKey]
    private let client: ClientID

    init(_ shape: Shape = .usual, seed: UInt64) throws {
        self.shape = shape
        random = seed
        heads = .init(repeating: 0, count: shape.buckets)
        places = .init(repeating: Place(), count: shape.buckets * shape.objects)
        let app = try AppID("bench")
        let name = try BucketName("notes")
        ids = try (0..<shape.buckets).map {
            BucketID(app: app, user: try UserID("user\($0)@example.com"), name: name)
        }
        keys = try (0..<shape.objects).map { try EntityKey("object-number-\($0)") }
        client = try ClientID("bench-client-0000000000000000001")
        body = Array("{\"text\":\"\(String(repeating: "x", count: max(shape.bodyBytes - 11, 0)))\"}".utf8)
    }

    /// Groups that create every object once.
    mutating func filling() throws -> [WriteBatch] {
        let creation: [UInt8] =
            Array("{\"text\":{\"o\":\"+\",\"v\":".utf8) + body.dropFirst(8).dropLast() + Array("}}".utf8)
        var groups: [WriteBatch] = []
        // Large bodies in small groups.
        let size: Int = max(1, min(1_000, 4_000_000 / shape.bodyBytes))
        for first in stride(from: 0, to: places.count, by: size) {
            var batch = WriteBatch()
            for place in first..<min(first + size, places.count) { try add(place, creation, to: &batch) }
            groups.append(batch)
        }
        // The state after a long time: every object is somewhere between two whole bodies.
        let period: Int = max(16, shape.bodyBytes / shape.diff.count)
        for place in places.indices {
            places[place].diffs = next(period)
            places[place].diffBytes = places[place].diffs * shape.diff.count
        }
        return groups
    }

    /// The next `count` changes as one group, of the buckets below `bound` if there is one.
    mutating func group(_ count: Int, bucketsBelow bound: Int? = nil) throws -> WriteBatch {
        var batch = WriteBatch()
        for _ in 0..<count {
            let bucket: Int = next(bound ?? shape.buckets)
            try add(bucket * shape.objects + next(shape.objects), shape.diff, to: &batch)
        }
        return batch
    }

    private mutating func next(_ bound: Int) -> Int {
        random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int(random >> 33) % bound
    }

    private mutating func add(_ index: Int, _ diff: [UInt8], to batch: inout WriteBatch) throws {
        let bucket: Int = index / shape.objects
        let key: EntityKey = keys[index % shape.objects]
        var place: Place = places[index]
        gid += 1
        let digits = String(gid, radix: 16)
        let isDue: Bool = KeyframePolicy().isDue(
            diffs: place.diffs + 1, diffBytes: place.diffBytes + diff.count, bodyBytes: body.count)
        let isKeyframe: Bool = isDue && place.version > 0
        let row = ChangeRecord(
            gid: gid, bucket: BucketRow(bucket + 1), key: key, kind: .modify,
            sourceVersion: place.version == 0 ? nil : place.version, endVersion: place.version + 1,
            previousOfEntity: place.newest, previousKeyframe: place.keyframe, previousOfBucket: heads[bucket],
            clientID: client, changeID: try ChangeID(String(repeating: "0", count: 32 - digits.count) + digits),
            timestamp: 1_700_000_000_000, diff: diff, keyframe: isKeyframe ? body : nil)
        let isNew: Bool = heads[bucket] == 0
        heads[bucket] = gid
        place.newest = gid
        place.version += 1
        if isKeyframe { place.keyframe = gid }
        place.diffs = isKeyframe ? 0 : place.diffs + 1
        place.diffBytes = isKeyframe ? 0 : place.diffBytes + diff.count
        places[index] = place
        batch.append(
            row,
            entity: EntityRecord(
                key: key, version: place.version, gid: gid, keyframe: place.keyframe, isDeleted: false),
            bucket: BucketRecord(row: BucketRow(bucket + 1), id: ids[bucket], head: gid), isNewBucket: isNew)
    }
}
