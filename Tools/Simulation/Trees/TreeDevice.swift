import Synchronization
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// A device with a tree: the real machine over its store in memory or on a simulated disk, with its connection and its
/// requests by HTTP. The program can be killed between any two turns, and between what a turn stores and what it does.
final class TreeDevice: Peer {
    private let storage: any TreeStorage
    private(set) var machine: TreeMachine
    let keys: TreeKeys
    private let source: RandomSource
    private(set) lazy var person = TreePerson(self)
    private(set) lazy var transfers = TreeTransfers(self)
    private var inbox = [[UInt8]]()
    private var isDraining = false
    private var alarm = 0
    /// Starts of the program: answers to requests of an earlier one are lost.
    private var generation = 0
    private var calls = 0
    /// The bug that is built in; nil: none.
    private var mutation: TreeMutation?

    init(joining world: World, as number: Int, of account: Account) throws {
        storage =
            world.scenario.kind == .disks
            ? try DiskTreeStorage(world.random.chance(500) ? .power : .program) : try MemoryTreeStorage()
        keys = world.names.treeKeys(of: account)
        source = RandomSource(world.random.split())
        mutation = world.scenario.mutant.map { TreeMutation($0, world.random.split()) }
        machine = try Self.machine(account, number, storage, keys, source)
        super.init(world, number, account)
    }

    private static func machine(
        _ account: Account, _ number: Int, _ storage: any TreeStorage, _ keys: TreeKeys, _ source: RandomSource
    ) throws -> TreeMachine {
        var sync = SyncOptions(app: account.app, token: account.token)
        sync.indexPageObjects = 1 + number % 5 * 3
        let random = TreeRandom(secret: { SecureBytes(copying: source.bytes($0)) }, bytes: { source.bytes($0) })
        return try TreeMachine(
            store: storage.store, keys: keys, options: TreeOptions(sync), treeRandom: random, random: source.split())
    }

    /// Bytes from the seed, for several closures.
    final class RandomSource: Sendable {
        private let random: Mutex<SimulationRandom>
        init(_ random: SimulationRandom) { self.random = Mutex(random) }
        func bytes(_ count: Int) -> [UInt8] {
            random.withLock { random in (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) } }
        }
        func split() -> SimulationRandom { random.withLock { $0.split() } }
    }

    var store: TreeStore { storage.store }

    func begin() {
        wake()
        person.begin()
    }

    private var time: TreeTime {
        TreeTime(monotonic: world.milliseconds, unix: SimulatedServer.epochMilliseconds + world.milliseconds)
    }

    // MARK: - Turns

    /// A change by the user, with the faults around it.
    /// - Returns: nil if the program died in it: whether it was made shows in the store.
    func local<Value>(
        _ body: (inout TreeMachine) throws(TreeError) -> Value
    ) throws(TreeError) -> Value? {
        let dies = plan()
        defer { end() }
        do throws(TreeError) {
            let (value, actions) = try machine.turn(time, body)
            if dies { die() } else { perform(actions) }
            return value
        } catch {
            storage.endTurn()
            if dies {
                die()
                return nil
            }
            throw error
        }
    }

    /// What comes from outside.
    func feed(_ body: (inout TreeMachine) throws(TreeError) -> Void) {
        let dies = plan()
        defer { end() }
        let actions = machine.quietTurn(time, body)
        if dies { die() } else { perform(actions) }
    }

    private func plan() -> Bool {
        let dies = world.befalls(.clientKill)
        storage.beginTurn(dies: dies, fails: world.befalls(.clientStore), &world.random)
        return dies
    }

    private func end() {
        storage.endTurn()
        world.record("tree writes", number, shape: storage.takeShape())
    }

    private func perform(_ actions: [TreeAction]) {
        for action in actions {
            switch action {
            case .connect:
                world.record("tree connects", number)
                hangUp()
                dial()
            case .disconnect:
                world.record("tree disconnects", number)
                inbox = []
                hangUp()
            case .send(let text): link?.send(text)
            case .batch(let id, let body): post(id, body)
            case .ask(let id, let node, _): person.asked(id, node)
            case .event(let event): person.follow(event)
            // Not within the turn: each may make a turn of its own.
            case .spool(let id, _): soon { [self] in transfers.spool(id) }
            case .upload(let id): soon { [self] in transfers.upload(id) }
            case .forget(let id): transfers.forget(id)
            case .merging(.merge(let id)):
                soon { [self] in feed { machine throws(TreeError) in try MemoryMerge.run(id, .json, &machine) } }
            // Files that an operation needs are not evicted.
            case .merging(.keepBase), .keepFile, .children, .message, .sharing, .status, .tokenEnded: break
            }
        }
        arm()
    }

    private func arm() {
        alarm += 1
        let alarm = alarm
        guard let deadline = machine.deadline else { return }
        world.agenda.at(max(deadline * 1_000, world.now + 1_000)) { [self] in
            if self.alarm == alarm { wake() }
        }
    }

    /// Runs it after the turn, if the program still runs.
    func soon(_ body: @escaping () -> Void) {
        let generation = generation
        world.after(0) { [self] in if self.generation == generation { body() } }
    }

    private func wake() { feed { machine throws(TreeError) in machine.tick() } }

    func goOffline() { feed { machine throws(TreeError) in machine.goOffline() } }
    func goOnline() { feed { machine throws(TreeError) in machine.goOnline() } }

    /// The app has the content of an operation, or has none.
    func provide(_ id: OperationID, _ content: TreeMachine.Provided) {
        feed { machine throws(TreeError) in try machine.provided(id, content) }
    }

    /// The program is killed and starts again with what its store holds.
    private func die() {
        world.record("tree dies", number)
        inbox = []
        alarm += 1
        generation += 1
        hangUp()
        do {
            // The old machine holds the store open.
            machine = try TreeMachine(
                store: TreeStore(), keys: keys, options: machine.options, random: source.split())
            try storage.restart(&world.random)
            machine = try Self.machine(account, number, storage, keys, source)
            transfers.die()
        } catch {
            return world.problem("device \(number) does not start again: \(error)")
        }
        world.after(world.random.delay(10_000, 5_000_000)) { [self] in wake() }
    }

    // MARK: - Requests

    private func post(_ id: BatchID, _ sent: [UInt8]) {
        let body = mutation?.sent(sent) ?? sent
        if let flaw = world.treeRecords[account.number].send(body, from: number) { world.problem(flaw) }
        world.record("tree posts", number, body)
        let owner = account.user.text.replacing("@", with: "%40")
        let head = """
            POST /1/\(account.app.text)/tree/\(owner)/batch HTTP/1.1\r
            host: a\r
            x-simperium-token: \(account.token)\r
            content-length: \(body.count)\r
            \r

            """
        let generation = generation
        TreeCall(self, Array(head.utf8) + body, batch: id) { [self] response in
            guard self.generation == generation else { return }
            answered(id, Self.reply(response))
        }.send()
    }

    private func answered(_ id: BatchID, _ reply: BatchReply) {
        world.record("tree answered", number, Array("\(reply)".utf8.prefix(40)))
        feed { machine throws(TreeError) in try machine.batchAnswered(id, reply) }
        if let dropped = mutation?.answered(reply, machine) {
            feed { machine throws(TreeError) in try machine.discard(dropped) }
        }
        // Some transports report an answer twice.
        if world.befalls(.doubledAnswer) { feed { machine throws(TreeError) in try machine.batchAnswered(id, reply) } }
    }

    /// As the session reads it.
    private static func reply(_ response: HTTPResponse?) -> BatchReply {
        guard let response else { return .unknown("no answer", retryAfter: 0) }
        if response.status == 401 { return .unauthorized }
        let pause = response.fields["retry-after"].flatMap { Int64($0) } ?? 0
        let unknown = BatchReply.unknown("status \(response.status)", retryAfter: min(600, max(0, pause)) * 1_000)
        guard response.status != 429, response.status < 500,
            let answer = try? TreeBatchAnswer(parsing: response.body)
        else { return unknown }
        if case .made = answer, response.status != 200 { return unknown }
        return .answer(answer)
    }

    // MARK: - Connection

    override func linkOpened() {
        world.record("tree connected", number)
        feed { machine throws(TreeError) in try machine.opened() }
    }

    override func linkReceived(_ text: [UInt8]) {
        world.record("tree <", number, text)
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
        if let position = mutation?.earlyPosition(texts) {
            do throws(TreeError) { try store.setNamedValue("cv", position) } catch { return world.problem("\(error)") }
            return die()
        }
        let batch = ServerBatch(texts)
        feed { machine throws(TreeError) in try machine.received(batch) }
    }

    override func linkClosed(code: UInt16?, _ detail: String) {
        world.record("tree lost", number, Array(detail.utf8))
        drain()
        guard link == nil else { return }
        feed { machine throws(TreeError) in machine.closed(LinkClosure(code: code, detail: detail)) }
    }

    override func heal() {
        super.heal()
        goOnline()
    }

    // MARK: - What is seen

    /// Connected with everything that the server had, and nothing to send: what waits, waits for the app.
    var isSynced: Bool {
        switch machine.status {
        case .upToDate: break
        case .syncing: if !machine.queue.ids.allSatisfy({ waitsForApp($0) }) { return false }
        case .connecting, .indexing, .offline: return false
        }
        return inbox.isEmpty && (link?.isQuiet ?? false)
    }

    /// - Parameter followers: operations that wait for this one: those that wait for each other wait for ever.
    private func waitsForApp(_ id: OperationID, _ followers: Set<OperationID> = []) -> Bool {
        guard !followers.contains(id) else { return false }
        guard let operation = machine.queue[id] else { return true }
        switch operation.state {
        case .held, .failed: return true
        case .waiting: return operation.dependencies.contains { waitsForApp($0, followers.union([id])) }
        case .sending: return false
        }
    }

    /// The blob of a node; nil for a node without one, and for a node that is not shown.
    func reference(of node: NodeID) -> BlobReference? { try? MachineFiles.reference(of: node, in: &machine) }

    /// What the store has of the sealed content of an operation.
    func spool(of id: OperationID) -> SpoolRecord? {
        (try? store.spool(id)).flatMap { $0 }.flatMap(SpoolRecord.init(octets:))
    }

    /// Shown nodes with their paths and versions, parents first.
    func shown() throws(TreeError) -> [(id: NodeID, path: TreePath, version: Version)] {
        var nodes = [(id: NodeID, path: TreePath, version: Version)]()
        var places = Trunk.allCases.reversed().map { (place: NodeParent.trunk($0), path: TreePath($0)) }
        while let (place, path) = places.popLast() {
            for row in try store.children(of: place, order: .name, offset: 0, limit: 100_000) {
                guard let name = row.name else { continue }
                nodes.append((row.id, path.appending(name), row.version))
                places.append((.node(row.id), path.appending(name)))
            }
        }
        return nodes
    }
}
