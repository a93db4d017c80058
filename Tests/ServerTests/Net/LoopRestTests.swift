import Glibc
import Testing
@testable import ThicketNet
@testable import ThicketPlatform
import ThicketProtocol
@testable import ThicketScheduling

@testable import ThicketServer

/// Users of the loop: the tenant that a connection counts for, and the cost of throttling.
@Suite struct LoopRestTests {
    /// Knows the user of a connection after its first message, and answers no message.
    private final class Listening: LoopDelegate {
        let diary: Diary
        private var known: Set<ConnectionID> = []
        init(_ diary: Diary) { self.diary = diary }
        func answer(_ request: HTTPRequest, on: ConnectionID, via listener: Listener) -> HTTPDisposition { .upgrade }
        func opened(_ connection: ConnectionID, _ request: HTTPRequest) { diary.record(opened: connection) }
        func received(_ connection: ConnectionID, text: UnsafeRawBufferPointer) {
            known.insert(connection)
            diary.received.add()
        }
        func closed(_ connection: ConnectionID, _ end: ConnectionEnd) {}
        func tenant(behind connection: ConnectionID) -> TenantID { known.contains(connection) ? 7 : 0 }
    }

    private func stage() throws -> (LoopThread, TestPeer, ConnectionID) {
        let diary = Diary()
        let server: LoopThread = try .init { _ in Listening(diary) }
        let peer = try TestPeer(port: server.port)
        try peer.upgrade()
        try peer.sendFrame(.text, [0x61])
        waitFor { diary.received.value == 1 ? true : nil }
        return (server, peer, waitFor { diary.opened.first })
    }

    @Test("a connection that was identified and only listens since counts for its user when it is sent something")
    func listener() throws {
        let (server, peer, id): (LoopThread, TestPeer, ConnectionID) = try stage()
        #expect(try server.onLoop { $0.lookup(id)?.tenant.id } == 0, "it has sent nothing since")
        try server.handle.post { $0.send(id, text: Array("news".utf8)) }
        #expect(try peer.readAnswer() == .text(Array("news".utf8)))
        #expect(try server.onLoop { $0.lookup(id)?.tenant.id } == 7)
        try server.stop()
    }

    @Test(
        "a user is alone beside its own formerly unauthenticated connections, but not while an unidentified one is open"
    )
    func ownUnauthenticated() throws {
        let (server, peer, id): (LoopThread, TestPeer, ConnectionID) = try stage()
        try server.handle.post { $0.send(id, text: Array("news".utf8)) }
        _ = try peer.readAnswer()
        func isAlone() throws -> Bool {
            try server.onLoop { loop in loop.lookup(id).map { !loop.isWanted(beside: $0.tenant, at: loop.now) } ?? false
            }
        }
        #expect(try isAlone())
        let other = try TestPeer(port: server.port)
        try other.upgrade()
        #expect(try !isAlone())
        other.reset()
        waitFor { (try? isAlone()) == true ? true : nil }
        try server.stop()
    }

    @Test("a throttled user without connections stays throttled, and is forgotten when the throttle is over")
    func comesBack() throws {
        let (server, peer, id): (LoopThread, TestPeer, ConnectionID) = try stage()
        let throttle: Int64 = 3_600_000_000_000
        try server.onLoop { loop in
            guard let connection: Connection = loop.lookup(id) else { return }
            loop.sort(connection)
            connection.tenant.throttledUntil = loop.now + throttle
        }
        peer.reset()
        waitFor { (try? server.onLoop { $0.lookup(id) == nil }) == true ? true : nil }
        try server.onLoop { $0.forgetTenants() }
        #expect(try server.onLoop { $0.tenants[7].map { $0.throttledUntil > 0 && $0.members == 0 } } == true)
        try server.onLoop { loop in
            loop.now += throttle + 1
            loop.forgetTenants()
        }
        #expect(try server.onLoop { $0.tenants.isEmpty && $0.emptied.isEmpty })
        try server.stop()
    }

    @Test("epoll does not watch connections that wait for their user's throttle to end, and each gets what it was sent")
    func restingReceiver() throws {
        let (server, peer, id): (LoopThread, TestPeer, ConnectionID) = try stage()
        let isAside = Box<Bool>()
        try server.handle.post { loop in
            guard let connection: Connection = loop.lookup(id) else { return }
            loop.sort(connection)
            connection.tenant.throttledUntil = loop.now + 20_000_000
            _ = loop.timers.schedule(at: connection.tenant.throttledUntil) { [unowned loop] in
                loop.wake(connection.tenant)
            }
            loop.send(id, text: Array("later".utf8))
            loop.flushDirty()
            isAside.value.withLock { $0 = connection.isTenantThrottled && connection.watchesReads }
        }
        #expect(waitFor { isAside.value.withLock { $0 } })
        #expect(try peer.readAnswer() == .text(Array("later".utf8)))
        #expect(try server.onLoop { $0.lookup(id)?.isTenantThrottled } == false)
        try server.stop()
    }

    @Test("a user is not throttled for time in which other threads had the core")
    func blockedHandler() throws {
        let (stage, tenant): (LoopByHand, LoopTenant) = try shared()
        let (used, isThrottled): (Int64, Bool) = (
            stage.loop.timed(tenant) {
                // The thread computes nothing while this passes.
                _ = poll(nil, 0, 20)
            }, tenant.throttledUntil > stage.loop.now
        )
        #expect(used < 10_000_000 && !isThrottled, "\(used) ns")
    }

    @Test("a user that computes for long is throttled while others want the loop")
    func busyHandler() throws {
        let (stage, tenant): (LoopByHand, LoopTenant) = try shared()
        let used: Int64 = stage.loop.timed(tenant) { Self.compute(20_000_000) }
        #expect(used >= 20_000_000 && tenant.throttledUntil > stage.loop.now)
    }

    @Test("a user with three of four answers is charged three quarters of their time, a user with none nothing")
    func answers() throws {
        let (stage, first): (LoopByHand, LoopTenant) = try shared()
        let (cid, third): (TestPeer, Connection) = try stage.open(user: 3)
        stage.kept.append(cid)
        let second: LoopTenant = try #require(stage.loop.tenants[2])
        // Between the two, a user that has left.
        stage.loop.timed([1, 1, 99, 1, 2]) { Self.compute(20_000_000) }
        let now: Int64 = stage.loop.now
        #expect(first.throttledUntil - now >= 3 * 4 * 4_000_000 && second.throttledUntil - now >= 4 * 4_000_000)
        #expect(first.throttledUntil > second.throttledUntil)
        #expect(third.tenant.throttledUntil <= now)
    }

    @Test("answers for no tenant are charged to none, and unauthenticated connections are charged for theirs")
    func answersOfUnauthenticated() throws {
        let (stage, first): (LoopByHand, LoopTenant) = try shared()
        stage.loop.timed([TenantID]()) { Self.compute(5_000_000) }
        #expect(stage.loop.unauthenticated.throttledUntil <= stage.loop.now && first.throttledUntil <= stage.loop.now)
        stage.loop.timed([0, 0]) { Self.compute(5_000_000) }
        #expect(stage.loop.unauthenticated.throttledUntil > stage.loop.now)
    }

    @Test("a user that waits for an answer wants the loop, however long ago it asked")
    func waitsForAnswer() throws {
        let (stage, first): (LoopByHand, LoopTenant) = try shared()
        let later: Int64 = stage.loop.now + 2 * RecentUsers.memory
        #expect(!stage.loop.isWanted(beside: first, at: later))
        stage.reported.waiting = [2]
        #expect(stage.loop.isWanted(beside: first, at: later))
        stage.reported.waiting = [1]
        #expect(!stage.loop.isWanted(beside: first, at: later), "its own answers are no reason to throttle it")
    }

    private static func compute(_ nanoseconds: Int64) {
        let end: Int64 = SystemClock.threadTime() + nanoseconds
        while SystemClock.threadTime() < end {}
    }

    /// A loop that two users want, and the first user's tenant.
    private func shared() throws -> (LoopByHand, LoopTenant) {
        let stage: LoopByHand = try .init { $0.percentPerTenant = 25 }
        let (ann, first): (TestPeer, Connection) = try stage.open(user: 1)
        let (bob, second): (TestPeer, Connection) = try stage.open(user: 2)
        stage.kept = [ann, bob]
        stage.loop.timed(second.tenant) {}
        stage.turn()
        try #require(first.tenant.throttledUntil <= stage.loop.now)
        return (stage, first.tenant)
    }
}
