import ThicketNet
import ThicketProtocol
import ThicketScheduling
import ThicketServer
import ThicketTreeShape

/// The real hub, shard and readers over a store in memory or on a simulated disk, with delays where threads pass work
/// to each other, and with a possible end at any moment: what is not in the store is lost then.
final class SimulatedServer {
    /// One process of the server.
    final class Process {
        let hub: Hub
        let core: ShardCore
        let readers: [ReadExecutor]
        let maintenance: (any StoreMaintenance)?
        /// For checks from outside of the server.
        let auditor: any StoreReader
        var links = [ConnectionID: Link]()
        /// Requests by HTTP without an answer.
        var calls = [ConnectionID: TreeCall]()
        /// nil: no account has a tree.
        let direct: DirectBlobs?
        var slots = Set<Int32>()
        var queue = [ShardRequest]()
        var isShardAwake = false
        /// When the hub is called next, microseconds.
        var nextTick: Int64?
        /// Outcomes reach the loop in order.
        var outcomesAt: Int64 = 0
        var reads = 0
        /// Users with a deferred change.
        var held = Set<TenantID>()
        /// Turns of the shard's thread.
        var turns = 0

        init(
            hub: Hub, core: ShardCore, readers: [ReadExecutor], maintenance: (any StoreMaintenance)?,
            auditor: any StoreReader, direct: DirectBlobs?
        ) {
            self.direct = direct
            self.hub = hub
            self.core = core
            self.readers = readers
            self.maintenance = maintenance
            self.auditor = auditor
        }
    }

    unowned let world: World
    let storage: any ServerStorage
    let blobs: SimulatedBlobStore
    private(set) var codec: ChangeVersionCodec
    /// The bug that is built in; nil: none.
    let mutation: Mutation?
    private(set) var process: Process?
    private var serial: UInt32 = 0
    private var asks: AskID = 0
    private var clearWrites = 0
    /// 2023-11-14: the server's wall clock at the beginning.
    static let epochMilliseconds: Int64 = 1_700_000_000_000

    init(_ world: World) throws {
        self.world = world
        let random = world.random.split()
        let storage: any ServerStorage =
            world.scenario.kind == .disks
            ? try DiskServerStorage(world.scenario, world.names, random)
            : MemoryServerStorage(world.scenario, world.names, random)
        self.storage = storage
        mutation = world.scenario.mutant.map { Mutation($0, world.names, world.random.split()) }
        codec = ChangeVersionCodec(storage.identity)
        blobs = SimulatedBlobStore(
            SimulationRandom(seed: world.scenario.seed ^ 0xb10b_5eed),
            syncsNothing: world.scenario.mutant == .unsyncedBlob)
    }

    /// The findings of an audit of the store.
    func findings() -> [String] { storage.findings() }

    /// Reads what is committed; nil while the server is down.
    var auditor: (any StoreReader)? { storage.isDown ? nil : process?.auditor }

    var isUp: Bool { process != nil }
    /// No work is in progress.
    var isQuiet: Bool {
        guard let process else { return false }
        return process.queue.isEmpty && !process.core.hasBacklog && process.hub.readCount == 0
            && process.hub.changeCount == 0
    }

    var instant: HubInstant {
        HubInstant(monotonic: 1_000_000_000 + world.now * 1_000, unix: Self.epochMilliseconds + world.milliseconds)
    }

    // MARK: - Start and end

    func start() {
        world.record("server starts", 0)
        do {
            storage.beginWrite()
            try storage.restart()
            blobs.restart()
            let process = try makeProcess()
            endWrite()
            self.process = process
            if process.maintenance != nil { scheduleMaintenance(process) }
            scheduleBackup(process)
            scheduleSweep(process)
        } catch {
            // A crash during the start: the next process starts.
            guard storage.isDown else { return world.problem("the store does not open again: \(error)") }
            world.record("server dies", 0)
            world.tally.faults[.commitCrash] += 1
            return startLater()
        }
        world.ledger.observe(self)
        if world.befalls(Self.auditsPerMille) { audit() }
    }

    /// How many of 1,000 starts are followed by an audit of the store.
    private static let auditsPerMille = 250

    func audit() {
        for finding in storage.findings() { world.problem("the audit of the store finds: \(finding)") }
    }

    private func makeProcess() throws(StoreError) -> Process {
        let made = try storage.makeWriter()
        let writer = mutation?.writer(made) ?? made
        var readers = [ReadExecutor]()
        for _ in 0..<2 {
            let made = try storage.makeReader()
            readers.append(
                ReadExecutor(reader: mutation?.reader(made) ?? made, codec: codec, limits: world.scenario.limits))
        }
        return Process(
            hub: Hub(limits: world.scenario.limits, codec: codec, metrics: Metrics()),
            core: ShardCore(store: writer, settings: world.scenario.shard), readers: readers,
            maintenance: try storage.makeMaintenance(), auditor: try storage.makeReader(), direct: try makeDirect())
    }

    /// The process is killed.
    func crash() {
        guard let process else { return }
        world.record("server dies", 0)
        self.process = nil
        storage.crash()
        blobs.crash()
        // By number: the order of a dictionary is not determined by the seed.
        endConnections(process)
        startLater()
    }

    // MARK: - Backup and restore

    /// A copy of the store, and the content that it is known to have.
    private struct Backup {
        let copy: [UInt8]
        let mirrors: [BucketID: Ledger.Mirror]
        /// `StoreIdentity.versionBase` of the copied store.
        let base: Version
        let blobs: [BlobID: [UInt8]]
    }

    private var backups = [Backup]()
    /// Most backups that are kept: older ones are dropped.
    private static let backupsMax = 3

    private func scheduleBackup(_ process: Process) {
        guard world.scenario.faults[.serverRestore] > 0 else { return }
        world.after(world.random.between(3_000_000, 20_000_000)) { [self] in
            guard self.process === process, !world.isCalm else { return }
            do {
                guard let copy = try storage.backUp() else { return }
                let base = storage.identity.versionBase
                backups.append(Backup(copy: copy, mirrors: world.ledger.mirrors, base: base, blobs: blobs.copy()))
                if backups.count > Self.backupsMax { backups.removeFirst() }
                world.record("backup", copy.count / 4_096)
            } catch {
                return world.problem("the backup fails: \(error)")
            }
            scheduleBackup(process)
        }
    }

    /// The server ends, and starts again from one of its backups.
    func restore() {
        guard let process, !backups.isEmpty else { return }
        let backup = backups[world.random.below(backups.count)]
        world.record("server restored", 0)
        world.tally.faults[.serverRestore] += 1
        world.isRestored = true
        self.process = nil
        endConnections(process)
        for number in world.treeRecords.indices { world.treeRecords[number].restore() }
        do {
            try storage.restore(backup.copy)
            blobs.add(backup.blobs)
        } catch {
            return world.problem("the restore fails: \(error)")
        }
        codec = ChangeVersionCodec(storage.identity)
        let base = storage.identity.versionBase
        for account in world.names.accounts { world.restoreModel(account, to: backup.mirrors) }
        world.ledger.restore(backup.mirrors, adding: base - backup.base, base: base)
        startLater()
    }

    private func startLater() {
        let pause = world.random.delay(50_000, 10_000_000)
        world.after(pause) { [self] in if self.process == nil { start() } }
    }

    func heal() {
        storage.heal()
        if process == nil { start() }
    }

    // MARK: - Connections

    /// - Returns: false when the server is down.
    func accept(_ link: Link) -> Bool {
        guard let process else { return false }
        let id = nextConnection(process)
        link.id = id
        process.links[id] = link
        process.hub.opened(id, app: link.peer.account.app.text)
        perform(process)
        return true
    }

    func nextConnection(_ process: Process) -> ConnectionID {
        serial += 1
        var slot: Int32 = 0
        while process.slots.contains(slot) { slot += 1 }
        process.slots.insert(slot)
        return ConnectionID(slot: slot, serial: serial)
    }

    func received(_ link: Link, _ text: [UInt8]) {
        guard let process, let id = link.id, process.links[id] === link else { return }
        world.record("server <", link.serial, text)
        world.tally.messages += 1
        link.watch.asked(text, codec, self)
        process.hub.received(id, mutation?.received(text) ?? text, now: instant)
        if let clear = clearWrite(beside: text, of: link.peer.account) {
            process.hub.received(id, clear, now: instant)
        }
        perform(process)
    }

    /// What an older program of the same user would write at this moment; nil: nothing.
    private func clearWrite(beside text: [UInt8], of account: Account) -> [UInt8]? {
        guard world.scenario.faults[.clearWrite] > 0, ClearWrite.fits(text), world.befalls(.clearWrite) else {
            return nil
        }
        clearWrites += 1
        return ClearWrite.made(beside: text, of: account, number: clearWrites)
    }

    /// The server notices that a client is gone.
    func lost(_ link: Link) {
        guard let process, let id = link.id, process.links[id] === link else { return }
        world.record("server lost", link.serial)
        forget(link, id, process)
        process.hub.closed(id)
        perform(process)
    }

    private func forget(_ link: Link, _ id: ConnectionID, _ process: Process) {
        process.links[id] = nil
        process.slots.remove(id.slot)
        link.id = nil
    }

    /// What the event loop does with a client that does not read.
    private func drop(_ link: Link, _ id: ConnectionID, _ process: Process) {
        world.record("server drops", link.serial)
        forget(link, id, process)
        process.hub.closed(id)
        link.close(1013, "too slow")
    }

    func perform(_ process: Process, isBroadcast: Bool = false) {
        for action in process.hub.takeActions() {
            switch action {
            case .send(let id, let frame):
                guard let link = process.links[id] else { continue }
                for text in sent(frame, isBroadcast) where process.links[id] === link {
                    world.record("server >", link.serial, text)
                    link.watch.observe(text, codec, world.ledger, isBroadcast: isBroadcast)
                    if !link.answer(text) { drop(link, id, process) }
                }
            case .close(let id, let code, let reason):
                guard let link = process.links[id] else { continue }
                world.record("server closes", link.serial, Array(reason.utf8))
                forget(link, id, process)
                process.hub.closed(id)
                link.close(code.rawValue, reason)
            case .pause(let id): process.links[id]?.isPaused = true
            case .resume(let id):
                guard let link = process.links[id] else { continue }
                world.after(0) { link.resume() }
            case .submit(let request):
                process.queue.append(request)
                wakeShard(process)
            case .read(let request): read(request, process)
            case .readWhenDrained(let request): read(request, process)
            case .respond(let id, let response, _): respond(id, response, process)
            case .blob(let id, let order): perform(order, of: id, process)
            case .admit, .report: continue
            }
        }
        scheduleTick(process)
    }

    /// One message, unless a bug loses or divides it.
    private func sent(_ frame: SharedFrame, _ isBroadcast: Bool) -> [[UInt8]] {
        let text = Self.payload(frame)
        guard let mutation else { return [text] }
        if mutation.mutant == .dividedBatch { return TreeFlaws.divided(text) }
        return mutation.sent(text, isBroadcast).map { [$0] } ?? []
    }

    /// The payload of a server's text frame.
    private static func payload(_ frame: SharedFrame) -> [UInt8] {
        let bytes = frame.bytes
        let head = bytes[1] == 127 ? 10 : bytes[1] == 126 ? 4 : 2
        return Array(bytes[head...])
    }

    /// An administrator requests the state of the clients of a bucket.
    func ask() {
        guard let process else { return }
        asks += 1
        let ids = world.names.ids
        let bucket = ids[world.random.below(ids.count)]
        process.hub.ask(asks, RemoteQuestion(bucket: bucket, kind: .index, seconds: 5), now: instant)
        perform(process)
    }

    // MARK: - The other threads

    private func scheduleTick(_ process: Process) {
        guard let pause = process.hub.tickMilliseconds else { return }
        let time = world.now + Int64(pause) * 1_000
        guard time < process.nextTick ?? .max else { return }
        process.nextTick = time
        world.agenda.at(time) { [self] in
            guard self.process === process, process.nextTick == time else { return }
            process.nextTick = nil
            process.hub.tick(instant)
            perform(process)
        }
    }

    /// A reader reads at one moment and its answer reaches the loop at another.
    private func read(_ request: ReadRequest, _ process: Process) {
        let slow = world.befalls(.slowRead)
        let lookAt = world.random.delay(50, slow ? 3_000_000 : 20_000)
        let travel = world.random.delay(20, slow ? 2_000_000 : 5_000)
        process.reads += 1
        let reader = process.readers[process.reads % process.readers.count]
        world.after(lookAt) { [self] in
            guard self.process === process else { return }
            let answer = reader.answer(request)
            world.after(travel) { [self] in
                guard self.process === process else { return }
                process.hub.answered(request, answer, now: instant)
                perform(process)
            }
        }
    }

    private func wakeShard(_ process: Process) {
        guard !process.isShardAwake else { return }
        process.isShardAwake = true
        world.after(world.random.delay(50, world.isCalm ? 5_000 : 300_000)) { [self] in
            guard self.process === process else { return }
            process.isShardAwake = false
            decide(process)
        }
    }

    /// The cycle of the shard's thread: take the queued changes, commit when the group is full and at the end.
    private func decide(_ process: Process) {
        let count = world.random.chance(700) ? process.queue.count : world.random.below(process.queue.count + 1)
        // Every third turn works like the loop with a lone change, which the loop commits itself.
        process.turns += 1
        if process.turns % 3 == 0, count > 0, !process.core.isFull {
            _ = process.core.beginCommit(of: Array(process.queue.prefix(count)))
        }
        var host = Batch(server: self, process: process)
        guard process.core.run(process.queue.prefix(count), for: &host) else { return }
        process.queue.replaceSubrange(..<count, with: host.left)
        if process.queue.count > host.left.count || process.core.hasBacklog { wakeShard(process) }
    }

    /// The simulated thread around the core; the batch itself is worked off by the code of the server.
    private struct Batch: ShardHost {
        let server: SimulatedServer
        let process: Process
        /// Requests of users with a deferred change.
        var left = [ShardRequest]()

        func request(in work: ShardRequest) -> ShardRequest? { work }

        mutating func begins(_ request: ShardRequest) -> Bool {
            guard case .change(let change) = request, process.held.contains(change.reservation.tenant) else {
                return true
            }
            left.append(request)
            return false
        }

        func received(_ request: ShardRequest, at index: Int, deferred: DeferredChange?) {
            if let deferred { server.decideElsewhere(deferred, process) }
        }

        func commit(requests: Int) -> Bool { server.commit(process, requests) }

        func perform(_ work: ShardRequest) {}
    }

    /// Another thread reads the object at one moment, and its result is committed, as the first change of its user, at
    /// another.
    private func decideElsewhere(_ long: DeferredChange, _ process: Process) {
        let tenant = long.submitted.reservation.tenant
        process.held.insert(tenant)
        world.tally.decidedElsewhere += 1
        let reader = world.random.chance(900) ? process.auditor : nil
        world.after(world.random.delay(50, 300_000)) { [self] in
            guard self.process === process else { return }
            let result = long.decide(reading: reader)
            world.after(world.random.delay(20, 300_000)) { [self] in
                guard self.process === process else { return }
                process.held.remove(tenant)
                process.queue.insert(.decided(result), at: 0)
                wakeShard(process)
            }
        }
    }

    func endWrite() {
        storage.endWrite()
        world.record("server writes", 0, shape: storage.takeShape())
    }

    /// - Returns: false when the process died in it.
    private func commit(_ process: Process, _ requests: Int) -> Bool {
        storage.beginWrite()
        let outcome = process.core.commit()
        endWrite()
        world.ledger.observe(self)
        if outcome.failure != nil, !storage.isDown { world.tally.faults[.commitRefused] += 1 }
        guard !storage.isDown else {
            world.tally.faults[.commitCrash] += 1
            crash()
            return false
        }
        world.record("commit", outcome.appliedCount)
        let travel = world.random.delay(20, world.isCalm ? 2_000 : 100_000)
        process.outcomesAt = max(process.outcomesAt, world.now + travel)
        guard let passedOn = mutation.map({ $0.passOn(outcome) }) ?? outcome else { return true }
        let late = mutation?.lateness ?? 0
        world.agenda.at(process.outcomesAt + late) { [self] in
            guard self.process === process else { return }
            process.hub.committed(passedOn, now: instant)
            perform(process, isBroadcast: true)
        }
        return true
    }

    private func scheduleMaintenance(_ process: Process) {
        world.after(world.random.between(100_000, 2_000_000) * (world.scenario.isDays ? 60 : 1)) { [self] in
            guard self.process === process, let maintenance = process.maintenance else { return }
            storage.beginWrite()
            keep(process, maintenance)
            endWrite()
            if storage.isDown {
                world.tally.faults[.commitCrash] += 1
                crash()
            } else {
                scheduleMaintenance(process)
            }
        }
    }

    private func keep(_ process: Process, _ maintenance: any StoreMaintenance) {
        do {
            guard let batch = try maintenance.nextBatch(now: instant.unix) else { return }
            _ = try process.core.apply(batch)
            world.tally.logCuts += 1
            world.record("log cut", 0)
        } catch {
            // A planned fault: the next maintenance run tries again.
            if error.kind == .corrupt { world.problem("the maintenance cannot read the log: \(error)") }
        }
    }
}
