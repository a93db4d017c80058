import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// A change hangs on the newest keys of all nodes above it, and renews those that hang on an earlier key. Where the
/// server refuses to renew such a node, the change is refused, and not sent again and again.
@Suite("Shared branches: refused renewals above a change", .nonceWatch)
struct RefusedRenewalTests {
    /// Two epochs have begun since `album/folder` was written, and the list lets `user-3` read only, which it does not
    /// know yet.
    private static func outdated(_ seed: UInt64) throws -> (shared: SharedWorld, member: WorldDevice) {
        let shared = try SharedWorld(seed, ["user-2": "rw", "user-3": "rw"])
        let member = try shared.join("user-3")
        try shared.change(["user-2": ""])
        try shared.world.settleDown()
        return (shared, member)
    }

    /// The member changes two files while it is away, and loses the letter `w` meanwhile.
    private static func refused(_ seed: UInt64) throws -> (shared: SharedWorld, member: WorldDevice) {
        let (shared, member) = try outdated(seed)
        try member.create("album/folder/new", "three", in: shared.world)
        try member.write("album/folder/leaf", "four", in: shared.world)
        try shared.change(["user-3": "r"])
        try shared.world.settleDownBut(member)
        return (shared, member)
    }

    private func failures(of device: WorldDevice) -> Int {
        device.events.count { if case .operationFailed = $0 { true } else { false } }
    }

    @Test("a change below a node that its author may not renew is refused, with the reason, and waits for the user")
    func refusedOnce() throws {
        let (shared, member) = try Self.refused(61)
        let before = shared.world.server.refusals.count
        try shared.world.settleDown()
        #expect(member.holds == [.failed("permission"), .failed("permission")])
        #expect(member.machine.queue.count == 2, "no renewal of a node above stays in the queue: \(member.summary)")
        #expect(failures(of: member) == 2)
        // The first request was made before the device knew the list.
        #expect(shared.world.server.refusals.dropFirst(before) == [.epoch, .permission])
        #expect(try shared.owner.content("album/folder/leaf") == "two")
        // Nothing more is sent while nothing has changed.
        let received = shared.world.server.received
        for _ in 0..<20 { try shared.world.pass(60_000) }
        try shared.world.settleDown()
        #expect(shared.world.server.received == received && member.machine.queue.count == 2)
    }

    @Test("a change that was refused so is made when the list permits it and the user sends it again")
    func sentAgain() throws {
        let (shared, member) = try Self.refused(62)
        try shared.world.settleDown()
        // Sent again without the right to it, it is refused again, and asks the user again.
        try member.retryAll(shared.world)
        try shared.world.settleDown()
        #expect(member.holds == [.failed("permission"), .failed("permission")])
        try shared.change(["user-3": "rw"])
        try shared.world.settleDown()
        try member.retryAll(shared.world)
        try shared.world.settleDown()
        #expect(member.machine.queue.isEmpty, "\(member.summary)")
        #expect(try shared.owner.content("album/folder/leaf") == "four")
        #expect(try shared.owner.content("album/folder/new") == "three")
    }

    @Test("a member that was removed while changes wait, and is back with fewer letters, sends nothing again and again")
    func comesBack() throws {
        let (shared, member) = try Self.outdated(63)
        try member.write("album/folder/leaf", "four", in: shared.world)
        for letters in ["", "r"] {
            try shared.change(["user-3": letters])
            try shared.world.settleDownBut(member)
        }
        try member.run(shared.world)
        member.goOnline(shared.world)
        try shared.world.settleDown()
        #expect(member.holds == [.failed("permission")], "\(member.summary)")
        try member.discardAll(shared.world)
        try shared.world.settleDown()
        #expect(member.machine.queue.isEmpty)
        #expect(try member.content("album/folder/leaf") == "two")
    }

    @Test("while a refused renewal pauses, the change below it is not sent; both are made when the pause is over")
    func paused() throws {
        let (shared, member) = try Self.outdated(64)
        try member.write("album/folder/leaf", "four", in: shared.world)
        let sent = try #require(member.machine.push.inFlight)
        let renewal = try #require(sent.operations.first.flatMap { member.machine.queue[$0] })
        #expect(try sent.operations.count == 2 && renewal.node == member.id("album/folder"))
        member.loseRequests()
        let refusal = BatchRefusal(RefusalReason.epoch.code, .epoch, operation: 0)
        try member.local(shared.world) { machine throws(TreeError) in
            try machine.batchAnswered(sent.id, .answer(.refused(refusal)))
        }
        #expect(member.machine.push.inFlight == nil && member.machine.queue.count == 2, "sent again at once")
        try shared.world.pass(2_000)
        #expect(member.machine.push.inFlight?.operations.count == 2)
        try shared.world.settleDown()
        #expect(member.machine.queue.isEmpty && member.holds.isEmpty)
        #expect(try shared.owner.content("album/folder/leaf") == "four")
    }
}
