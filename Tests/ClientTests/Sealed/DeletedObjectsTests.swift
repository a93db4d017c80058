import Testing
import ThicketClient
import ThicketNonces
import ThicketProtocol
import ThicketSealed

/// The cost of objects that were deleted long ago.
@Suite("Sealed objects that were deleted", .nonceWatch)
struct DeletedObjectsTests {
    @Test("neither an index scan nor a program start reads the deleted objects into memory")
    func scan() throws {
        var world: Simulation = try .sealed(1, seed: 21)
        let names = try (0..<40).map { try EntityKey("gone\($0)") }
        for name in names { try world.set(0, name, to: ["t": "x"]) }
        try world.set(0, try EntityKey("stays"), to: ["t": "here"])
        world.expectSettled()
        for name in names { try world.remove(0, name) }
        world.expectSettled()
        #expect(world.clients[0].store.edited(world.bucket).count >= names.count, "they are remembered")
        world.forgetPositions()
        try world.crash(0)
        world.goOnline(0)
        world.expectSettled()
        #expect(world.clients[0].machine.status == .upToDate)
        #expect(world.clients[0].machine.cachedObjects < 10)
        #expect(try world.object(0, try EntityKey("stays")) == ["t": "here"])
        // A deleted object is created again: the state remembered of it still counts.
        try world.set(0, names[0], to: ["t": "again"])
        world.expectSettled()
        #expect(try world.truth()["gone0"]?.object == ["t": "again"] && world.alarms.isEmpty)
    }
}
