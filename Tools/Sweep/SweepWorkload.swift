import Glibc
import ThicketFaultDisk
import ThicketProtocol
import ThicketSQLite
import ThicketServer
import ThicketTestSupport

/// One change of a sweep's workload.
struct SweepChange: Sendable {
    let bucket: Int
    let key: String
    let ccid: String
    /// A deletion; otherwise the object gets a member of the ccid's name, so that it shows what befell it.
    let isRemoval: Bool
    /// Length of the member's value.
    let length: Int
    /// What is sent to a sealed bucket; nil: the bucket is an open one.
    var sealed: SweepSealing.Sent?

    func submitted(now: Int64) throws(IdentifierError) -> SubmittedChange {
        var request: ChangeRequest = .init(key: key, ccid: ccid, operation: isRemoval ? .remove : .modify)
        if let sealed {
            request.sv = sealed.source
            request.diff = sealed.diff.map { .value($0.json) }
        } else if !isRemoval {
            let value: String = .init(repeating: "v", count: length)
            request.diff = .value(.object([ccid: ["o": "+", "v": .string(value)]]))
        }
        return SubmittedChange(
            origin: ChangeOrigin(connection: 1, channel: 0), bucket: try SweepWorkload.bucket(bucket),
            clientID: try ClientID("client-\(ccid.utf8.count % 7)-\(now / 40_000)"), library: .other, canWrite: true,
            request: request, now: now)
    }
}

/// What the store must hold after some of the groups.
struct SweepState: Sendable, Equatable {
    struct Object: Sendable, Equatable {
        var version: Int64 = 0
        /// Names of the members, or the ccids of a sealed object's operations; nil after a deletion.
        var members: Set<String>?
    }

    var buckets: [[String: Object]]

    mutating func apply(_ change: SweepChange) {
        var object: Object = buckets[change.bucket][change.key] ?? Object()
        object.version += 1
        let added: [String] = change.sealed?.isCompaction == true ? [] : [change.ccid]
        object.members = change.isRemoval ? nil : (object.members ?? []).union(added)
        buckets[change.bucket][change.key] = object
    }

    /// Members that `self` has and `found` has not, and versions that `found` has beyond.
    func difference(to found: SweepState) -> (lost: Int, surplus: Int) {
        var lost: Int = 0
        var surplus: Int = 0
        for (bucket, objects) in buckets.enumerated() {
            for (key, object) in objects {
                let other: Object = found.buckets[bucket][key] ?? Object()
                lost += max((object.members ?? []).subtracting(other.members ?? []).count, 0)
                if other.version < object.version { lost += 1 }
                surplus += Int(max(other.version - object.version, 0))
            }
        }
        return (lost, surplus)
    }
}

/// Groups of changes made from a seed, with the state after each.
struct SweepWorkload: Sendable {
    let groups: [[SweepChange]]
    /// `states[n]`: after n groups.
    let states: [SweepState]

    static let bucketCount: Int = 4
    /// The bucket that is sealed; the others are open.
    static let sealedBucket: Int = 3
    /// Compactions among the changes.
    let compactions: Int

    init(changes: Int, groupMax: Int, keys: Int, seed: UInt64) {
        var random: SeededRandom = .init(seed: seed)
        var state: SweepState = .init(buckets: .init(repeating: [:], count: Self.bucketCount))
        var states: [SweepState] = [state]
        var groups: [[SweepChange]] = []
        var made: Int = 0
        var sealing: SweepSealing = .init()
        while made < changes {
            var group: [SweepChange] = []
            sealing.beginGroup()
            for _ in 0..<min(Int.random(in: 1...groupMax, using: &random), changes - made) {
                let bucket: Int = Int.random(in: 0..<8, using: &random) / 3
                let key: String = "note.\(Int.random(in: 0..<keys, using: &random))"
                if Int.random(in: 0..<4, using: &random) == 0,
                    let change: SweepChange = sealing.change(of: key, number: made + 1, &random)
                {
                    made += 1
                    state.apply(change)
                    group.append(change)
                    continue
                }
                let isAlive: Bool = state.buckets[bucket][key]?.members != nil
                made += 1
                let change: SweepChange = .init(
                    bucket: bucket, key: key, ccid: "change-\(made)",
                    isRemoval: isAlive && Int.random(in: 0..<25, using: &random) == 0,
                    length: Int.random(in: 0..<90, using: &random))
                state.apply(change)
                group.append(change)
            }
            groups.append(group)
            states.append(state)
        }
        self.groups = groups
        self.states = states
        compactions = sealing.compactions
    }

    static func bucket(_ number: Int) throws(IdentifierError) -> BucketID {
        BucketID(app: try AppID("sweep"), user: try UserID("ann@example.com"), name: try BucketName("b\(number)"))
    }

    /// Everything small, so that a short workload goes through all of it: retention, segments, ccids, checkpoints.
    static var retention: RetentionSettings {
        var settings: RetentionSettings = .init()
        (settings.logAgeMin, settings.logChangesMin, settings.sweepInterval) = (20_000, 60, 10_000)
        (settings.versionsNewest, settings.versionsSparse, settings.rowsPerBatch) = (5, 2, 20)
        (settings.segmentBytes, settings.segmentLogBytesMin, settings.segmentInterval) = (4_000, 8_000, 4_000)
        (settings.changeIDsPerBlock, settings.changeIDRunsMax, settings.changeIDInterval) = (24, 4, 2_000)
        settings.changeIDsLooseMin = 24
        (settings.clientInterval, settings.clientScanRows, settings.bytesPerBatch) = (30_000, 64, 6_000)
        return settings
    }

    static func storeSettings(_ disk: FaultVFS?) -> StoreSettings {
        var settings: StoreSettings = .init()
        if let disk: FaultVFS {
            settings.vfs = disk.name
            // What the store does to files past SQLite fails like all else.
            settings.fileFault = { call, path in disk.isToFail(FaultRule.Operation(call), path) ? EIO : 0 }
        }
        // Commits go into reserved room first, then beyond it.
        settings.logReservedBytes = 192 << 10
        (settings.busyTimeoutMilliseconds, settings.cacheKiB) = (50, 256)
        settings.writeBehindHeadsMax = 24
        // So that some are settled with a group, and some by the keeper.
        settings.changeIDRunLength = 24
        (settings.passivePages, settings.restartPages, settings.restartWaitMilliseconds) = (40, 110, 0)
        settings.random = { count in (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ count) } }
        return settings
    }
}

extension FaultRule.Operation {
    fileprivate init(_ call: FileCall) {
        switch call {
        case .create: self = .open
        case .sync: self = .sync
        case .move: self = .move
        case .remove: self = .delete
        }
    }
}

/// Why a sweep cannot go on.
public struct SweepError: Error, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}
