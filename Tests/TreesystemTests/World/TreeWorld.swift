import Glibc
import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// Devices of one account and a server, with a network that delays, repeats and loses everything, on a virtual clock.
/// All choices come from a seed.
final class TreeWorld {
    var server = ModelServer()
    var random: SeededRandom
    private(set) var devices = [WorldDevice]()
    private(set) var now: Int64 = 1_000
    /// Whether the network loses and repeats.
    var isHostile = true
    /// Whether statements of the devices' stores fail.
    var hasFailingDisks = false {
        didSet { if !hasFailingDisks { for device in devices { device.disk = nil } } }
    }
    let pageNodes: Int
    /// Servers of the trees of other accounts than `user-1`.
    var others = [String: ModelServer]()
    /// The keys of accounts; none in a world of one account.
    private(set) var people = [String: MessageIdentity]()
    /// What a look-up of an account's keys gives in place of them.
    var troubles = [String: KeyTrouble]()
    /// Messages that do not arrive for now.
    var withheld = Set<NodeID>()
    /// Messages that were withheld, with their senders.
    var late = [(operation: TreeOperation, sender: String)]()

    /// Devices of several accounts, one for each name.
    init(seed: UInt64, owners: [String], pageNodes: Int = 7) throws {
        random = SeededRandom(seed: seed)
        self.pageNodes = pageNodes
        for owner in Set(owners) {
            let number = UInt8(owners.firstIndex(of: owner) ?? 0) + 1
            people[owner] = MessageIdentity(
                user: try UserID(owner),
                signing: try Ed25519.SigningKey(seed: SecureBytes(copying: [UInt8](repeating: number, count: 32))),
                exchange: try X25519.PrivateKey(SecureBytes(copying: [UInt8](repeating: number + 50, count: 32))))
            guard owner != server.owner else { continue }
            others[owner] = ModelServer()
            others[owner]?.owner = owner
        }
        for owner in people.keys {
            self[owner].keys = people.mapValues(\.keys).reduce(into: [:]) { $0[$1.key] = $1.value }
        }
        for (number, owner) in owners.enumerated() {
            devices.append(
                try WorldDevice(number, seed: random.next(), .rename, .full, owner: owner, identity: people[owner]))
        }
    }

    init(
        seed: UInt64, devices count: Int, pageNodes: Int = 7, policy: NameConflictPolicy = .rename, lazy: Set<Int> = []
    ) throws {
        random = SeededRandom(seed: seed)
        self.pageNodes = pageNodes
        for number in 0..<count {
            let skeleton = lazy.contains(number) ? SkeletonPolicy.lazy(depth: 1) : .full
            devices.append(try WorldDevice(number, seed: random.next(), policy, skeleton))
        }
    }

    /// The seeds of the random tests; `THICKET_TREE_SEED` names a single one.
    static var seeds: Range<UInt64> {
        guard let text = getenv("THICKET_TREE_SEED"), let seed = UInt64(String(cString: text)) else { return 0..<8 }
        return seed..<seed + 1
    }

    func add(_ device: WorldDevice) { devices.append(device) }

    var time: TreeTime { TreeTime(monotonic: now, unix: 1_700_000_000_000 + now) }

    func roll(_ sides: Int) -> Int { Int(random.next() % UInt64(max(1, sides))) }
    func chance(_ percent: Int) -> Bool { roll(100) < percent }
    func pick<Element>(_ list: [Element]) -> Element? { list.isEmpty ? nil : list[roll(list.count)] }

    // MARK: - Steps

    /// One event of the network or the clock.
    func step() throws {
        let device = devices[roll(devices.count)]
        if hasFailingDisks, chance(10) { device.disk = FailingDisk(at: 1 + roll(60), untilTheEnd: chance(30)) }
        switch roll(isHostile ? 12 : 9) {
        case 0...3: try device.deliverToServer(self)
        case 4...7: try device.deliverToDevice(self)
        case 8: try pass(Int64(roll(1_500)))
        case 9 where chance(20): try device.loseConnection(self)
        case 10 where chance(10): try device.restart(self)
        default: try pass(Int64(roll(50)))
        }
    }

    /// Time passes; the network does nothing meanwhile.
    func pass(_ milliseconds: Int64) throws {
        now += milliseconds
        for device in devices { try device.tick(self) }
    }

    /// Delivers everything, until all devices have everything and have nothing more to send.
    func settleDown() throws { try settleDownBut() }

    /// As `settleDown`, while some devices neither send nor receive.
    func settleDownBut(_ absent: WorldDevice...) throws {
        (isHostile, hasFailingDisks) = (false, false)
        let devices = devices.filter { device in !absent.contains { $0 === device } }
        for _ in 0..<300 {
            var isQuiet = true
            for device in devices {
                while try device.deliverToServer(self) { isQuiet = false }
                while try device.deliverToDevice(self) { isQuiet = false }
            }
            if isQuiet, devices.allSatisfy(\.isAtRest) { return }
            if isQuiet { try pass(5_000) }
        }
        throw Unrest(states: devices.map(\.summary))
    }

    /// The devices did not come to rest.
    struct Unrest: Error { let states: [String] }
}

/// A device of the world: a machine, its store, and what is on the way to and from it.
final class WorldDevice {
    let number: Int
    let owner: String
    /// The branch of the owner that it opens; nil: the own tree.
    let branch: BranchName?
    let identity: MessageIdentity?
    let store: TreeStore
    var machine: TreeMachine
    let keys: TreeKeys
    /// Those of the next start of the program.
    var options: TreeOptions
    private let seeds: SeededSource
    /// What the app keeps by the delegate, and reads of the store.
    let app: IndexApp
    private(set) var events = [TreeEvent]()
    private(set) var shareEvents = [ShareEvent]()
    /// How contents are merged that other devices have changed too.
    var mergeRule = MergeRule.json
    /// Fails in the next turn.
    var disk: FailingDisk?
    private var isConnected = false
    /// Whether the server sends changes to this connection.
    private var isLive = false
    /// How much of the log the connection was sent.
    private var sentLog = 0
    private var toServer = [String]()
    private var toDevice = [[UInt8]]()
    private var requests = [(id: BatchID, body: [UInt8])]()
    private var replies = [(id: BatchID, reply: BatchReply)]()
    private var queries = [(number: Int64, query: ChildrenQuery)]()
    private var pages = [(number: Int64, reply: ChildrenReply)]()
    /// Requests for lists of children that the device has made.
    private(set) var queriesMade = 0
    /// What lists have for this device in place of the records of nodes.
    var listedObjects = [NodeID: JSONObject]()
    /// Answers that this device was to receive, those that were harmed included.
    private(set) var answers = 0
    /// What the link does to one answer, by its number.
    var harm: (answer: Int, kind: LinkHarm)?
    private var late = LateAnswers()

    init(
        _ number: Int, seed: UInt64, _ policy: NameConflictPolicy, _ skeleton: SkeletonPolicy, owner: String = "user-1",
        identity: MessageIdentity? = nil, branch: BranchName? = nil, invite: BranchInvite? = nil
    ) throws {
        (self.number, self.owner, self.identity, self.branch) = (number, owner, identity, branch)
        store = try TreeStore()
        let place = TreePlace(app: try AppID("notes"), owner: try UserID(owner))
        let secret = UInt8(owner.utf8.last ?? 0) &- UInt8(ascii: "1")
        let octets: [UInt8] =
            branch == nil ? (0..<32).map { UInt8($0) &+ secret } : [UInt8](repeating: UInt8(number), count: 32)
        keys = TreeKeys(secret: SecureBytes(copying: octets), tree: place)
        var options = TreeOptions(SyncOptions(app: place.app, token: "token"))
        options.nameConflicts = policy
        options.skeleton = skeleton
        (options.identity, options.branch, options.invite) = (identity, branch, invite)
        self.options = options
        seeds = SeededSource(seed: seed)
        app = IndexApp()
        machine = try Self.machine(store, keys, options, seeds, app)
    }

    private static func machine(
        _ store: TreeStore, _ keys: TreeKeys, _ options: TreeOptions, _ seeds: SeededSource, _ app: IndexApp
    ) throws -> TreeMachine {
        let random = TreeRandom(secret: { SecureBytes(copying: seeds.bytes($0)) }, bytes: { seeds.bytes($0) })
        return try TreeMachine(
            store: store, keys: keys, options: options, treeRandom: random,
            random: SeededRandom(seed: seeds.bytes(8).reduce(0) { $0 << 8 | UInt64($1) }), delegate: app)
    }

    var isAtRest: Bool {
        // The branch is not shared with its account any more.
        if branch != nil, case .offline(.unauthorized) = machine.status { return true }
        return machine.channel.phase == .live && late.isEmpty && machine.push.inFlight == nil && machine.lists.isIdle
            && machine.queue.ids.allSatisfy { id in
                guard let operation = machine.queue[id] else { return true }
                switch operation.state {
                case .held, .failed: return true
                case .waiting: return isBlocked(id)
                case .sending: return false
                }
            }
    }

    private func isBlocked(_ id: OperationID, _ above: Set<OperationID> = []) -> Bool {
        // Groups may depend on each other in a circle of operations.
        if above.contains(id) { return false }
        let above = above.union([id])
        guard let operation = machine.queue[id] else { return false }
        // A node in an unknown part of a lazy skeleton waits until that part is opened.
        if let row = try? store.row(operation.node), row.state == .unopened { return true }
        switch operation.state {
        case .held, .failed: return true
        case .waiting, .sending:
            // Its content is asked for when the removal of the branch that it is in is over.
            if operation.content == .ask, (try? store.row(operation.node))??.state.isConcealed == true { return true }
            return operation.dependencies.contains { isBlocked($0, above) } || hasBlockedGroup(operation, above)
        }
    }

    private func hasBlockedGroup(_ operation: PendingOperation, _ above: Set<OperationID>) -> Bool {
        guard let group = operation.group else { return false }
        return machine.queue.ids.compactMap { machine.queue[$0] }.contains { each in
            guard each.group == group, each.id != operation.id else { return false }
            switch each.state {
            case .held, .failed: return true
            case .waiting, .sending: return each.dependencies.contains { $0 != operation.id && isBlocked($0, above) }
            }
        }
    }

    var summary: String {
        let states = machine.queue.ids.compactMap { machine.queue[$0] }.map {
            "\($0.id) \($0.node.text.prefix(4)) \($0.isDelete ? "delete" : String($0.fields.rawValue)) \($0.state) "
                + "\(own($0)) \($0.content) \(chain($0)) waits \($0.waitsFor ?? 0) on \($0.dependencies)"
        }
        return
            "device \(number): \(machine.status), in flight \(machine.push.inFlight?.operations ?? []), "
            + "\(requests.count) requests, \(replies.count) replies, asked \(machine.queue.asked), \(states)"
    }

    /// The row of the operation's node.
    private func own(_ operation: PendingOperation) -> String {
        guard let row = try? store.row(operation.node) else { return "no row" }
        return "\(row.state) \((try? store.path(of: .node(row.id)))?.description ?? "no path")"
    }

    private func chain(_ operation: PendingOperation) -> [String] {
        var (links, next) = ([String](), operation.target?.parent)
        while case .node(let id)? = next, links.count < 5 {
            let row = try? store.row(id)
            links.append("\(id.text.prefix(4)) \(row.map { "\($0.state) v\($0.version)" } ?? "no row")")
            next = row?.parent
        }
        return links
    }

    // MARK: - The machine

    func local<Value>(
        _ world: TreeWorld, _ body: (inout TreeMachine) throws(TreeError) -> Value
    ) throws(TreeError) -> Value {
        let (before, failing) = try startFailing()
        do throws(TreeError) {
            let (value, actions) = try machine.turn(world.time, body)
            store.beforeStatement = nil
            perform(actions, world)
            return value
        } catch {
            store.beforeStatement = nil
            if failing?.hasFailed == true { checkUndone(before) }
            throw error
        }
    }

    private func outside(_ world: TreeWorld, _ body: (inout TreeMachine) throws(TreeError) -> Void) {
        let (before, failing) = (try? startFailing()) ?? ([], nil)
        let actions = machine.quietTurn(world.time, body)
        store.beforeStatement = nil
        // A turn that succeeds ends the row of failures.
        if failing?.hasFailed == true, machine.channel.failures > 0 { checkUndone(before) }
        perform(actions, world)
    }

    private func startFailing() throws(TreeError) -> (before: [String], disk: FailingDisk?) {
        guard let disk else { return ([], nil) }
        self.disk = nil
        let before = try store.dump()
        store.beforeStatement = disk.statement
        return (before, disk)
    }

    /// A turn failed: the store is as before, and so is what only the delegate writes.
    private func checkUndone(_ before: [String]) {
        let after = try? store.dump()
        #expect(after == before, "device \(number)")
    }

    private func perform(_ actions: [TreeAction], _ world: TreeWorld) {
        for action in actions {
            switch action {
            case .connect:
                (isConnected, isLive) = (true, false)
                (toServer, toDevice) = ([], [])
                outside(world) { machine throws(TreeError) in try machine.opened() }
            case .disconnect: disconnect()
            case .send(let bytes): toServer.append(String(decoding: bytes, as: UTF8.self))
            case .batch(let id, let body): requests.append((id, body))
            case .children(let number, let query):
                queriesMade += 1
                queries.append((number, query))
            case .ask(let id, let node, _):
                let content = NodeContent(data: Array("content of \(node.id.text)".utf8))
                outside(world) { machine throws(TreeError) in try machine.provided(id, .held(content)) }
            case .event(let event): events.append(event)
            case .sharing(let event): shareEvents.append(event)
            case .message(.lookUpKeys(let question)):
                let answer = world.answer(question)
                outside(world) { machine throws(TreeError) in
                    try KeyQuestions.answered(question, answer, &machine.skeleton)
                }
            case .merging(.merge(let node)):
                outside(world) { machine throws(TreeError) in try MemoryMerge.run(node, mergeRule, &machine) }
            case .spool, .upload, .keepFile, .forget, .status, .tokenEnded, .message, .merging: break
            }
        }
    }

    private func disconnect() {
        (isConnected, isLive) = (false, false)
        (toServer, toDevice, late.texts) = ([], [], [])
    }

    func tick(_ world: TreeWorld) throws {
        guard let deadline = machine.deadline else {
            // After three failures in a row the tree waits for the app.
            if case .offline(.storeFailed) = machine.status { goOnline(world) }
            return
        }
        guard deadline <= world.now else { return }
        outside(world) { machine throws(TreeError) in machine.tick() }
    }

    /// Requests that have not reached the server are lost.
    func loseRequests() { requests = [] }

    func goOnline(_ world: TreeWorld) {
        outside(world) { machine throws(TreeError) in machine.goOnline() }
    }

    // MARK: - The network

    /// The account of the device's token.
    private var account: String { branch == nil ? owner : identity?.user.text ?? owner }
    private var member: (user: String, root: NodeID)? { branch.map { (account, $0.root) } }

    private func children(_ query: ChildrenQuery, _ world: TreeWorld) -> ChildrenPage {
        guard let branch else { return world[owner].children(query, pageNodes: world.pageNodes) }
        return world[owner].children(query, of: branch.root, pageNodes: world.pageNodes)
    }

    /// - Returns: whether there was anything to deliver.
    @discardableResult
    func deliverToServer(_ world: TreeWorld) throws -> Bool {
        if !requests.isEmpty, toServer.isEmpty || world.chance(50) {
            let request = requests.removeFirst()
            if world.isHostile, world.chance(10) {
                replies.append((request.id, .unknown("lost before the server", retryAfter: 0)))
                return true
            }
            let answer = world.batch(request.body, of: owner, by: account)
            if world.isHostile, world.chance(15) {
                replies.append((request.id, .unknown("the answer was lost", retryAfter: 0)))
            } else {
                replies.append((request.id, .answer(answer)))
            }
            return true
        }
        if !queries.isEmpty, toServer.isEmpty || world.chance(50) {
            let (number, query) = queries.removeFirst()
            let isLost = world.isHostile && world.chance(15)
            let page = try harmed(children(query, world))
            pages.append((number, isLost ? .failed("lost", retryAfter: 0) : .page(page)))
            return true
        }
        guard isConnected, !toServer.isEmpty else { return false }
        let message = toServer.removeFirst()
        if message.hasPrefix("h:") {
            toDevice.append(Array(message.utf8))
            return true
        }
        let wasLive = isLive
        for answer in world[owner].answers(
            to: String(message.dropFirst(2)), pageNodes: world.pageNodes, isLive: &isLive, member: member)
        {
            toDevice.append(Array("0:\(answer)".utf8))
        }
        if isLive, !wasLive { sentLog = world[owner].log.count }
        return true
    }

    @discardableResult
    func deliverToDevice(_ world: TreeWorld) throws -> Bool {
        if isLive, let member,
            !world[owner].serves(member.user, member.root)
                || world[owner].excluded(member.user, from: member.root, after: sentLog)
        {
            isLive = false
            toDevice.append(Array("0:auth:{\"code\":401,\"msg\":\"no-read\"}".utf8))
        }
        if isLive, sentLog < world[owner].log.count {
            toDevice.append(Array("0:\(world[owner].changes(from: sentLog, of: branch?.root))".utf8))
            sentLog = world[owner].log.count
        }
        if harm != nil, try meetHarm(world) { return true }
        if !replies.isEmpty, toDevice.isEmpty || world.chance(50) {
            let reply = replies.removeFirst()
            outside(world) { machine throws(TreeError) in try machine.batchAnswered(reply.id, reply.reply) }
            if world.isHostile, world.chance(10) { replies.append(reply) }
            return true
        }
        if !pages.isEmpty, toDevice.isEmpty || world.chance(50) {
            let page = pages.removeFirst()
            outside(world) { machine throws(TreeError) in try machine.childrenListed(page.number, page.reply) }
            return true
        }
        if !late.texts.isEmpty { (late.texts, toDevice) = (late.texts + toDevice, []) }
        guard !toDevice.isEmpty else { return deliverLate(world.now) }
        let count = harm == nil ? 1 + world.roll(min(3, toDevice.count)) : 1
        let texts = Array(toDevice.prefix(count))
        toDevice.removeFirst(texts.count)
        outside(world) { machine throws(TreeError) in try machine.received(ServerBatch(texts)) }
        return true
    }

    /// Counts the next answer, and harms it if it is the one.
    private func meetHarm(_ world: TreeWorld) throws -> Bool {
        guard !replies.isEmpty || !pages.isEmpty || !toDevice.isEmpty else { return false }
        answers += 1
        guard let harm, harm.answer == answers - 1 else { return false }
        if harm.kind == .lost, replies.isEmpty, pages.isEmpty { try loseConnection(world) }
        harm.kind.apply(&replies, &pages, &toDevice, &late, now: world.now)
        return true
    }

    private func deliverLate(_ now: Int64) -> Bool {
        guard !late.isEmpty, now >= late.due else { return false }
        (replies, pages, toDevice, late) = (late.replies, late.pages, late.texts, LateAnswers())
        return true
    }

    /// Bytes of a hostile server.
    func receive(_ text: [UInt8], _ world: TreeWorld) {
        outside(world) { machine throws(TreeError) in try machine.received(ServerBatch([text])) }
    }

    func loseConnection(_ world: TreeWorld) throws {
        guard isConnected else { return }
        disconnect()
        outside(world) { machine throws(TreeError) in machine.closed(LinkClosure(detail: "cut")) }
    }

    /// The position in the log is lost: all nodes are read again.
    func forgetPosition(_ world: TreeWorld) throws {
        try store.setNamedValue("cv", nil)
        try restart(world)
        try tick(world)
    }

    /// The program ends and starts again: only the store is left.
    func restart(_ world: TreeWorld) throws {
        disconnect()
        (requests, replies, queries, pages, late) = ([], [], [], [], LateAnswers())
        machine = try Self.machine(store, keys, options, seeds, app)
    }
}

/// Bytes from a seed, for several closures.
/// `@unchecked`: a world and everything in it is used by the thread of its test alone.
final class SeededSource: @unchecked Sendable {
    private var generator: SeededRandom

    init(seed: UInt64) { generator = SeededRandom(seed: seed) }

    func bytes(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) } }
}
