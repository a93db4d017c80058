import Glibc
import Testing
@testable import ThicketNet
import ThicketProtocol
@testable import ThicketScheduling
import ThicketTestSupport

@testable import ThicketServer

/// The loop beside a simple model of what it owes to each connection. Over Unix-domain sockets, whose kernel does
/// everything at once, and with time for one connection of a tenant in a turn: the model then knows what a turn must
/// bring.
@Suite("Waiting connections are served in the order of waiting, whatever else happens")
struct LoopRowModelTests {
    @Test("turn by turn, progress, order, ends and answers are those of the model", arguments: 0..<40)
    func model(seed: Int) throws {
        let world = try World(seed: UInt64(seed) &* 7_919)
        for _: Int in 0..<400 { try world.step() }
        try world.finish()
    }

    @Test("a ready queue is a FIFO queue that connections may leave before their turn", arguments: 0..<20)
    func row(seed: Int) throws {
        var random = SeededRandom(seed: UInt64(seed))
        let hand = try LoopByHand()
        let (peer, model): (TestPeer, Connection) = try hand.join()
        let (row, other): (ReadyQueue, ReadyQueue) = (.init(), .init())
        let all: [Connection] = (0..<50).map { number in
            .init(
                id: ConnectionID(slot: Int32(number), serial: 1), listener: model.listener,
                tenant: hand.loop.unauthenticated,
                settings: hand.loop.settings)
        }
        var expected: [Connection] = []
        var most = 0
        for _: Int in 0..<5_000 {
            let connection: Connection = all[Int(random.next() % 50)]
            switch random.next() % 8 {
            case 0...3 where !connection.isQueued:
                row.append(connection)
                expected.append(connection)
                most = max(most, expected.count)
            case 4, 5:
                connection.row?.remove(connection)
                expected.removeAll { $0 === connection }
            case 6 where connection.row === row:
                // It turned out to belong to another tenant, and is in that queue for a moment.
                connection.row?.remove(connection)
                other.append(connection)
                connection.row?.remove(connection)
                expected.removeAll { $0 === connection }
            default: #expect(row.popFirst() === (expected.isEmpty ? nil : expected.removeFirst()))
            }
            #expect(row.count == expected.count && row.placeCount <= 2 * most + 64 && other.placeCount <= 64)
        }
        while !expected.isEmpty { #expect(row.popFirst() === expected.removeFirst()) }
        #expect(row.popFirst() == nil && row.isEmpty)
        withExtendedLifetime(peer) {}
    }
}

private final class World {
    final class Member {
        let peer: TestPeer
        let connection: Connection
        /// 0: unauthenticated, and sends requests. The others have WebSockets.
        let user: TenantID
        var said: [String] = []
        var received = 0
        /// Number of finished turns when it sent something that is not read yet.
        var readySince: Int?
        /// Number of finished turns when its peer went, or when it was read after that.
        var goneSince: Int?
        var wasGivenUp = false
        init(_ peer: TestPeer, _ connection: Connection, user: TenantID) {
            (self.peer, self.connection, self.user) = (peer, connection, user)
        }
        var isHere: Bool { connection.phase != .dead }
        var undelivered: Int { said.count - received }
        /// Whether it may send something.
        var speaks: Bool { isHere && goneSince == nil && !wasGivenUp }
    }

    private let hand: LoopByHand
    private var random: SeededRandom
    private var members: [Member] = []
    private var throttled: Set<TenantID> = []
    /// By user: the connection with output that has not left, and for how many turns of the user.
    private var answers: [TenantID: (member: Member, turns: Int)] = [:]
    private var turns = 0
    private var loop: EventLoop { hand.loop }

    init(seed: UInt64) throws {
        random = SeededRandom(seed: seed)
        let hour: Duration = .seconds(3_600)
        hand = try LoopByHand { settings in
            (settings.requestTimeout, settings.keepAliveTimeout, settings.idleTimeout) = (hour, hour, hour)
            (settings.closeTimeout, settings.lingerTimeout) = (hour, hour)
        }
        for number: Int in 0..<32 {
            let user: TenantID = TenantID(UInt32(number % 4))
            let (peer, connection): (TestPeer, Connection) = try user == 0 ? hand.join() : hand.open(user: user)
            members.append(Member(peer, connection, user: user))
        }
        hand.turn(members.count)
        #expect(hand.isQuiet)
    }

    private func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
    private func one(_ fits: (Member) -> Bool) -> Member? {
        let all: [Member] = members.filter(fits)
        return all.isEmpty ? nil : all[pick(all.count)]
    }
    private func tenant(_ user: TenantID) -> LoopTenant? { user == 0 ? loop.unauthenticated : loop.tenants[user] }

    // MARK: Events

    func step() throws {
        switch pick(20) {
        case 0...7: if let member: Member = one(\.speaks) { try speak(member) }
        case 8: if pick(3) == 0, let member: Member = one(\.speaks) { go(member) }
        case 9: answer(TenantID(UInt32(1 + pick(3))))
        case 10: throttle(TenantID(UInt32(pick(4))))
        case 11: wake(TenantID(UInt32(pick(4))))
        case 12: if let member: Member = one(\.isHere) { runOut(member) }
        case 13: if pick(4) == 0 { checkSilence() }
        default: turn()
        }
    }

    private func speak(_ member: Member) throws {
        // As much as is read at once: 32 messages, or four requests.
        guard member.undelivered < (member.user == 0 ? 3 : 24) else { return }
        var bytes: [UInt8] = []
        for _: Int in 0..<(member.user == 0 ? 1 : 1 + pick(3)) {
            let word = "/\(member.said.count)"
            member.said.append(word)
            bytes += member.user == 0 ? Array("GET \(word) HTTP/1.1\r\nHost: x\r\n\r\n".utf8) : LoopReports.frame(word)
        }
        try member.peer.send(bytes)
        if member.readySince == nil { member.readySince = turns }
    }

    /// Whether the kernel has ended the peer's side.
    private func isOver(_ connection: Connection) -> Bool {
        var entry = pollfd(fd: connection.id.slot, events: 0, revents: 0)
        return poll(&entry, 1, 0) == 1 && entry.revents & Int16(POLLHUP | POLLERR) != 0
    }

    private func go(_ member: Member) {
        member.goneSince = turns
        pick(2) == 0 ? member.peer.end() : member.peer.reset()
        // A process that another test starts holds all descriptors until it executes its program, also this one.
        let _: Bool = waitFor { isOver(member.connection) ? true : nil }
        if answers[member.user]?.member === member { answers[member.user] = nil }
    }

    private func answer(_ user: TenantID) {
        guard answers[user] == nil, let member: Member = one({ $0.user == user && $0.speaks }) else { return }
        loop.send(member.connection.id, text: Array("news".utf8))
        answers[user] = (member, 0)
    }

    private func throttle(_ user: TenantID) {
        guard let tenant: LoopTenant = tenant(user) else { return }
        hand.throttle(tenant)
        throttled.insert(user)
    }

    private func wake(_ user: TenantID) {
        guard throttled.remove(user) != nil, let tenant: LoopTenant = tenant(user) else { return }
        hand.wake(tenant)
    }

    /// A connection with input that the server has not read stays; one without is given up, which is rare here.
    private func runOut(_ member: Member) {
        guard member.readySince != nil || member.speaks && answers[member.user]?.member !== member && pick(8) == 0
        else {
            return
        }
        loop.deadlines[Int(member.connection.id.slot)] = loop.now - 1
        loop.sweepNow()
        if member.readySince == nil {
            #expect(member.connection.phase != .open && member.connection.phase != .http)
            member.wasGivenUp = true
        } else {
            #expect(member.connection.phase == .open || member.connection.phase == .http)
        }
    }

    /// While all tenants are throttled, waiting connections cost nothing, even those whose peers have gone.
    private func checkSilence() {
        for user in (0..<4).map({ TenantID($0) }) { throttle(user) }
        for _: Int in 0..<3 { turn() }
        for member in members where member.wasGivenUp && member.isHere { return }
        #expect(loop.poller.wait(milliseconds: 0) == 0)
        #expect(loop.due.isEmpty && loop.resuming.isEmpty)
    }

    // MARK: Checks

    private func words(_ member: Member) -> [String] {
        (member.user == 0 ? hand.reported.paths : hand.reported.messages)[member.connection.id].map { all in
            all.filter { $0 != "/ws" }
        } ?? []
    }

    private func turn() {
        let waited: [Member] = members.filter { $0.isHere && $0.readySince != nil && !throttled.contains($0.user) }
        let here: [Member] = members.filter(\.isHere)
        hand.turn()
        turns += 1
        for user in (0..<4).map({ TenantID($0) }) {
            let ofGroup: [Member] = waited.filter { $0.user == user }
            let served: [Member] = members.filter { $0.user == user && words($0).count > $0.received }
            let hadEnds: Bool = here.contains { $0.user == user && !$0.isHere }
            checkServed(served, ofGroup, isTenantThrottled: throttled.contains(user), hadEnds: hadEnds)
        }
        for member in members { checkEnd(member) }
        for user in Array(answers.keys) where !throttled.contains(user) { checkAnswer(user) }
    }

    /// It is written, however many connections wait to be read. One connection a turn is written to; connections that
    /// are given up are written to as well.
    private func checkAnswer(_ user: TenantID) {
        guard let (member, passed): (Member, Int) = answers[user] else { return }
        let isOut: Bool = member.connection.outbox.isEmpty
        #expect(isOut || passed < members.count { $0.user == user && $0.wasGivenUp }, "an answer waits")
        answers[user] = isOut ? nil : (member, passed + 1)
    }

    private func checkServed(_ served: [Member], _ waited: [Member], isTenantThrottled: Bool, hadEnds: Bool) {
        #expect(!isTenantThrottled || served.isEmpty)
        #expect(served.count <= 1)
        // To find that a connection has ended is a turn's work too.
        #expect(waited.isEmpty || !served.isEmpty || hadEnds, "connections wait, and none was served")
        for member in served {
            let since: Int = member.readySince ?? .max
            #expect(waited.allSatisfy { !$0.isHere || ($0.readySince ?? .max) >= since }, "first come, first served")
            #expect(words(member) == member.said)
            (member.received, member.readySince) = (member.said.count, nil)
            if member.goneSince != nil { member.goneSince = turns }
        }
    }

    private func checkEnd(_ member: Member) {
        guard let gone: Int = member.goneSince else {
            #expect(member.isHere || member.wasGivenUp)
            return
        }
        guard !member.isHere else {
            // Unauthenticated connections that were read before their answers failed share a part of the writing, too.
            let patience: Int = member.user == 0 ? 2 + members.count : 2
            #expect(member.user != 0 && member.readySince != nil || turns < gone + patience, "it stays for nothing")
            return
        }
        if member.user != 0 { #expect(member.received == member.said.count, "dropped unread") }
        if member.user != 0, !member.wasGivenUp {
            #expect(hand.reported.ends[member.connection.id] == [.vanished])
        }
        member.readySince = nil
    }

    /// All that was sent is read, in as many turns as connections wait, and nothing is left over.
    func finish() throws {
        for user in (0..<4).map({ TenantID($0) }) { wake(user) }
        for _: Int in 0..<(2 * members.count) { turn() }
        #expect(members.allSatisfy { !$0.isHere || $0.readySince == nil })
        for member in members where member.user != 0 { #expect(words(member) == member.said) }
        for member in members where member.isHere && member.goneSince == nil { member.peer.reset() }
        hand.turns { loop.connectionCount == 0 }
        // The queues reach the connections that have left.
        hand.turn(2)
        let tenants: [LoopTenant] = [loop.unauthenticated] + loop.tenants.values
        #expect(tenants.allSatisfy { $0.row.isEmpty && $0.members == 0 && $0.gathered == 0 && $0.pending == 0 })
        #expect(loop.gatheredTotal == 0 && loop.pendingTotal == 0 && loop.metrics.connections.value == 0)
        #expect(hand.isQuiet)
    }
}
