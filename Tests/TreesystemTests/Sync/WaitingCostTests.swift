import Testing
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("What waiting changes cost others", .nonceWatch)
struct WaitingCostTests {
    private let world: TreeWorld

    init() throws {
        world = try TreeWorld(seed: 8, devices: 1)
        world.isHostile = false
        for path in ["a", "a/b", "c", "d"] { try world.ann.create(path, in: world) }
        try world.settleDown()
        try world.ann.local(world) { machine throws(TreeError) in machine.pausePush() }
    }

    private func statements(_ body: () throws -> Void) rethrows -> Int {
        var count = 0
        world.ann.store.beforeStatement = { count += 1 }
        try body()
        world.ann.store.beforeStatement = nil
        return count
    }

    @Test("a removal has as many statements with hundreds of waiting operations elsewhere as with one")
    func removal() throws {
        try world.ann.create("d/0", in: world)
        let few = try statements { try world.ann.remove("a", in: world) }
        for number in 1..<300 { try world.ann.create("d/\(number)", in: world) }
        try world.ann.create("c/e", in: world)
        let waiting = world.ann.machine.queue.count
        let many = try statements { try world.ann.remove("c", in: world) }
        #expect(many <= few + 5)
        #expect(world.ann.machine.queue.count == waiting)
    }

    @Test("concealed nodes are searched only in a turn that conceals or shows some")
    func concealed() throws {
        try world.ann.remove("a", in: world)
        let id = try world.ann.id("c")
        var time: Int64 = 1
        let change = { [world] in
            time += 1
            try world.ann.local(world) { machine throws(TreeError) in _ = try machine.setBurnTime(of: id, time) }
        }
        try change()
        let quiet = try statements(change)
        world.ann.machine.skeleton.mayBeStranded = true
        #expect(try statements(change) == quiet + 1)
        #expect(try statements(change) == quiet)
    }

    @Test("a change over the limit writes nothing, also when the app catches the error and goes on")
    func limit() throws {
        world.ann.machine.skeleton.operationsMax = 1
        let id = try world.ann.id("c")
        try world.ann.local(world) { machine throws(TreeError) in
            _ = try machine.create(at: WorldDevice.path("new"), content: .none)
            expectLimit { () throws(TreeError) in
                _ = try machine.create(at: WorldDevice.path("more"), content: .none)
            }
            expectLimit { () throws(TreeError) in _ = try machine.move(id, to: WorldDevice.path("moved")) }
            expectLimit { () throws(TreeError) in _ = try machine.setContent(of: id, .none) }
            expectLimit { () throws(TreeError) in _ = try machine.setBurnTime(of: id, 5) }
            expectLimit { () throws(TreeError) in _ = try machine.delete(id) }
        }
        #expect(try world.ann.paths() == ["home/a", "home/a/b", "home/c", "home/d", "home/new"])
        #expect(try world.ann.store.unsent().isEmpty)
        #expect(try world.ann.store.row(id)?.burnTime == nil)
        #expect(world.ann.machine.queue.count == 1)
    }

    private func expectLimit(_ change: () throws(TreeError) -> Void) {
        do throws(TreeError) {
            try change()
            Issue.record("the change was made")
        } catch {
            let code = error.code
            #expect(code == .limit)
        }
    }
}
