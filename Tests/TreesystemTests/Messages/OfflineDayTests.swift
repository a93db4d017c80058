import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// Scenario 2: two accounts without network for a day, which write 50 messages each, in an order.
@Suite("Two accounts, offline for a day", .nonceWatch)
struct OfflineDayTests {
    private static let count = 50
    private static let dayMilliseconds: Int64 = 86_400_000

    @Test(
        "50 messages each way, written while both were offline, arrive once and in order over a bad network",
        arguments: TreeWorld.seeds.prefix(3).map { $0 })
    func day(seed: UInt64) throws {
        let world = try TreeWorld(seed: seed, owners: ["user-1", "user-2"])
        try world.settleDown()
        var written = [[NodeID]](repeating: [], count: 2)
        var last = [[OperationID]](repeating: [], count: 2)
        for number in 0..<Self.count {
            for (index, device) in world.devices.enumerated() {
                let id = try device.create("m\(number)", "text \(number) of \(device.owner)", in: world)
                let other = try UserID(world.devices[1 - index].owner)
                var queueing = TreeMachine.Queueing()
                queueing.after = Set(last[index])
                let ordered = queueing
                last[index] = try device.local(world) { machine throws(TreeError) in
                    try Outgoing.copy(id, to: [other], queueing: ordered, &machine.skeleton)
                }
                written[index].append(id)
            }
            try world.pass(Self.dayMilliseconds / Int64(Self.count))
        }
        #expect(world.devices.allSatisfy { (try? $0.inbox())?.isEmpty == true }, "nothing has arrived yet")
        // Connections that come and go, answers that are lost, and ends of the programs.
        world.isHostile = true
        for _ in 0..<1_500 { try world.step() }
        try world.settleDown()
        for (index, device) in world.devices.enumerated() {
            let inbox = try device.inbox()
            let other = world.devices[1 - index].owner
            #expect(inbox.map(\.id) == written[1 - index], "seed \(seed): each once, by the author's counter in order")
            #expect(inbox.compactMap { $0.origin?.counter } == (1...Self.count).map { UInt64($0) }, "seed \(seed)")
            #expect(inbox.allSatisfy { $0.sender?.text == other && $0.origin?.isForked == false }, "seed \(seed)")
            for (number, node) in inbox.enumerated() {
                #expect(try device.text(node.id) == "text \(number) of \(other)", "seed \(seed)")
            }
            #expect(device.deliveries.count == Self.count, "seed \(seed): each is confirmed once")
            #expect(device.faults.allSatisfy { $0 == .messagesMissing }, "seed \(seed): \(device.faults)")
        }
    }
}
