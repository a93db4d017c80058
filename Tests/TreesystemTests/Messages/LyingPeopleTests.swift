import Glibc
import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// Two to four accounts that write to each other through a server that lies at random: what is shown was sent by the
/// account that it names, to this account, with this content; and what was sent and is not shown has left a report.
///
/// `THICKET_PEOPLE_SEEDS=FIRST-LAST` plays other seeds than the first ten of each kind (`./dev soak --people`).
@Suite("Accounts and a server that lies at random", .nonceWatch)
struct LyingPeopleTests {
    /// Every seed is played by one of two cases, so that two processors share them.
    static let parts: [UInt64] = [0, 1]

    static func seeds(_ part: UInt64) -> [UInt64] {
        var ends: [UInt64] = [0, 9]
        if let text = getenv("THICKET_PEOPLE_SEEDS") {
            ends = String(cString: text).split(separator: "-").compactMap { UInt64($0) }
            precondition(ends.count == 2 && ends[0] <= ends[1], "THICKET_PEOPLE_SEEDS is FIRST-LAST")
        }
        return (ends[0]...ends[1]).filter { $0 % 2 == part }
    }

    @Test("each lie is found by an account or harms none", arguments: parts)
    func lies(part: UInt64) throws {
        var (count, found) = (0, 0)
        for seed in Self.seeds(part) {
            let run = try PeopleRun(seed: seed, isLying: true)
            try run.play()
            run.check()
            count += run.lies.count
            found += run.faultCount
        }
        print("simulation: people: \(Self.seeds(part).count) runs with \(count) lies, \(found) reports")
        // Seeds of the other part alone, when one seed is played again, tell no lie here.
        #expect(Self.seeds(part).isEmpty || count > 0 && found > 0, "no lie was told, or none was found")
    }

    @Test("with an honest server nothing is reported, and everything arrives", arguments: parts)
    func honest(part: UInt64) throws {
        for seed in Self.seeds(part) {
            let run = try PeopleRun(seed: seed, isLying: false)
            try run.play()
            run.check()
            #expect(run.faultCount == 0, "seed \(seed): \(run.faults)")
        }
        print("simulation: people: \(Self.seeds(part).count) honest runs")
    }
}

/// A random history of accounts, and what was really sent.
private final class PeopleRun {
    struct Message {
        let author: String
        let text: String
        let receivers: Set<String>
        let attachment: NodeID?
    }

    /// What the server does; each breaks one promise.
    enum Lie: CaseIterable {
        case withhold, withholdAttachment, otherSender, otherID, forward, changeSeal, otherContent, again, back
    }

    let seed: UInt64
    let world: TreeWorld
    private(set) var lies = [Lie]()
    private var sent = [NodeID: Message]()
    private var withheld = Set<NodeID>()
    /// Messages that a device has removed, with their records, by account.
    private var removed = [String: [NodeID: NodeRecord]]()
    /// Messages that a device has moved out of the inbox, with the records before, by account.
    private var moved = [String: [NodeID: NodeRecord]]()
    private let isLying: Bool
    private var number = 0

    init(seed: UInt64, isLying: Bool) throws {
        (self.seed, self.isLying) = (seed, isLying)
        let owners = (0..<(2 + Int(seed % 3))).map { "user-\($0 + 1)" }
        world = try TreeWorld(seed: seed, owners: owners)
    }

    var faults: [IntegrityFault] {
        world.devices.flatMap { device in
            device.events.compactMap { if case .integrity(let fault) = $0 { fault } else { nil } }
        }
    }

    var faultCount: Int { faults.count }

    func play() throws {
        for _ in 0..<120 {
            try world.step()
            if world.chance(20) { try write() }
            if world.chance(8) { try tidy() }
            if isLying, world.chance(8) { try lie() }
        }
        // What is withheld is found when the device's next message in the conversation arrives.
        for (author, receivers) in conversations { try write(from: author, to: receivers) }
        try world.settleDown()
    }

    // MARK: The accounts

    /// Each device with each set of accounts that it has written to.
    private var conversations: [(WorldDevice, Set<String>)] {
        world.devices.flatMap { device in
            Set(sent.values.filter { $0.author == device.owner }.map(\.receivers))
                .sorted { $0.sorted().joined() < $1.sorted().joined() }.map { (device, $0) }
        }
    }

    /// - Parameter given: receivers of a message that is not withheld; nil: some.
    private func write(from author: WorldDevice? = nil, to given: Set<String>? = nil) throws {
        guard let author = author ?? world.pick(world.devices) else { return }
        let others = world.devices.map(\.owner).filter { $0 != author.owner }
        var receivers = given ?? Set(others.filter { _ in world.chance(60) })
        if receivers.isEmpty, let other = world.pick(others) { receivers = [other] }
        number += 1
        let path = "m\(number)"
        let id = try author.create(path, "text \(number)", in: world)
        var attachment: NodeID?
        if world.chance(30) { attachment = try author.create(path + "/a", "attached \(number)", in: world) }
        if isLying, given == nil, world.chance(10) {
            lies.append(.withhold)
            withheld.formUnion([id, attachment].compactMap { $0 })
        } else if isLying, given == nil, let attachment, world.chance(20) {
            lies.append(.withholdAttachment)
            withheld.insert(attachment)
        }
        world.withheld = withheld
        try author.send(path, to: receivers.sorted(), in: world)
        sent[id] = Message(
            author: author.owner, text: "text \(number)", receivers: receivers, attachment: attachment)
    }

    /// A device removes a message, or moves it out of its inbox.
    private func tidy() throws {
        guard let device = world.pick(world.devices), let message = world.pick(try device.inbox()),
            let record = world[device.owner].nodes[message.id]?.record, sent[message.id] != nil
        else { return }
        if world.chance(50) {
            removed[device.owner, default: [:]][message.id] = record
            _ = try device.local(world) { machine throws(TreeError) in try machine.delete(message.id) }
        } else {
            moved[device.owner, default: [:]][message.id] = record
            let path = WorldDevice.path("kept \(message.id.text)")
            _ = try device.local(world) { machine throws(TreeError) in try machine.move(message.id, to: path) }
        }
    }

    // MARK: The server

    private func lie() throws {
        guard let lie = world.pick(Lie.allCases), let owner = world.pick(world.devices.map(\.owner)) else { return }
        let messages = world[owner].nodes.filter { $0.value.record.parent == .trunk(.inbox) }
            .sorted { $0.key < $1.key }
        guard let (id, held) = world.pick(messages) else { return }
        var record = held.record
        switch lie {
        case .withhold, .withholdAttachment: return
        case .otherSender:
            guard let other = world.pick(world.devices.map(\.owner).filter { $0 != record.stamps.sender?.text }) else {
                return
            }
            record.stamps.sender = try UserID(other)
            world[owner].forge(id, record)
        case .otherID: world[owner].forge(NodeID(UInt128(world.random.next()) << 64 | UInt128(number)), record)
        case .forward:
            let strangers = world.devices.map(\.owner).filter { sent[id]?.receivers.contains($0) == false }
            guard let stranger = world.pick(strangers), world[stranger].nodes[id] == nil else { return }
            world[stranger].forge(id, record)
        case .changeSeal:
            record.metadata[20] ^= 1
            world[owner].forge(id, record)
        case .otherContent:
            guard let other = world.pick(messages.filter { $0.key != id }) else { return }
            record.data = other.value.record.data
            world[owner].forge(id, record)
        case .again:
            guard let (id, record) = removed[owner]?.min(by: { $0.key < $1.key }), world[owner].nodes[id] == nil else {
                return
            }
            world[owner].forge(id, record)
        case .back:
            guard let (id, record) = moved[owner]?.min(by: { $0.key < $1.key }), world[owner].nodes[id] != nil else {
                return
            }
            world[owner].forge(id, record)
        }
        lies.append(lie)
    }

    // MARK: What must hold

    func check() {
        for device in world.devices {
            do { try check(device) } catch { Issue.record("seed \(seed): \(error)") }
        }
    }

    private func check(_ device: WorldDevice) throws {
        let owner = device.owner
        for node in try device.inbox() {
            guard let message = sent[node.id] else {
                Issue.record("seed \(seed): \(owner) is shown a message that was not sent; lies \(lies)")
                continue
            }
            #expect(node.sender?.text == message.author, "seed \(seed), \(owner): another author")
            #expect(message.receivers.contains(owner), "seed \(seed), \(owner): a message for others")
            #expect(try device.text(node.id) == message.text, "seed \(seed), \(owner): another content")
        }
        let reported = Set(
            device.events.compactMap { if case .integrity(let fault) = $0 { fault.node } else { nil } })
        for (id, message) in sent where message.receivers.contains(owner) {
            if removed[owner]?[id] != nil { continue }
            let isShown = try device.store.row(id)?.node(isPending: false) != nil
            if withheld.contains(id) {
                #expect(device.faults.contains(.messagesMissing), "seed \(seed): \(owner) misses a message silently")
                continue
            }
            #expect(isShown || reported.contains(id), "seed \(seed): \(owner) misses \(message.text) silently; \(lies)")
            guard isShown, let attachment = message.attachment else { continue }
            let isWhole = try device.store.row(attachment)?.node(isPending: false) != nil
            let missing = try MessageParts.missing(of: id, &device.machine.skeleton)
            #expect(missing == (isWhole ? [] : [attachment]), "seed \(seed), \(owner), \(message.text)")
        }
    }
}
