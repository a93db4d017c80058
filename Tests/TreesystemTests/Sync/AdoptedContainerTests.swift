import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// Q15: containers of one name that several devices make at once, with the policy that makes them one.
@Suite("Adopted containers", .nonceWatch)
struct AdoptedContainerTests {
    /// When the second device receives what the first one has made.
    enum Order: CaseIterable {
        /// Its own creations are in the request in flight.
        case logFirst
        case refusalFirst
        /// Nothing of its own was sent.
        case offline
    }

    @Test("Q15: two devices make one folder at once: one folder is left with all that is below, both contents stay")
    func twoFolders() throws {
        for order in Order.allCases {
            let world = try TreeWorld(seed: 15, devices: 2, policy: .adopt)
            let (ann, other) = (world.devices[0], world.devices[1])
            try world.settleDown()
            if order == .offline {
                _ = try other.local(world) { machine throws(TreeError) in machine.pausePush() }
            }
            for device in world.devices {
                for path in ["many", "many/sub", "many/sub/\(device.number)"] { try device.create(path, in: world) }
                for path in ["many/f", "many/sub/f"] { try device.create(path, "of \(device.number)", in: world) }
            }
            try ann.deliverToServer(world)
            switch order {
            case .logFirst: while try other.deliverToDevice(world) {}
            case .refusalFirst: while try other.deliverToServer(world) {}
            case .offline:
                try ann.alone(world)
                while try other.deliverToDevice(world) {}
                _ = try other.local(world) { machine throws(TreeError) in machine.resumePush() }
            }
            try world.settleDown()
            let wanted = [
                "many", "many/f", "many/f 2", "many/sub", "many/sub/0", "many/sub/1", "many/sub/f", "many/sub/f 2",
            ]
            for device in world.devices {
                let paths = try device.skeleton().values.map { $0.split(separator: " v")[0] }.sorted()
                #expect(paths == wanted.map { "home/\($0)" }, "\(order)")
                #expect(device.machine.queue.isEmpty)
            }
            #expect(world.server.nodes.count == wanted.count)
            #expect(other.adopted.count == 2 && ann.adopted.isEmpty, "\(order)")
        }
    }

    @Test("Q15: a folder with pairs, a file and a folder that meets a file are not given up: they get free names")
    func notGivenUp() throws {
        let world = try TreeWorld(seed: 16, devices: 2, policy: .adopt)
        let (ann, other) = (world.devices[0], world.devices[1])
        try world.settleDown()
        _ = try other.local(world) { machine throws(TreeError) in
            machine.pausePush()
            let pair = NodeMetadata.AppTag("color", [1])
            _ = try machine.create(at: WorldDevice.path("a"), content: .none, tags: [pair].compactMap { $0 })
        }
        try other.create("b", in: world)
        try other.create("c", "content", in: world)
        try ann.create("a", in: world)
        try ann.create("b", "content", in: world)
        try ann.create("c", in: world)
        try ann.alone(world)
        _ = try other.local(world) { machine throws(TreeError) in machine.resumePush() }
        try world.settleDown()
        let paths = Set(try ann.skeleton().values)
        #expect(paths == Set(["a", "a 2", "b", "b 2", "c", "c 2"].map { "home/\($0) v1" }))
        #expect(ann.adopted.isEmpty && other.adopted.isEmpty)
    }

    @Test("Q15: with the policy of new names, the second folder gets a free name, and what is below it stays there")
    func renamed() throws {
        let world = try TreeWorld(seed: 17, devices: 2)
        try world.settleDown()
        for device in world.devices {
            try device.create("many", in: world)
            try device.create("many/\(device.number)", in: world)
        }
        try world.settleDown()
        let paths = try world.devices[0].skeleton().values.sorted()
        #expect(paths == ["home/many 2 v1", "home/many 2/1 v1", "home/many v1", "home/many/0 v1"])
    }

    @Test(
        "Q15: random changes on three devices that adopt, over a hostile network: equal trees, only containers given up",
        arguments: TreeWorld.seeds)
    func randomChanges(seed: UInt64) throws {
        let world = try TreeWorld(seed: 39_500 + seed, devices: 4, policy: .adopt)
        var life = WorldLife()
        for _ in 0..<600 {
            if world.chance(25) { try life.act(world, world.devices[world.roll(3)]) }
            try world.step()
        }
        try life.settle(world)
        try life.check(world)
    }
}

extension WorldDevice {
    /// Delivers everything that this device sends and receives, and nothing of others.
    func alone(_ world: TreeWorld) throws {
        while try deliverToServer(world) || deliverToDevice(world) {}
    }

    /// The containers that this device has given up.
    var adopted: [NodeID] {
        events.compactMap { event in if case .conflict(.adopted(let id, _, _, _)) = event { id } else { nil } }
    }
}
