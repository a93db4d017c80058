import CThicketNet
import Glibc
import Testing
@testable import ThicketNet
import ThicketProtocol
@testable import ThicketScheduling
import ThicketTestSupport

@testable import ThicketServer

/// Peers of several users that connect, send whole and half messages, turn out to be a user's, are paused, close, break
/// and are closed, in any order, while users are throttled and woken: what was sent is read, once and in order, and no
/// connection is forgotten.
@Suite("Connections that do anything while they wait")
struct LoopRowStormTests {
    @Test(
        "every message of every peer is read in order, no connection stays queued, and the loop sleeps",
        arguments: 0..<18)
    func storm(seed: Int) throws {
        let storm = try Storm(seed: UInt64(seed), part: [1, 30_000, Int64.max / 4][seed % 3])
        for _: Int in 0..<500 { try storm.step() }
        try storm.settle()
        storm.checkReceived()
        storm.checkLoop()
        storm.leave()
    }

    @Test("peers that share time for one connection a turn get all their answers, in order")
    func crowd() throws {
        var settings = NetSettings()
        settings.turnNanosecondsPerTenant = 1
        let server = try LoopThread(settings: settings) { EchoDelegate($0) }
        let peers: [TestPeer] = try (0..<6).map { _ in
            let peer = try TestPeer(port: server.port)
            try peer.upgrade()
            return peer
        }
        let texts: [[UInt8]] = (0..<40).map { Array("\($0) \(String(repeating: "x", count: $0 * 971 % 3_000))".utf8) }
        for text in texts { for peer in peers { try peer.sendFrame(.text, text) } }
        for peer in peers {
            for text in texts { #expect(try peer.readAnswer() == .text(text)) }
        }
        try server.stop()
    }
}

private final class Storm {
    /// What is expected of the messages that it sent.
    enum Fate {
        /// All are read, and the connection stays.
        case stays
        /// All are read, and the connection ends.
        case ends
        /// Those that are read are in order.
        case isCut
    }

    final class Member {
        let number: Int
        let id: ConnectionID
        let isSocket: Bool
        let isOverTCP: Bool
        /// All that it sent is read however it ends. Over TCP its own kernel may not have sent all of it.
        var keepsWord: Bool { isSocket && !isOverTCP }
        var peer: TestPeer?
        var said: [String] = []
        /// The bytes that its last word lacks, and that word.
        var half: (bytes: [UInt8], word: String)?
        var isPaused = false
        var hasWaited = false
        var fate: Fate = .stays
        init(_ number: Int, _ id: ConnectionID, _ peer: TestPeer, isSocket: Bool, isOverTCP: Bool) {
            (self.number, self.id, self.peer, self.isSocket, self.isOverTCP) = (number, id, peer, isSocket, isOverTCP)
        }
    }

    private let hand: LoopByHand
    private var random: SeededRandom
    private var members: [Member] = []
    /// Requests whose answers come later.
    private var awaited: [ConnectionID] = []
    private var loop: EventLoop { hand.loop }

    init(seed: UInt64, part: Int64) throws {
        random = SeededRandom(seed: seed)
        let hour: Duration = .seconds(3_600)
        hand = try LoopByHand(part: part) { settings in
            (settings.requestTimeout, settings.keepAliveTimeout, settings.idleTimeout) = (hour, hour, hour)
            (settings.closeTimeout, settings.lingerTimeout) = (hour, hour)
        }
        hand.reported.onRequest = { [unowned self] request, id in answer(request, id) }
        hand.reported.onMessage = { [unowned self] id in received(id) }
    }

    private func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
    private func one(_ fits: (Member) -> Bool) -> Member? {
        let all: [Member] = members.filter(fits)
        return all.isEmpty ? nil : all[pick(all.count)]
    }

    // MARK: The server's side

    private func answer(_ request: HTTPRequest, _ id: ConnectionID) -> HTTPDisposition {
        if request.path.hasPrefix("/ws") { return .upgrade }
        if request.path.hasPrefix("/mine") { loop.count(id, to: TenantID(UInt32(pick(3)))) }
        guard request.path.hasPrefix("/later") || request.path.hasPrefix("/waits") else {
            return .respond(.text(200, "hello"))
        }
        awaited.append(id)
        return request.path.hasPrefix("/later") ? .later : .waits
    }

    private func received(_ id: ConnectionID) {
        guard let member: Member = members.first(where: { $0.id == id }), member.isSocket, pick(4) == 0 else { return }
        loop.send(id, text: Array("yes".utf8))
    }

    private func respond() {
        guard !awaited.isEmpty else { return }
        loop.respond(awaited.remove(at: pick(awaited.count)), .text(200, "at last"), tenant: TenantID(UInt32(pick(4))))
    }

    private var tenants: [LoopTenant] {
        [loop.unauthenticated] + loop.tenants.values.sorted { $0.id.rawValue < $1.id.rawValue }
    }

    private func serverStep() {
        switch pick(8) {
        case 0: respond()
        case 1: hand.throttle(tenants[pick(tenants.count)])
        case 2, 3: hand.wake(tenants[pick(tenants.count)])
        case 4:
            guard let member: Member = one({ $0.fate == .stays && $0.isSocket }) else { return }
            if hand.reported.users[member.id] == nil { hand.reported.users[member.id] = TenantID(UInt32(1 + pick(3))) }
        case 5:
            guard let member: Member = one({ $0.fate == .stays && $0.isSocket }) else { return }
            loop.pauseReading(member.id)
            member.isPaused = loop.lookup(member.id)?.isPaused == true
        case 6:
            guard let member: Member = one({ $0.isPaused }) else { return }
            resume(member)
        default:
            guard let member: Member = one({ $0.fate == .stays }) else { return }
            guard pick(6) == 0 else { return loop.send(member.id, text: Array("news".utf8)) }
            loop.close(member.id)
            member.fate = .isCut
        }
    }

    private func resume(_ member: Member) {
        member.isPaused = false
        loop.resumeReading(member.id)
    }

    // MARK: The peers' side

    func step() throws {
        switch pick(16) {
        case 0, 1: if members.count(where: { $0.fate == .stays }) < 24 { try join() }
        case 2...6: if let member: Member = one({ $0.fate == .stays }) { try speak(member) }
        case 7: if let member: Member = one({ $0.fate == .stays }) { go(member) }
        case 8...11: serverStep()
        default: hand.turn(1 + pick(2))
        }
    }

    private func join() throws {
        let isOverTCP: Bool = pick(2) == 0
        let (peer, connection): (TestPeer, Connection) = try hand.join(overTCP: isOverTCP)
        let member = Member(
            members.count, connection.id, peer, isSocket: pick(3) > 0, isOverTCP: isOverTCP)
        members.append(member)
        if member.isSocket { try say(member, "/ws", LoopReports.upgrade("/ws"), mayBreak: true) }
    }

    private func speak(_ member: Member) throws {
        if member.half != nil && pick(2) == 0 { return try finish(member) }
        let count: Int = member.isSocket ? 1 + pick(pick(4) == 0 ? 100 : 4) : 1 + pick(6)
        var bytes: [UInt8] = []
        for index: Int in 0..<count where member.half == nil || index == 0 {
            try finish(member)
            let (word, utterance): (String, [UInt8]) = next(member)
            if index < count - 1 {
                member.said.append(word)
                bytes += utterance
            } else {
                try member.peer?.send(bytes)
                try say(member, word, utterance, mayBreak: pick(3) == 0)
            }
        }
    }

    private func next(_ member: Member) -> (String, [UInt8]) {
        let number = "\(member.number)-\(member.said.count)"
        if member.isSocket { return (number, LoopReports.frame(number)) }
        let kind: String = ["/hello", "/hello", "/mine", "/later", "/waits"][pick(5)]
        if kind == "/waits" { member.hasWaited = true }
        let path = "\(kind)/\(number)"
        return (path, Array("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
    }

    private func say(_ member: Member, _ word: String, _ bytes: [UInt8], mayBreak: Bool) throws {
        let count: Int = mayBreak ? 1 + pick(bytes.count) : bytes.count
        try member.peer?.send(Array(bytes[..<count]))
        if count < bytes.count { member.half = (Array(bytes[count...]), word) } else { member.said.append(word) }
    }

    private func finish(_ member: Member) throws {
        guard let half = member.half else { return }
        member.half = nil
        try member.peer?.send(half.bytes)
        member.said.append(half.word)
    }

    private func go(_ member: Member) {
        guard let peer: TestPeer = member.peer, pick(3) == 0 else { return }
        guard pick(3) > 0 else {
            member.fate = member.hasWaited ? .isCut : .ends
            _ = thicket_shut_write(peer.socket)
            return
        }
        member.fate = member.keepsWord ? .ends : .isCut
        if pick(2) == 0 { peer.reset() }
        member.peer = nil
    }

    // MARK: The end

    /// Turns until all is read and done; each turn handles something.
    func settle() throws {
        for member in members where member.fate == .stays { try finish(member) }
        for member in members where member.isPaused { resume(member) }
        var turns = 0
        let turnsMax: Int = 50 + 4 * members.count + members.reduce(0) { $0 + $1.said.count }
        // The kernel may still have some of what was sent over TCP.
        waitFor { () -> Bool? in
            while turns <= turnsMax, serve() {
                hand.turn()
                turns += 1
            }
            return turns > turnsMax || members.allSatisfy(isDone) ? true : nil
        }
        #expect(turns <= turnsMax, "the loop turns without progress")
    }

    /// Wakes all tenants and answers every request.
    /// - Returns: whether the loop has something to do.
    private func serve() -> Bool {
        for tenant in tenants { hand.wake(tenant) }
        while !awaited.isEmpty { respond() }
        return !hand.isQuiet
    }

    private func words(_ member: Member) -> [String] {
        let paths: [String] = hand.reported.paths[member.id] ?? []
        return paths + (hand.reported.messages[member.id] ?? [])
    }

    private func isDone(_ member: Member) -> Bool {
        switch member.fate {
        case .stays: words(member).count == member.said.count
        case .ends: words(member).count == member.said.count && loop.lookup(member.id) == nil
        case .isCut: true
        }
    }

    func checkReceived() {
        for member in members {
            let (said, received): ([String], [String]) = (member.said, words(member))
            if member.fate == .isCut {
                #expect(said.starts(with: received), "\(member.number)")
            } else {
                #expect(said == received, "\(member.number)")
                #expect((loop.lookup(member.id) != nil) == (member.fate == .stays), "\(member.number)")
            }
            let hasEnded: Bool = loop.lookup(member.id)?.phase != .open
            let ends: Int = hand.reported.ends[member.id]?.count ?? 0
            if member.isSocket { #expect(ends == (hasEnded && !received.isEmpty ? 1 : 0), "\(member.number)") }
        }
    }

    func checkLoop() {
        let here: [Connection] = hand.connections
        #expect(here.allSatisfy { !$0.isQueued && !$0.isTenantThrottled && !$0.isDirty })
        #expect(here.allSatisfy { $0.backlog.isEmpty && $0.outbox.isEmpty })
        #expect(tenants.allSatisfy { $0.row.isEmpty && $0.throttled.isEmpty && !$0.isDue })
        #expect(loop.connectionCount == here.count)
        #expect(loop.pendingTotal == 0 && tenants.allSatisfy { $0.pending == 0 })
        #expect(loop.gatheredTotal == here.reduce(0) { $0 + $1.gathered })
        for tenant in tenants {
            #expect(tenant.members == here.count { $0.tenant === tenant })
            #expect(tenant.gathered == here.reduce(0) { $0 + ($1.tenant === tenant ? $1.gathered : 0) })
        }
    }

    /// All peers disconnect.
    func leave() {
        for member in members where member.fate != .ends { member.peer?.reset() }
        hand.turns { loop.connectionCount == 0 }
        #expect(hand.connections.isEmpty && tenants.allSatisfy { $0.members == 0 })
        #expect(loop.gatheredTotal == 0 && loop.pendingTotal == 0 && loop.metrics.connections.value == 0)
    }
}
