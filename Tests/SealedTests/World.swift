import ThicketCrypto
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

/// One object, an honest server, and devices that type, lag, disconnect, join late and compact at any time.
struct World {
    struct Settings {
        var devices: Int
        var steps: Int
        /// Percent of the steps at which the chosen device disconnects.
        var awayPercent: Int
        /// Compactions out of turn per 1,000 steps.
        var compactions: Int
        var latecomers: Int
        var edits: EditKinds
        var checksEachStep = false
        /// A connected device edits, sends and reads in one step.
        var isQuick = false
    }

    enum EditKinds { case textOnly, everything }

    struct Device {
        var object: SealedObject
        /// How many changes of the server's feed this device has read.
        var cursor: Int
        /// The pending change has reached the server.
        var isSent = false
        var knownSnapshots: [Int]
        var isAwayUntil = 0
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    struct Totals {
        var operations = 0
        var voids = 0
        var conflicts = 0
        var compactions = 0
        var catchUps = 0
    }

    let place = SealedPlace(owner: "o", app: "a", bucket: "b", serverKey: "k")
    let sealer = ClearSealer()
    let settings: Settings
    private(set) var random: SeededRandom
    private(set) var server: ModelServer
    private(set) var devices = [Device]()
    private(set) var totals = Totals()
    var letters = Letters()

    init(seed: UInt64, settings: Settings) {
        self.settings = settings
        random = SeededRandom(seed: seed)
        var start: JSONObject = ["t": .string(letters.insert(random.below(12)))]
        if case .everything = settings.edits {
            start["n"] = 1
            start["l"] = ["x", 2, ["y": "abc"]]
            start["o"] = ["s": "hello", "p": nil]
        }
        let log = SealedLog(
            place: place, appKey: "key", incarnation: random.bytes(16), object: start)
        let first = SealedObject(author: .init(rawValue: random.next()), log: log)
        server = ModelServer(
            snapshot: first.sealedSnapshot(id: random.bytes(16), nonce: random.bytes(12), with: sealer))
        for _ in 0..<settings.devices {
            devices.append(
                Device(
                    object: SealedObject(author: .init(rawValue: random.next()), log: log), cursor: 0,
                    knownSnapshots: [0]))
        }
    }

    /// Plays all steps, reconnects every device, and checks that all hold the same.
    mutating func run() throws {
        for step in 0..<settings.steps { try self.step(step) }
        try settle()
        try checkEnd()
    }

    private mutating func step(_ step: Int) throws {
        if settings.latecomers > 0, random.below(settings.steps) < settings.latecomers { try join() }
        let chosen: Int = random.below(devices.count)
        if devices[chosen].isAwayUntil > step {
            if random.below(3) == 0 { try edit(chosen) }
            return
        }
        if random.below(100) < settings.awayPercent {
            devices[chosen].isAwayUntil = step + random.below(settings.steps)
            return
        }
        if settings.isQuick {
            try edit(chosen)
            send(chosen)
            if random.below(8) > 0 { try receive(chosen, atMost: 100) }
        }
        switch random.below(10) {
        case _ where settings.isQuick: break
        case 0...3: try edit(chosen)
        case 4...6: send(chosen)
        default: try receive(chosen, atMost: 1 + random.below(12))
        }
        if random.below(1_000) < settings.compactions { compact(chosen) }
        if settings.checksEachStep, !devices[chosen].object.isConsistent { throw failure("device \(chosen) is torn") }
    }

    private func failure(_ what: String) -> Failure { Failure(description: what) }

    private mutating func join() throws {
        let author = AuthorID(rawValue: random.next())
        let (object, events) = try SealedObject.open(
            server.entity, author: author, place: place, with: sealer)
        devices.append(
            Device(object: object, cursor: server.feed.count, knownSnapshots: Array(server.entity.snapshots.keys)))
        try check(events, devices.count - 1)
    }

    private mutating func edit(_ chosen: Int) throws {
        guard let object = devices[chosen].object.object else { return }
        try devices[chosen].object.edit(random.edit(of: object, settings.edits, &letters))
    }

    private mutating func send(_ chosen: Int) {
        if let pending = devices[chosen].object.pending {
            // Sometimes the same bytes are sent twice, as after a lost answer.
            guard !devices[chosen].isSent || random.below(4) == 0 else { return }
            _ = server.insert(pending.sealed, changeID: pending.changeID)
            devices[chosen].isSent = true
            return
        }
        let made = devices[chosen].object.seal(
            changeID: random.bytes(16), nonce: random.bytes(12), with: sealer)
        devices[chosen].isSent = false
        if let made, random.below(3) > 0 {
            _ = server.insert(made.sealed, changeID: made.changeID)
            devices[chosen].isSent = true
        }
    }

    /// Reads the feed or, sometimes, the whole object in its current state.
    private mutating func receive(_ chosen: Int, atMost count: Int) throws {
        if random.below(12) == 0 { return try read(chosen) }
        for _ in 0..<count {
            guard devices[chosen].cursor < server.feed.count else { break }
            let change = server.feed[devices[chosen].cursor]
            devices[chosen].cursor += 1
            guard case .insertion(let sealed) = change else {
                if devices[chosen].cursor == server.feed.count { try read(chosen) }
                continue
            }
            let before = devices[chosen].object.pending
            let events = devices[chosen].object.receive(sealed, with: sealer)
            try check(events, chosen)
            let position = devices[chosen].object.log.position
            let isOwn = before != nil && devices[chosen].object.pending == nil
            let tail = position - (devices[chosen].knownSnapshots.max() ?? 0)
            switch SealedObject.compaction(ownPosition: isOwn ? position : nil, tail: tail) {
            case .now: compact(chosen)
            case .afterRandomWait: if random.below(4) == 0 { compact(chosen) }
            case .none: break
            }
        }
    }

    private mutating func read(_ chosen: Int) throws {
        let position = devices[chosen].object.log.position
        if server.entity.newest?.position ?? 0 > position { totals.catchUps += 1 }
        // Whichever device made a snapshot, its statements about this device's operations pass the strictest check.
        let events = devices[chosen].object.adopt(
            server.entity, with: sealer, byOthers: chosen % 2 == 0)
        devices[chosen].cursor = server.feed.count
        devices[chosen].knownSnapshots = Array(server.entity.snapshots.keys)
        try check(events, chosen)
        // The server has the change, but the log, read to its end, does not count it.
        if let pending = devices[chosen].object.pending,
            !server.insert(pending.sealed, changeID: pending.changeID)
        {
            try check(devices[chosen].object.refuse(), chosen)
        } else if devices[chosen].object.pending != nil {
            devices[chosen].isSent = true
        }
    }

    private mutating func compact(_ chosen: Int) {
        let device = devices[chosen]
        guard device.object.log.position > device.knownSnapshots.max() ?? 0 else { return }
        let snapshot = device.object.sealedSnapshot(
            id: random.bytes(16), nonce: random.bytes(12), with: sealer)
        server.compact(snapshot, at: device.object.log.position, knowing: device.knownSnapshots)
        devices[chosen].knownSnapshots = [device.object.log.position]
        totals.compactions += 1
    }

    private mutating func check(_ events: [SealedEvent], _ chosen: Int) throws {
        for event in events {
            switch event {
            case .integrity(let integrity): throw failure("a false alarm on device \(chosen): \(integrity)")
            case .stopped, .recreated: throw failure("device \(chosen): \(event)")
            case .conflict: totals.conflicts += 1
            case .rebased: totals.voids += 1
            case .acknowledged: totals.operations += 1
            case .changed: break
            }
        }
    }

    /// Lets every device read and send until nothing is left.
    private mutating func settle() throws {
        for round in 0..<400 {
            var isQuiet = true
            for chosen in devices.indices {
                while devices[chosen].cursor < server.feed.count { try receive(chosen, atMost: 50) }
                if !devices[chosen].object.isConsistent { throw failure("device \(chosen) is torn at the end") }
                if devices[chosen].object.pending == nil, !devices[chosen].object.hasEdits { continue }
                isQuiet = false
                send(chosen)
                if round % 8 == 7 { try read(chosen) }
            }
            if isQuiet, devices.allSatisfy({ $0.cursor == server.feed.count }) { return }
        }
        throw failure("it does not come to rest")
    }

    private func checkEnd() throws {
        let (fresh, events) = try SealedObject.open(
            server.entity, author: .init(rawValue: 1), place: place, with: sealer)
        for event in events {
            if case .integrity(let integrity) = event { throw failure("a false alarm on a fresh device: \(integrity)") }
        }
        for (number, device) in devices.enumerated() {
            guard device.object.object == fresh.object else {
                throw failure(
                    "device \(number) at \(device.object.log.position) and a fresh one at \(fresh.log.position) differ:\n"
                        + "\(String(describing: device.object.object))\n"
                        + "\(String(describing: fresh.object))")
            }
            guard device.object.log == fresh.log else {
                throw failure("the logs of device \(number) and a fresh one differ")
            }
        }
        try letters.check(fresh.object?["t"]?.stringValue ?? "")
    }
}
