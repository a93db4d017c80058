import Testing
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape
@testable import ThicketTreesystem

/// An owner with two devices and two members of a branch, through a server that lies at random about its list and its
/// records: what is shown was written by an account that the owner let write, keys are wrapped for members only, and a
/// lie that changes what a device shows has left a report.
///
/// `THICKET_PEOPLE_SEEDS=FIRST-LAST` plays other seeds than the first ten of each kind (`./dev soak --people`).
@Suite("A shared branch and a server that lies at random", .nonceWatch)
struct LyingBranchTests {
    @Test("A10: each lie about a branch is found by an account or harms none", arguments: LyingPeopleTests.parts)
    func lies(part: UInt64) throws {
        var (count, found) = (0, 0)
        for seed in LyingPeopleTests.seeds(part) {
            let run = try BranchRun(seed: 5_000_000 + seed, isLying: true, changesLetters: false)
            try run.play()
            try run.check()
            count += run.lies.count
            found += run.faults.count
        }
        print("simulation: branch: \(LyingPeopleTests.seeds(part).count) runs with \(count) lies, \(found) reports")
        #expect(LyingPeopleTests.seeds(part).isEmpty || count > 0 && found > 0, "no lie was told, or none was found")
    }

    @Test(
        "with an honest server nothing of a branch is reported, and all devices end with the same",
        arguments: LyingPeopleTests.parts)
    func honest(part: UInt64) throws {
        for seed in LyingPeopleTests.seeds(part) {
            let run = try BranchRun(seed: 6_000_000 + seed, isLying: false, changesLetters: false)
            try run.play()
            try run.check()
            #expect(run.faults.isEmpty, "seed \(seed): \(run.reports)")
        }
        print("simulation: branch: \(LyingPeopleTests.seeds(part).count) honest runs")
    }

    @Test(
        "a member whose letters change while all write reports nothing, and ends with the same as all others",
        arguments: LyingPeopleTests.parts)
    func changingLetters(part: UInt64) throws {
        for seed in LyingPeopleTests.seeds(part) { try Self.playChangingLetters(seed) }
        print("simulation: branch: \(LyingPeopleTests.seeds(part).count) honest runs with letters that change")
    }

    /// Histories in which a change that the list did not permit any more was sent again and again.
    @Test("a member whose letters change while all write sends no refused change without an end")
    func refusedChanges() throws {
        for seed: UInt64 in [23, 78, 85] { try Self.playChangingLetters(seed) }
    }

    private static func playChangingLetters(_ seed: UInt64) throws {
        let run = try BranchRun(seed: 6_000_000 + seed, isLying: false, changesLetters: true)
        try run.play()
        try run.check()
        #expect(run.faults.isEmpty, "seed \(seed): \(run.reports)")
    }
}

/// A random history of a branch.
private final class BranchRun {
    /// What the server does; each breaks one promise.
    enum Lie: CaseIterable {
        case raisedLetters, addedReader, droppedMember, olderList, noList, otherAuthor, unsigned, changedSeal
        case swappedContent, olderRecord, otherParent
    }

    private let seed: UInt64
    private let isLying: Bool
    /// Whether a member gets other letters, is removed and comes back, while all write.
    private let changesLetters: Bool
    private let world: TreeWorld
    private let root: NodeID
    private var devices = [WorldDevice]()
    private(set) var lies = [Lie]()
    /// What was written, with the account that did.
    private var authors = [String: String]()
    /// Accounts that the owner has let write at some time.
    private var writers: Set<String> = ["user-1", "user-2"]
    /// Records that a node had, the oldest first.
    private var earlier = [NodeID: [NodeRecord]]()
    /// The newest version of each node that is the server's.
    private var forged = [NodeID: Version]()
    private var number = 0

    init(seed: UInt64, isLying: Bool, changesLetters: Bool) throws {
        (self.seed, self.isLying, self.changesLetters) = (seed, isLying, changesLetters)
        world = try TreeWorld(seed: seed, owners: ["user-1", "user-1", "user-2", "user-3"])
        let owner = world.devices[0]
        root = try owner.create("album", in: world)
        try owner.create("album/a", in: world)
        try owner.create("album/b", in: world)
        try world.settleDown()
        try change(["user-2": "rw", "user-3": "r"])
        try world.settleDown()
        devices = [owner, world.devices[1]]
        for user in ["user-2", "user-3"] {
            devices.append(try world.join("user-1", root, as: user))
            try world.settleDown()
        }
    }

    var faults: [IntegrityFault] {
        devices.flatMap { device in
            device.events.compactMap { if case .integrity(let fault) = $0 { fault } else { nil } }
        }
    }

    /// What was reported, by which account.
    var reports: [String] {
        devices.flatMap { device in
            device.events.compactMap { event in
                guard case .integrity(let fault) = event else { return nil }
                let path = (try? device.store.path(of: .node(fault.node)))??.description ?? fault.node.text
                return "\(account(device)), device \(device.number): \(path): \(fault.detail)"
            }
        }
    }

    func play() throws {
        for _ in 0..<120 {
            try world.step()
            if world.chance(25) { try write() }
            if changesLetters, world.chance(4) { try change(["user-3": ["", "r", "rw"][world.roll(3)]]) }
            if world.chance(5) { comeBack() }
            remember()
            if isLying, world.chance(8) { try lie() }
        }
        try comeToRest()
        comeBack()
        try comeToRest()
        for _ in 0..<3 where !isLying {
            for device in devices { try? device.discardAll(world) }
            try world.settleDown()
        }
    }

    /// With a server that lies, changes of what it has forged may be refused again and again.
    private func comeToRest() throws {
        do { try world.settleDown() } catch { if !isLying { throw error } }
    }

    // MARK: The accounts

    private func change(_ letters: [String: String]) throws {
        var members = [UserID: SharePermissions]()
        for (name, text) in letters { members[try UserID(name)] = SharePermissions(text: text) ?? [] }
        let (change, root) = (ShareChange(members), root)
        // A member that is not there cannot be removed.
        _ = try? world.devices[0].local(world) { machine throws(TreeError) in
            try ShareChanges.add(change, to: root, &machine.skeleton)
        }
        if letters["user-3"] == "rw" { writers.insert("user-3") }
    }

    private func account(_ device: WorldDevice) -> String { device.identity?.user.text ?? device.owner }

    /// Members that were told that they are none, and are again.
    private func comeBack() {
        for device in devices where isMember(device) {
            if case .offline(.unauthorized) = device.machine.status { device.goOnline(world) }
        }
    }

    private func write() throws {
        guard let device = world.pick(devices) else { return }
        number += 1
        let text = "text \(number)"
        authors[text] = account(device)
        let files = try device.paths().map { String($0.dropFirst("home/".count)) }
            .filter { $0.hasPrefix("album/") && $0.contains("/f") }
        if let file = world.pick(files), world.chance(60) {
            try? device.write(file, text, in: world)
        } else {
            _ = try? device.create("album/\(["a", "b"][world.roll(2)])/f\(number)", text, in: world)
        }
    }

    /// Keeps the records that the server has now.
    private func remember() {
        for (id, held) in world.server.nodes where world.server.audience(of: id) == root {
            if earlier[id]?.last != held.record { earlier[id, default: []].append(held.record) }
        }
    }

    // MARK: The server

    private func lie() throws {
        guard let lie = world.pick(Lie.allCases), var list = world.server.nodes[root]?.record else { return }
        let files = world.server.nodes.filter {
            $0.value.record.data != nil && world.server.audience(of: $0.key) == root
        }
        .sorted { $0.key < $1.key }
        switch lie {
        case .raisedLetters:
            guard list.shareList?.members.isEmpty == false else { return }
            list.shareList?.members[0].permissions = .all
        case .addedReader:
            guard let keys = world.people["user-3"]?.keys, list.shareList != nil else { return }
            list.shareList?.members.append(ShareList.Member(try UserID("zed"), .read, keyID: keys.id))
            list.wraps.append(
                RecordWrap(.user(try UserID("zed"), keyID: keys.id), sealed: [1] + [UInt8](repeating: 0, count: 80)))
        case .droppedMember:
            guard list.shareList?.members.isEmpty == false else { return }
            list.shareList?.members.removeFirst()
        case .olderList:
            guard let older = world.pick((earlier[root] ?? []).filter { $0 != list }) else { return }
            list = older
        case .noList:
            list.shareList = nil
        default:
            guard let (id, held) = world.pick(files) else { return }
            var record = held.record
            guard try change(&record, of: id, by: lie, files) else { return }
            forge(id, record, lie)
            return
        }
        forge(root, list, lie)
    }

    private func forge(_ id: NodeID, _ record: NodeRecord, _ lie: Lie) {
        world.server.forge(id, record)
        forged[id] = world.server.nodes[id]?.version
        lies.append(lie)
    }

    /// - Returns: false when the lie is not possible now.
    private func change(
        _ record: inout NodeRecord, of id: NodeID, by lie: Lie, _ files: [(key: NodeID, value: ModelServer.Held)]
    ) throws -> Bool {
        switch lie {
        case .otherAuthor:
            guard let signature = record.signature,
                let other = ["user-1", "user-2", "user-3"].first(where: {
                    $0 != signature.author.text
                })
            else { return false }
            let keyID = world.people[other]?.keys.id ?? signature.keyID
            record.signature = try RecordSignature(
                author: try UserID(other), keyID: keyID, octets: signature.octets)
        case .unsigned:
            guard record.signature != nil else { return false }
            record.signature = nil
        case .changedSeal: record.metadata[20] ^= 1
        case .swappedContent:
            guard let other = world.pick(files.filter { $0.key != id }) else { return false }
            record.data = other.value.record.data
        case .olderRecord:
            guard let older = world.pick((earlier[id] ?? []).filter { $0 != record }) else { return false }
            record = older
        case .otherParent:
            guard case .node(let parent) = record.parent,
                let other = try ["album/a", "album/b"].map({ try devices[0].id($0) }).first(where: { $0 != parent })
            else { return false }
            record.parent = .node(other)
        default: return false
        }
        return true
    }

    // MARK: What must hold

    func check() throws {
        for device in devices { try check(device) }
        for (id, held) in world.server.nodes where forged[id] != held.version {
            let isAdded =
                held.record.wraps.contains { $0.kind.contains("zed") }
                || held.record.shareList?.members.contains { $0.user.text == "zed" } == true
            #expect(!isAdded, "seed \(seed): an account has written a reader that the server added")
        }
        guard faults.isEmpty else { return }
        // No account has reported anything: all see the same.
        let expected = try shown(devices[0])
        for device in devices.dropFirst() where isMember(device) {
            #expect(try shown(device) == expected, "seed \(seed): \(account(device)) differs silently; lies \(lies)")
        }
    }

    private func check(_ device: WorldDevice) throws {
        for (path, text) in try shown(device) {
            guard let text else { continue }
            guard let author = authors[text] else {
                Issue.record("seed \(seed): \(account(device)) is shown '\(text)' at \(path); lies \(lies)")
                continue
            }
            #expect(
                writers.contains(author) || author == account(device),
                "seed \(seed): \(account(device)) is shown what \(author) may not write; lies \(lies)")
        }
    }

    private func isMember(_ device: WorldDevice) -> Bool {
        device.branch == nil || world.server.serves(account(device), root)
    }

    private func shown(_ device: WorldDevice) throws -> [String: String?] {
        var found = [String: String?]()
        for path in try device.paths() where path.hasPrefix("home/album") {
            found[path] = try device.content(String(path.dropFirst("home/".count)))
        }
        return found
    }
}
