import ThicketCrypto
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

@testable import ThicketSharing

/// One object of ann's bucket, a server, and devices of several accounts that type, compact, go away and come back.
struct SharedWorld {
    struct Device {
        let user: String
        var writer: AuthoredSealer.Writer
        var lists: SharedBucketReader
        var secrets: BucketSecrets
        var object: SharedObject
        var cursor: Int = 0
        var isSent: Bool = false
        var knownSnapshots: [Int] = [0]
        var isAway: Bool = false
        /// What was told that counts for nothing.
        var uncounted: [AuthorshipError] = []
        /// Operations that were told, by the user who wrote them.
        var written: [String: Int] = [:]
        /// What it cannot go on without; nil: it goes on.
        var hold: SharedHold?
    }

    struct Failure: Error, CustomStringConvertible { let description: String }

    static let appKey: String = "note"
    var circle: Circle
    var random: SeededRandom
    private(set) var server: StoringServer
    var devices: [Device] = []
    private var typed: Set<UInt32> = []
    private var nextLetter: UInt32 = 0x4E00
    let serverKey: String

    init(seed: UInt64, _ circle: Circle) throws {
        self.circle = circle
        random = SeededRandom(seed: seed)
        serverKey = try circle.secrets.keys().serverKey(of: Self.appKey)
        let sealer: AuthoredSealer = try circle.sealer(of: "ann", key: serverKey)
        let log: SealedLog = .init(
            place: sealer.place, appKey: Self.appKey, incarnation: RandomBytes.make(16), object: ["t": ""],
            list: sealer.listVersion)
        let first: SharedObject = .init(SealedObject(author: .init(rawValue: 1), log: log))
        let sealed: [UInt8]? = first.sealedSnapshot(
            id: RandomBytes.make(16), nonce: RandomBytes.make(12), with: sealer)
        guard let snapshot: [UInt8] = sealed else { throw Failure(description: "ann may not write") }
        server = StoringServer(snapshot: snapshot)
    }

    // MARK: - Devices

    func sealer(_ chosen: Int) throws -> AuthoredSealer { try sealer(devices[chosen]) }

    private func sealer(_ device: Device) throws -> AuthoredSealer {
        try AuthoredSealer(
            serverKey: serverKey, secrets: device.secrets, lists: device.lists, keys: circle.verified,
            writer: device.writer)
    }

    /// A device of an account that has nothing yet: it opens what the server shows.
    mutating func join(_ user: String) throws {
        let member: Member = try circle.member(user)
        let writer: AuthoredSealer.Writer = try .init(member.account, device: random.bytes(8))
        let lists: SharedBucketReader = circle.reader()
        let secrets: BucketSecrets = try circle.opened(by: user)
        let sealer: AuthoredSealer = try .init(
            serverKey: serverKey, secrets: secrets, lists: lists, keys: circle.verified, writer: writer)
        let (object, events): (SharedObject, [SharedEvent]) = try SharedObject.open(
            server.entity, author: writer.id, with: sealer)
        var device: Device = .init(user: user, writer: writer, lists: lists, secrets: secrets, object: object)
        device.cursor = server.feed.count
        device.knownSnapshots = Array(server.entity.snapshots.keys)
        devices.append(device)
        try record(events, devices.count - 1)
    }

    /// The device gets the lists that there are, and the secrets that it may have.
    mutating func refresh(_ chosen: Int) throws {
        let verdict: SharedBucketReader.Verdict = devices[chosen].lists.accept(circle.lists, keys: circle.verified)
        switch verdict {
        case .accepted, .known: break
        default: throw Failure(description: "lists of device \(chosen): \(verdict)")
        }
        // Who has been removed keeps what there was.
        guard circle.newest.reader(devices[chosen].user) != nil else { return }
        devices[chosen].secrets = try circle.opened(by: devices[chosen].user, known: devices[chosen].secrets)
        devices[chosen].hold = nil
    }

    // MARK: - What they do

    /// Types one character that nobody else types.
    mutating func type(_ chosen: Int) throws {
        let text: String = devices[chosen].object.object.object?["t"]?.stringValue ?? ""
        let place: Int = random.below(text.utf16.count + 1)
        var delta: TextDelta = .init()
        delta.retain(place)
        delta.insert([UInt16(nextLetter)])
        delta.retain(text.utf16.count - place)
        try devices[chosen].object.edit(
            ObjectDiff([(key: "t", operation: .text(delta))]), with: sealer(chosen))
        typed.insert(nextLetter)
        nextLetter += 1
    }

    /// Types at the end.
    mutating func append(_ text: String, _ chosen: Int) throws {
        let before: String = devices[chosen].object.object.object?["t"]?.stringValue ?? ""
        let delta: TextDelta = .init([.retain(before.utf16.count), .insert(Array(text.utf16))])
        try devices[chosen].object.edit(ObjectDiff([(key: "t", operation: .text(delta))]), with: sealer(chosen))
    }

    mutating func send(_ chosen: Int) throws {
        if devices[chosen].object.object.pending == nil {
            let made: SealedObject.Pending? = devices[chosen].object.seal(
                changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: try sealer(chosen))
            devices[chosen].isSent = false
            // Now and then it is sealed and not sent yet.
            guard made != nil, random.below(3) > 0 else { return }
        }
        try resend(chosen)
    }

    private mutating func resend(_ chosen: Int) throws {
        guard let pending: SealedObject.Pending = devices[chosen].object.object.pending, !devices[chosen].isSent else {
            return
        }
        _ = server.insert(pending.sealed, changeID: pending.changeID)
        devices[chosen].isSent = true
    }

    /// After a removal: what older lists allow counts no more.
    mutating func mark(_ chosen: Int) throws {
        try catchUp(chosen)
        let made: SealedObject.Pending? = devices[chosen].object.sealMark(
            changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: try sealer(chosen))
        guard made != nil else { throw Failure(description: "no mark") }
        devices[chosen].isSent = false
        try resend(chosen)
    }

    mutating func compact(_ chosen: Int) throws {
        let device: Device = devices[chosen]
        guard device.object.object.log.position > device.knownSnapshots.max() ?? 0,
            let snapshot: [UInt8] = device.object.sealedSnapshot(
                id: RandomBytes.make(16), nonce: RandomBytes.make(12), with: try sealer(chosen))
        else { return }
        server.compact(snapshot, at: device.object.object.log.position, knowing: device.knownSnapshots)
        devices[chosen].knownSnapshots = [device.object.object.log.position]
    }

    /// A sealed operation arrives, once more perhaps.
    mutating func put(_ pending: SealedObject.Pending) { _ = server.insert(pending.sealed, changeID: pending.changeID) }

    /// Somebody puts in what no honest device does.
    mutating func put(_ sealed: [UInt8]) { _ = server.insert(sealed, changeID: RandomBytes.make(16)) }

    mutating func receive(_ chosen: Int, atMost count: Int) throws {
        for _ in 0..<count {
            guard devices[chosen].cursor < server.feed.count else { return }
            let change: StoringServer.Change = server.feed[devices[chosen].cursor]
            let events: [SharedEvent]
            do throws(SharedHold) {
                switch change {
                case .insertion(let sealed):
                    let with: AuthoredSealer
                    do { with = try sealer(chosen) } catch { throw .forked }
                    events = try devices[chosen].object.receive(sealed, with: with)
                case .compaction where devices[chosen].cursor == server.feed.count - 1:
                    events = try read(chosen)
                case .compaction: events = []
                }
            } catch {
                devices[chosen].hold = error
                return
            }
            devices[chosen].cursor += 1
            try record(events, chosen)
        }
    }

    /// The whole object as it stands.
    private mutating func read(
        _ chosen: Int, with other: AuthoredSealer? = nil
    ) throws(SharedHold) -> [SharedEvent] {
        let with: AuthoredSealer
        do { with = try other ?? sealer(chosen) } catch { throw .forked }
        var events: [SharedEvent] = try devices[chosen].object.adopt(server.entity, with: with)
        devices[chosen].knownSnapshots = Array(server.entity.snapshots.keys)
        if let pending: SealedObject.Pending = devices[chosen].object.object.pending, devices[chosen].isSent,
            !server.insert(pending.sealed, changeID: pending.changeID)
        {
            events += devices[chosen].object.refuse()
        }
        return events
    }

    /// Takes all that there is, and what is lacking for it.
    mutating func catchUp(_ chosen: Int) throws {
        try receive(chosen, atMost: .max)
        if devices[chosen].hold != nil {
            try refresh(chosen)
            if devices[chosen].hold == nil { try receive(chosen, atMost: .max) }
        }
    }

    private mutating func record(_ events: [SharedEvent], _ chosen: Int) throws {
        for event: SharedEvent in events {
            switch event {
            case .written(let author, .operation, _): devices[chosen].written[author.reader.user, default: 0] += 1
            case .written: break
            case .uncounted(let error, _, _): devices[chosen].uncounted.append(error)
            // What does not count is told by the object, too.
            case .object(.integrity(.misfit(_, .doesNotOpen))): break
            case .object(.integrity(let integrity)):
                throw Failure(description: "a false alarm on device \(chosen): \(integrity)")
            case .object(.stopped), .object(.recreated):
                throw Failure(description: "device \(chosen): \(event)")
            case .object: break
            }
        }
    }

    /// A member has the server take a compaction.
    mutating func putSnapshot(_ sealed: [UInt8]) {
        server.compact(
            sealed, at: devices[0].object.object.log.position, knowing: Array(server.entity.snapshots.keys))
    }

    /// Reads the whole object where a device cannot take what follows, with a sealer of its own or the one that it has.
    mutating func reread(_ chosen: Int, with sealer: AuthoredSealer? = nil) throws {
        devices[chosen].hold = nil
        let events: [SharedEvent]
        do throws(SharedHold) { events = try read(chosen, with: sealer) } catch {
            devices[chosen].hold = error
            return
        }
        devices[chosen].cursor = server.feed.count
        try record(events, chosen)
    }

    // MARK: - The whole of it

    /// Steps of those who are there, in any order.
    ///
    /// - Parameter restarts: now and then a device goes on with what it has kept.
    mutating func play(_ steps: Int, among chosen: [Int], restarts: Bool = false) throws {
        for _ in 0..<steps {
            let one: Int = chosen[random.below(chosen.count)]
            if restarts, random.below(10) == 0 { try restart(one) }
            let mayWrite: Bool = try sealer(one).maySeal
            switch random.below(12) {
            case 0...3 where mayWrite: try type(one)
            case 4...6 where mayWrite: try send(one)
            case 7 where mayWrite && random.below(6) == 0: try compact(one)
            default:
                try receive(one, atMost: 1 + random.below(6))
                if devices[one].hold != nil { try refresh(one) }
            }
        }
    }

    /// Everybody of these reads and sends until nothing is left.
    mutating func settle(_ chosen: [Int]) throws {
        for _ in 0..<200 {
            var isQuiet: Bool = true
            for one: Int in chosen {
                try catchUp(one)
                guard devices[one].object.object.pending != nil || devices[one].object.object.hasEdits else { continue }
                isQuiet = false
                if devices[one].object.object.pending == nil { try send(one) }
                try resend(one)
            }
            if isQuiet, chosen.allSatisfy({ devices[$0].cursor == server.feed.count }) { return }
        }
        throw Failure(description: "it does not come to rest")
    }

    /// All of these and a fresh device hold the same, and in the text stands what was typed, once each.
    func checkEqual(_ chosen: [Int], lacking: Set<UInt32> = []) throws {
        let first: Device = devices[chosen[0]]
        let (fresh, _): (SharedObject, [SharedEvent]) = try SharedObject.open(
            server.entity, author: .init(rawValue: 9), with: sealer(first))
        for one: Int in chosen {
            guard devices[one].object.object.log == fresh.object.log,
                devices[one].object.object.object == fresh.object.object
            else { throw Failure(description: "device \(one) of \(devices[one].user) holds something else") }
        }
        let letters: [UInt32] = (fresh.object.object?["t"]?.stringValue ?? "").unicodeScalars.map(\.value)
        guard Set(letters).count == letters.count else { throw Failure(description: "a letter is doubled") }
        guard Set(letters) == typed.subtracting(lacking) else {
            throw Failure(
                description: "missing \(typed.subtracting(letters)), too many \(Set(letters).subtracting(typed))")
        }
    }

    /// The letters that a device has typed and nobody has taken.
    func unsent(_ chosen: Int) -> Set<UInt32> {
        let shown: String = devices[chosen].object.object.object?["t"]?.stringValue ?? ""
        let ordered: String = devices[chosen].object.object.log.object?["t"]?.stringValue ?? ""
        return Set(shown.unicodeScalars.map(\.value)).subtracting(ordered.unicodeScalars.map(\.value))
    }
}
