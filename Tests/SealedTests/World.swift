import ThicketCrypto
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

/// One object, an honest server, and devices that type, are slow, go away, come late and compact whenever they like.
struct World {
    struct Settings {
        var devices: Int
        var steps: Int
        /// Percent of the steps at which a device that is chosen is away.
        var awayPercent: Int
        /// Of 1,000 steps, so many compact out of turn.
        var compactions: Int
        var latecomers: Int
        var edits: EditKinds
        var checksEachStep: Bool = false
        /// Who is there edits, sends and reads in one step.
        var isQuick: Bool = false
    }

    enum EditKinds { case textOnly, everything }

    struct Device {
        var object: SealedObject
        /// Changes of the server's feed that were taken.
        var cursor: Int
        /// The pending change has reached the server.
        var isSent: Bool = false
        var knownSnapshots: [Int]
        var isAwayUntil: Int = 0
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    struct Totals {
        var operations: Int = 0
        var voids: Int = 0
        var conflicts: Int = 0
        var compactions: Int = 0
        var catchUps: Int = 0
    }

    let place: SealedPlace = .init(owner: "o", app: "a", bucket: "b", serverKey: "k")
    let sealer: ClearSealer = .init()
    let settings: Settings
    private(set) var random: SeededRandom
    private(set) var server: ModelServer
    private(set) var devices: [Device] = []
    private(set) var totals: Totals = .init()
    var letters: Letters = .init()

    init(seed: UInt64, settings: Settings) {
        self.settings = settings
        random = SeededRandom(seed: seed)
        var start: JSONObject = ["t": .string(letters.insert(random.below(12)))]
        if case .everything = settings.edits {
            start["n"] = 1
            start["l"] = ["x", 2, ["y": "abc"]]
            start["o"] = ["s": "hello", "p": nil]
        }
        let log: SealedLog = .init(
            place: place, appKey: "key", incarnation: random.bytes(16), object: start)
        let first: SealedObject = .init(author: .init(rawValue: random.next()), log: log)
        server = ModelServer(
            snapshot: first.sealedSnapshot(id: random.bytes(16), nonce: random.bytes(12), with: sealer))
        for _ in 0..<settings.devices {
            devices.append(
                Device(
                    object: SealedObject(author: .init(rawValue: random.next()), log: log), cursor: 0,
                    knownSnapshots: [0]))
        }
    }

    /// Plays it through, brings everybody home, and looks whether all hold the same.
    mutating func run() throws {
        for step: Int in 0..<settings.steps { try self.step(step) }
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
        let author: AuthorID = .init(rawValue: random.next())
        let (object, events): (SealedObject, [SealedEvent]) = try SealedObject.open(
            server.entity, author: author, place: place, with: sealer)
        devices.append(
            Device(object: object, cursor: server.feed.count, knownSnapshots: Array(server.entity.snapshots.keys)))
        try check(events, devices.count - 1)
    }

    private mutating func edit(_ chosen: Int) throws {
        guard let object: JSONObject = devices[chosen].object.object else { return }
        try devices[chosen].object.edit(random.edit(of: object, settings.edits, &letters))
    }

    private mutating func send(_ chosen: Int) {
        if let pending: SealedObject.Pending = devices[chosen].object.pending {
            // Now and then the same bytes go twice: the answer was lost.
            guard !devices[chosen].isSent || random.below(4) == 0 else { return }
            _ = server.insert(pending.sealed, changeID: pending.changeID)
            devices[chosen].isSent = true
            return
        }
        let made: SealedObject.Pending? = devices[chosen].object.seal(
            changeID: random.bytes(16), nonce: random.bytes(12), with: sealer)
        devices[chosen].isSent = false
        if let made, random.below(3) > 0 {
            _ = server.insert(made.sealed, changeID: made.changeID)
            devices[chosen].isSent = true
        }
    }

    /// Reads the feed, or, now and then, the whole object as it stands.
    private mutating func receive(_ chosen: Int, atMost count: Int) throws {
        if random.below(12) == 0 { return try read(chosen) }
        for _ in 0..<count {
            guard devices[chosen].cursor < server.feed.count else { break }
            let change: ModelServer.Change = server.feed[devices[chosen].cursor]
            devices[chosen].cursor += 1
            guard case .insertion(let sealed) = change else {
                if devices[chosen].cursor == server.feed.count { try read(chosen) }
                continue
            }
            let before: SealedObject.Pending? = devices[chosen].object.pending
            let events: [SealedEvent] = devices[chosen].object.receive(sealed, with: sealer)
            try check(events, chosen)
            let position: Int = devices[chosen].object.log.position
            let isOwn: Bool = before != nil && devices[chosen].object.pending == nil
            let tail: Int = position - (devices[chosen].knownSnapshots.max() ?? 0)
            switch SealedObject.compaction(ownPosition: isOwn ? position : nil, tail: tail) {
            case .now: compact(chosen)
            case .afterRandomWait: if random.below(4) == 0 { compact(chosen) }
            case .none: break
            }
        }
    }

    private mutating func read(_ chosen: Int) throws {
        let position: Int = devices[chosen].object.log.position
        if server.entity.newest?.position ?? 0 > position { totals.catchUps += 1 }
        // Whoever made a snapshot: what it says of this device's own operations holds before the strictest look.
        let events: [SealedEvent] = devices[chosen].object.adopt(
            server.entity, with: sealer, byOthers: chosen % 2 == 0)
        devices[chosen].cursor = server.feed.count
        devices[chosen].knownSnapshots = Array(server.entity.snapshots.keys)
        try check(events, chosen)
        // The server has the change, and the log, read to its end, does not count it.
        if let pending: SealedObject.Pending = devices[chosen].object.pending,
            !server.insert(pending.sealed, changeID: pending.changeID)
        {
            try check(devices[chosen].object.refuse(), chosen)
        } else if devices[chosen].object.pending != nil {
            devices[chosen].isSent = true
        }
    }

    private mutating func compact(_ chosen: Int) {
        let device: Device = devices[chosen]
        guard device.object.log.position > device.knownSnapshots.max() ?? 0 else { return }
        let snapshot: [UInt8] = device.object.sealedSnapshot(
            id: random.bytes(16), nonce: random.bytes(12), with: sealer)
        server.compact(snapshot, at: device.object.log.position, knowing: device.knownSnapshots)
        devices[chosen].knownSnapshots = [device.object.log.position]
        totals.compactions += 1
    }

    private mutating func check(_ events: [SealedEvent], _ chosen: Int) throws {
        for event: SealedEvent in events {
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

    /// Everybody comes home and nothing is left to be sent.
    private mutating func settle() throws {
        for round: Int in 0..<400 {
            var isQuiet: Bool = true
            for chosen: Int in devices.indices {
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
        let (fresh, events): (SealedObject, [SealedEvent]) = try SealedObject.open(
            server.entity, author: .init(rawValue: 1), place: place, with: sealer)
        for event: SealedEvent in events {
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
