import ThicketCrypto
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

@testable import ThicketSharing

/// One object of ann's bucket, a server, and devices of several accounts that type, compact, disconnect and reconnect.
struct SharedWorld {
    struct Device {
        let user: String
        var writer: AuthoredSealer.Writer
        var lists: SharedBucketReader
        var secrets: BucketSecrets
        var object: SharedObject
        var cursor = 0
        var isSent = false
        var knownSnapshots = [0]
        var isAway = false
        /// The errors of values that do not count.
        var uncounted = [AuthorshipError]()
        /// Numbers of reported operations, by the user that wrote them.
        var written = [String: Int]()
        /// What the device lacks to go on; nil: nothing.
        var hold: SharedHold?
    }

    struct Failure: Error, CustomStringConvertible { let description: String }

    static let appKey = "note"
    var circle: Circle
    var random: SeededRandom
    private(set) var server: StoringServer
    var devices = [Device]()
    private var typed = Set<UInt32>()
    private var nextLetter: UInt32 = 0x4E00
    let serverKey: String

    init(seed: UInt64, _ circle: Circle) throws {
        self.circle = circle
        random = SeededRandom(seed: seed)
        serverKey = try circle.secrets.keys().serverKey(of: Self.appKey)
        let sealer = try circle.sealer(of: "ann", key: serverKey)
        let log = SealedLog(
            place: sealer.place, appKey: Self.appKey, incarnation: RandomBytes.make(16), object: ["t": ""],
            list: sealer.listVersion)
        let first = SharedObject(SealedObject(author: .init(rawValue: 1), log: log))
        let sealed = first.sealedSnapshot(
            id: RandomBytes.make(16), nonce: RandomBytes.make(12), with: sealer)
        guard let snapshot = sealed else { throw Failure(description: "ann may not write") }
        server = StoringServer(snapshot: snapshot)
    }

    // MARK: - Devices

    func sealer(_ chosen: Int) throws -> AuthoredSealer { try sealer(devices[chosen]) }

    private func sealer(_ device: Device) throws -> AuthoredSealer {
        try AuthoredSealer(
            serverKey: serverKey, secrets: device.secrets, lists: device.lists, keys: circle.verified,
            writer: device.writer)
    }

    /// Adds a device without any state: it opens what the server shows.
    mutating func join(_ user: String) throws {
        let member = try circle.member(user)
        let writer = try AuthoredSealer.Writer(member.account, device: random.bytes(8))
        let lists = circle.reader()
        let secrets = try circle.opened(by: user)
        let sealer = try AuthoredSealer(
            serverKey: serverKey, secrets: secrets, lists: lists, keys: circle.verified, writer: writer)
        let (object, events) = try SharedObject.open(
            server.entity, author: writer.id, with: sealer)
        var device = Device(user: user, writer: writer, lists: lists, secrets: secrets, object: object)
        device.cursor = server.feed.count
        device.knownSnapshots = Array(server.entity.snapshots.keys)
        devices.append(device)
        try record(events, devices.count - 1)
    }

    /// Gives the device all lists, and the secrets that it may have.
    mutating func refresh(_ chosen: Int) throws {
        let verdict = devices[chosen].lists.accept(circle.lists, keys: circle.verified)
        switch verdict {
        case .accepted, .known: break
        default: throw Failure(description: "lists of device \(chosen): \(verdict)")
        }
        // A removed member keeps what it had.
        guard circle.newest.reader(devices[chosen].user) != nil else { return }
        devices[chosen].secrets = try circle.opened(by: devices[chosen].user, known: devices[chosen].secrets)
        devices[chosen].hold = nil
    }

    // MARK: - Actions of devices

    /// Types one character that is typed only once in the world.
    mutating func type(_ chosen: Int) throws {
        let text = devices[chosen].object.object.object?["t"]?.stringValue ?? ""
        let place = random.below(text.utf16.count + 1)
        var delta = TextDelta()
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
        let before = devices[chosen].object.object.object?["t"]?.stringValue ?? ""
        let delta = TextDelta([.retain(before.utf16.count), .insert(Array(text.utf16))])
        try devices[chosen].object.edit(ObjectDiff([(key: "t", operation: .text(delta))]), with: sealer(chosen))
    }

    mutating func send(_ chosen: Int) throws {
        if devices[chosen].object.object.pending == nil {
            let made = devices[chosen].object.seal(
                changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: try sealer(chosen))
            devices[chosen].isSent = false
            // Sometimes it is sealed and not sent yet.
            guard made != nil, random.below(3) > 0 else { return }
        }
        try resend(chosen)
    }

    private mutating func resend(_ chosen: Int) throws {
        guard let pending = devices[chosen].object.object.pending, !devices[chosen].isSent else {
            return
        }
        _ = server.insert(pending.sealed, changeID: pending.changeID)
        devices[chosen].isSent = true
    }

    /// Ends older lists after a removal: what they allow no longer counts.
    mutating func mark(_ chosen: Int) throws {
        try catchUp(chosen)
        let made = devices[chosen].object.sealMark(
            changeID: RandomBytes.make(16), nonce: RandomBytes.make(12), with: try sealer(chosen))
        guard made != nil else { throw Failure(description: "no mark") }
        devices[chosen].isSent = false
        try resend(chosen)
    }

    mutating func compact(_ chosen: Int) throws {
        let device = devices[chosen]
        guard device.object.object.log.position > device.knownSnapshots.max() ?? 0,
            let snapshot = device.object.sealedSnapshot(
                id: RandomBytes.make(16), nonce: RandomBytes.make(12), with: try sealer(chosen))
        else { return }
        server.compact(snapshot, at: device.object.object.log.position, knowing: device.knownSnapshots)
        devices[chosen].knownSnapshots = [device.object.object.log.position]
    }

    /// A sealed operation arrives, perhaps a second time.
    mutating func put(_ pending: SealedObject.Pending) { _ = server.insert(pending.sealed, changeID: pending.changeID) }

    /// Inserts a value that no honest device makes.
    mutating func put(_ sealed: [UInt8]) { _ = server.insert(sealed, changeID: RandomBytes.make(16)) }

    mutating func receive(_ chosen: Int, atMost count: Int) throws {
        for _ in 0..<count {
            guard devices[chosen].cursor < server.feed.count else { return }
            let change = server.feed[devices[chosen].cursor]
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

    /// Reads the whole object in its current state.
    private mutating func read(
        _ chosen: Int, with other: AuthoredSealer? = nil
    ) throws(SharedHold) -> [SharedEvent] {
        let with: AuthoredSealer
        do { with = try other ?? sealer(chosen) } catch { throw .forked }
        var events = try devices[chosen].object.adopt(server.entity, with: with)
        devices[chosen].knownSnapshots = Array(server.entity.snapshots.keys)
        if let pending = devices[chosen].object.object.pending, devices[chosen].isSent,
            !server.insert(pending.sealed, changeID: pending.changeID)
        {
            events += devices[chosen].object.refuse()
        }
        return events
    }

    /// Receives all changes, and fetches what is lacking for them.
    mutating func catchUp(_ chosen: Int) throws {
        try receive(chosen, atMost: .max)
        if devices[chosen].hold != nil {
            try refresh(chosen)
            if devices[chosen].hold == nil { try receive(chosen, atMost: .max) }
        }
    }

    private mutating func record(_ events: [SharedEvent], _ chosen: Int) throws {
        for event in events {
            switch event {
            case .written(let author, .operation, _): devices[chosen].written[author.reader.user, default: 0] += 1
            case .written: break
            case .uncounted(let error, _, _): devices[chosen].uncounted.append(error)
            // The object reports a value that does not count, too.
            case .object(.integrity(.misfit(_, .doesNotOpen))): break
            case .object(.integrity(let integrity)):
                throw Failure(description: "a false alarm on device \(chosen): \(integrity)")
            case .object(.stopped), .object(.recreated):
                throw Failure(description: "device \(chosen): \(event)")
            case .object: break
            }
        }
    }

    /// A member makes the server accept a compaction.
    mutating func putSnapshot(_ sealed: [UInt8]) {
        server.compact(
            sealed, at: devices[0].object.object.log.position, knowing: Array(server.entity.snapshots.keys))
    }

    /// Reads the whole object where a device cannot receive the next change, with the given sealer or its own.
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

    // MARK: - Runs

    /// Steps of the chosen devices, in any order.
    ///
    /// - Parameter restarts: whether devices sometimes restart from what they have kept.
    mutating func play(_ steps: Int, among chosen: [Int], restarts: Bool = false) throws {
        for _ in 0..<steps {
            let one = chosen[random.below(chosen.count)]
            if restarts, random.below(10) == 0 { try restart(one) }
            let mayWrite = try sealer(one).maySeal
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

    /// The chosen devices read and send until nothing is left.
    mutating func settle(_ chosen: [Int]) throws {
        for _ in 0..<200 {
            var isQuiet = true
            for one in chosen {
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

    /// Checks that the chosen devices and a fresh one hold the same, and that the text holds each typed letter once.
    func checkEqual(_ chosen: [Int], lacking: Set<UInt32> = []) throws {
        let first = devices[chosen[0]]
        let (fresh, _) = try SharedObject.open(
            server.entity, author: .init(rawValue: 9), with: sealer(first))
        for one in chosen {
            guard devices[one].object.object.log == fresh.object.log,
                devices[one].object.object.object == fresh.object.object
            else { throw Failure(description: "device \(one) of \(devices[one].user) holds something else") }
        }
        let letters = (fresh.object.object?["t"]?.stringValue ?? "").unicodeScalars.map(\.value)
        guard Set(letters).count == letters.count else { throw Failure(description: "a letter is doubled") }
        guard Set(letters) == typed.subtracting(lacking) else {
            throw Failure(
                description: "missing \(typed.subtracting(letters)), too many \(Set(letters).subtracting(typed))")
        }
    }

    /// The letters that a device has typed and that are not in its log.
    func unsent(_ chosen: Int) -> Set<UInt32> {
        let shown = devices[chosen].object.object.object?["t"]?.stringValue ?? ""
        let ordered = devices[chosen].object.object.log.object?["t"]?.stringValue ?? ""
        return Set(shown.unicodeScalars.map(\.value)).subtracting(ordered.unicodeScalars.map(\.value))
    }
}
