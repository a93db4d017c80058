import ThicketClient
import ThicketProtocol
import ThicketSealed

/// A client of Thicket's library: the real machine over a store in memory or on a simulated disk. The program can be
/// killed between any two turns, and between what a turn stores and what it sends.
final class SimulatedClient: Peer {
    private let storage: any ClientStorage
    private(set) var machine: SyncMachine
    private var inbox = [[UInt8]]()
    private var isDraining = false
    private var alarm = 0
    /// The app has opened its buckets; before that, no faults happen.
    private var isOpen = false
    /// What an editor shows that only follows the events.
    private var shown = [BucketName: [EntityKey: JSONObject]]()
    private(set) lazy var person = Person(self)
    /// The sealing bug that alters what is sent; nil: none.
    private lazy var mutation: SealedMutation? = SealedMutation(self)

    init(joining world: World, as number: Int, of account: Account) throws {
        storage =
            world.scenario.kind == .disks
            ? try DiskClientStorage(world.random.chance(500) ? .power : .program) : MemoryClientStorage()
        machine = try Self.machine(world, number, account, storage)
        super.init(world, number, account)
    }

    /// The first client of its account: the one that creates the shared objects.
    var isFirst: Bool { number < world.names.accounts.count }

    private static func machine(
        _ world: World, _ number: Int, _ account: Account, _ storage: any ClientStorage
    ) throws -> SyncMachine {
        let token = number == world.scenario.reader && !world.isCalm ? account.readToken : account.token
        var options = SyncOptions(app: account.app, token: token)
        options.indexPageObjects = 1 + number % 3
        if number == 2 { options.changesInFlightMax = 1 }
        let kept = world.scenario.mutant.map { MutantLocalStore(storage.store, $0) } ?? storage.store
        var machine = try SyncMachine(options: options, store: kept, random: world.random.split())
        if !follows(number) { machine.bucketsWithReaders = [] }
        return machine
    }

    /// Some clients have an editor that follows the events; the others receive no events about objects.
    private static func follows(_ number: Int) -> Bool { number % 2 == 0 }

    func begin() {
        openBuckets()
        isOpen = true
        wake()
        person.begin()
    }

    /// No faults happen in it.
    private func openBuckets() {
        for bucket in world.names.buckets {
            let now = world.milliseconds
            let keys = world.names.keys(bucket, of: account)
            _ = turn { (machine) throws(ClientError) in try machine.open(bucket, keys: keys, now: now) }
        }
    }

    var isSynced: Bool {
        world.names.buckets.allSatisfy { machine.isSynced($0) } && (link?.isQuiet ?? false) && inbox.isEmpty
    }

    // MARK: - Turns

    /// One call of the machine, with the faults around it.
    /// - Parameter place: the object that it edits, if the edit must be observed.
    /// - Returns: whether the call took effect for good.
    @discardableResult
    func turn(
        on place: EntityAddress? = nil, _ body: (inout SyncMachine) throws(ClientError) -> [SyncAction]
    ) -> Bool {
        let dies = isOpen && world.befalls(.clientKill)
        let before = dies ? place.flatMap(bytes) : nil
        storage.beginTurn(dies: dies, fails: isOpen && world.befalls(.clientStore), &world.random)
        defer {
            storage.endTurn()
            world.record("client writes", number, shape: storage.takeShape())
        }
        do {
            let actions = try body(&machine)
            if dies { die() } else { perform(actions) }
            return true
        } catch {
            storage.endTurn()
            // The object is read-only until the user has chosen. A client that does not follow events learns of the
            // alarm here.
            if error.code == .integrity {
                if let place { world.alarm(on: place, of: self) }
                return false
            }
            guard error.code == .store else {
                world.problem("client \(number): \(error)")
                return false
            }
            if dies {
                die()
                // The program died in the call: the store shows whether the edit was stored.
                return place.map { bytes($0) != before } ?? false
            }
            look()
            perform(machine.tick(now: world.milliseconds))
            return false
        }
    }

    private func bytes(_ place: EntityAddress) -> [UInt8]? {
        object(place.bucket, place.key).map { JSONValue.object($0).serialized() }
    }

    private func perform(_ actions: [SyncAction]) {
        var delivered = [BucketName: Int]()
        for action in actions {
            switch action {
            case .connect:
                world.record("client connects", number)
                hangUp()
                dial()
            case .disconnect:
                world.record("client disconnects", number)
                inbox = []
                hangUp()
            case .send(let text): link?.send(mutation?.sent(text) ?? text)
            case .event(let bucket, let event):
                follow(bucket, event)
                if event.comesOnce { delivered[bucket, default: 0] += 1 }
            case .status, .fetched, .removals, .tokenEnded, .tokenGood: break
            }
        }
        for (bucket, count) in delivered.sorted(by: { $0.key < $1.key }) {
            perform(machine.delivered(bucket, count: count, now: world.milliseconds))
        }
        arm()
    }

    /// Wakes the machine at its deadline.
    private func arm() {
        alarm += 1
        let alarm = alarm
        guard let deadline = machine.deadline else { return }
        world.agenda.at(max(deadline * 1_000, world.now + 1_000)) { [self] in
            if self.alarm == alarm { wake() }
        }
    }

    private func wake() {
        let now = world.milliseconds
        turn { (machine) in machine.tick(now: now) }
    }

    /// The program is killed and starts again with what its store holds.
    private func die() {
        world.record("client dies", number)
        inbox = []
        alarm += 1
        hangUp()
        do {
            try storage.restart(&world.random)
            machine = try Self.machine(world, number, account, storage)
        } catch {
            return world.problem("client \(number) does not start again: \(error)")
        }
        // The keys of sealed buckets are not in the store.
        if world.scenario.sealing != .none {
            isOpen = false
            openBuckets()
            isOpen = true
        }
        look()
        receiveUndelivered()
        world.after(world.random.delay(10_000, 5_000_000)) { [self] in wake() }
    }

    /// Receives the events that the program had stored and not delivered when it died.
    private func receiveUndelivered() {
        for bucket in world.names.buckets where world.names.isSealed(bucket) {
            do {
                let taken = try machine.takeUndelivered(bucket, now: world.milliseconds)
                for event in taken.0 { follow(bucket, event) }
                perform(taken.1)
            } catch { world.problem("client \(number) cannot read what it has to tell: \(error)") }
        }
    }

    // MARK: - Connection

    override func linkOpened() {
        world.record("client connected", number)
        let now = world.milliseconds
        turn { (machine) in machine.opened(now: now) }
    }

    override func linkReceived(_ text: [UInt8]) {
        world.record("client <", number, text)
        inbox.append(text)
        guard !isDraining else { return }
        isDraining = true
        world.after(world.random.delay(0, 30_000)) { [self] in
            isDraining = false
            drain()
        }
    }

    private func drain() {
        guard !inbox.isEmpty else { return }
        let texts = inbox
        inbox = []
        for text in texts { link?.received(text) }
        let now = world.milliseconds
        let batch = ServerBatch(texts)
        perform(machine.ahead(of: batch, now: now))
        turn { (machine) in machine.received(batch, now: now) }
    }

    override func linkClosed(code: UInt16?, _ detail: String) {
        world.record("client lost", number, Array(detail.utf8))
        drain()
        let now = world.milliseconds
        guard link == nil else { return }
        turn { (machine) in machine.closed(LinkClosure(code: code, detail: detail), now: now) }
    }

    override func heal() {
        super.heal()
        let (now, token) = (world.milliseconds, account.token)
        if number == world.scenario.reader { turn { (machine) in machine.setToken(token, now: now) } }
        turn { (machine) in machine.goOnline(now: now) }
    }

    // MARK: - Following

    private func look() {
        shown = [:]
        for bucket in world.names.buckets {
            do {
                for key in try machine.keys(bucket, after: nil, limit: 10_000) {
                    shown[bucket, default: [:]][key] = try machine.object(bucket, key)
                }
            } catch {
                // An empty editor would hide wrong events.
                world.problem("client \(number): its store cannot be read at a start: \(error)")
            }
        }
    }

    /// An editor applies the differences that it receives, and must end with the state that the machine holds.
    private func follow(_ bucket: BucketName, _ event: BucketEvent) {
        switch event {
        case .changed(let change):
            guard let key = try? EntityKey(change.key) else { return }
            let before = shown[bucket]?[key] ?? JSONObject()
            if (try? JSONDiff.apply(change.diff, to: before)) != change.object {
                world.problem("client \(number): the difference told for \(key.text) does not lead to the object")
            }
            shown[bucket, default: [:]][key] = change.object
        case .removed(let removal):
            guard let key = try? EntityKey(removal.key) else { return }
            shown[bucket]?[key] = nil
        case .integrity(let report): world.alarm(bucket, report, of: self)
        case .conflict(let conflict):
            if world.isRestored, world.names.isSealed(bucket) {
                world.giveUp(losing: conflict.losing, winning: conflict.winning)
            }
        case .refused, .unavailable, .caughtUp, .overrun: break
        }
    }

    /// What an editor shows under a key.
    func display(_ bucket: BucketName, _ key: EntityKey) -> JSONObject? {
        Self.follows(number) ? shown[bucket]?[key] : object(bucket, key)
    }

    func object(_ bucket: BucketName, _ key: EntityKey) -> JSONObject? { (try? machine.object(bucket, key)) ?? nil }

    /// The bucket of a channel: buckets are opened in this order.
    func bucket(of channel: ChannelNumber) -> BucketName? {
        let buckets = world.names.buckets
        return Int(channel) < buckets.count ? buckets[Int(channel)] : nil
    }

    /// The key by which the server knows a sealed object.
    func wireKey(_ bucket: BucketName, _ key: EntityKey) -> EntityKey? {
        world.names.keys(bucket, of: account).flatMap { try? EntityKey($0.serverKey(of: key.text)) }
    }

    func ghost(_ bucket: BucketName, _ key: EntityKey) -> Ghost? { try? machine.ghost(bucket, key) }

    /// Objects that are read-only until the user has chosen.
    func blocked(_ bucket: BucketName) -> [EntityKey] { (try? machine.problems(bucket)) ?? [] }

    /// Why an object is read-only; nil: it is not.
    func blockade(_ bucket: BucketName, _ key: EntityKey) -> String? { (try? machine.problem(bucket, key)) ?? nil }

    func refusal(_ bucket: BucketName, _ key: EntityKey) -> Int? { (try? machine.standing(bucket, key))?.refusal }
}
