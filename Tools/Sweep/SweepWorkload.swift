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
    /// A deletion; otherwise the object gets a member named by the ccid, so that it shows which changes were applied.
    let isRemoval: Bool
    /// Length of the member's value.
    let length: Int
    /// The change to a sealed bucket; nil: the bucket is open.
    var sealed: SweepSealing.Sent?

    func submitted(now: Int64) throws(IdentifierError) -> SubmittedChange {
        var request = ChangeRequest(key: key, ccid: ccid, operation: isRemoval ? .remove : .modify)
        if let sealed {
            request.sv = sealed.source
            request.diff = sealed.diff.map { .value($0.json) }
        } else if !isRemoval {
            let value = String(repeating: "v", count: length)
            request.diff = .value(.object([ccid: ["o": "+", "v": .string(value)]]))
        }
        return SubmittedChange(
            origin: ChangeOrigin(connection: 1, channel: 0), bucket: try SweepWorkload.bucket(bucket),
            clientID: try ClientID("client-\(ccid.utf8.count % 7)-\(now / 40_000)"), library: .other, canWrite: true,
            request: request, now: now)
    }
}

/// The state that the store must hold after a number of groups.
struct SweepState: Sendable, Equatable {
    struct Object: Sendable, Equatable {
        var version: Int64 = 0
        /// Names of the members, or the ccids of a sealed object's operations; nil after a deletion.
        var members: Set<String>?
    }

    var buckets: [[String: Object]]

    mutating func apply(_ change: SweepChange) {
        var object = buckets[change.bucket][change.key] ?? Object()
        object.version += 1
        let added = change.sealed?.isCompaction == true ? [] : [change.ccid]
        object.members = change.isRemoval ? nil : (object.members ?? []).union(added)
        buckets[change.bucket][change.key] = object
    }

    /// Members that only `self` has, and versions that only `found` has.
    func difference(to found: SweepState) -> (lost: Int, surplus: Int) {
        var lost = 0
        var surplus = 0
        for (bucket, objects) in buckets.enumerated() {
            for (key, object) in objects {
                let other = found.buckets[bucket][key] ?? Object()
                lost += max((object.members ?? []).subtracting(other.members ?? []).count, 0)
                if other.version < object.version { lost += 1 }
                surplus += Int(max(other.version - object.version, 0))
            }
        }
        return (lost, surplus)
    }
}

/// Groups of changes generated from a seed, with the state after each.
struct SweepWorkload: Sendable {
    let groups: [[SweepChange]]
    /// `states[n]`: after n groups.
    let states: [SweepState]

    static let bucketCount = 4
    /// The bucket that is sealed; the others are open.
    static let sealedBucket = 3
    /// Compactions among the changes.
    let compactions: Int

    init(changes: Int, groupMax: Int, keys: Int, seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var state = SweepState(buckets: .init(repeating: [:], count: Self.bucketCount))
        var states = [state]
        var groups = [[SweepChange]]()
        var made = 0
        var sealing = SweepSealing()
        while made < changes {
            var group = [SweepChange]()
            sealing.beginGroup()
            for _ in 0..<min(Int.random(in: 1...groupMax, using: &random), changes - made) {
                let bucket = Int.random(in: 0..<8, using: &random) / 3
                let key = "note.\(Int.random(in: 0..<keys, using: &random))"
                if Int.random(in: 0..<4, using: &random) == 0,
                    let change = sealing.change(of: key, number: made + 1, &random)
                {
                    made += 1
                    state.apply(change)
                    group.append(change)
                    continue
                }
                let isAlive = state.buckets[bucket][key]?.members != nil
                made += 1
                let change = SweepChange(
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

    /// Small bounds, so that a short workload reaches all of retention, segments, ccids and checkpoints.
    static var retention: RetentionSettings {
        var settings = RetentionSettings()
        (settings.logAgeMin, settings.logChangesMin, settings.sweepInterval) = (20_000, 60, 10_000)
        (settings.versionsNewest, settings.versionsSparse, settings.rowsPerBatch) = (5, 2, 20)
        (settings.segmentBytes, settings.segmentLogBytesMin, settings.segmentInterval) = (4_000, 8_000, 4_000)
        (settings.changeIDsPerBlock, settings.changeIDRunsMax, settings.changeIDInterval) = (24, 4, 2_000)
        settings.changeIDsLooseMin = 24
        (settings.clientInterval, settings.clientScanRows, settings.bytesPerBatch) = (30_000, 64, 6_000)
        return settings
    }

    static func storeSettings(_ disk: FaultVFS?) -> StoreSettings {
        var settings = StoreSettings()
        if let disk {
            settings.vfs = disk.name
            // The store's calls to files outside of SQLite fail like all others.
            settings.fileFault = { call, path in disk.isToFail(FaultRule.Operation(call), path) ? EIO : 0 }
        }
        // Commits use the reserved space first, then exceed it.
        settings.logReservedBytes = 192 << 10
        (settings.busyTimeoutMilliseconds, settings.cacheKiB) = (50, 256)
        settings.writeBehindHeadsMax = 24
        // Some ccids are archived with a group, and some by maintenance.
        settings.changeIDRunLength = 24
        (settings.passivePages, settings.restartPages, settings.restartWaitMilliseconds) = (40, 110, 0)
        settings.random = { count in (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ count) } }
        return settings
    }
}

extension FaultRule.Operation {
    init(_ call: FileCall) {
        switch call {
        case .create: self = .open
        case .sync: self = .sync
        case .move: self = .move
        case .remove: self = .delete
        case .write: self = .write
        }
    }
}

/// The reason why a sweep cannot continue.
public struct SweepError: Error, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}
