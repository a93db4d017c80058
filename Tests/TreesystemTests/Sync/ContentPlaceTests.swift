import Testing
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

@Suite("Contents that are prepared at a time", .nonceWatch)
struct ContentPlaceTests {
    private let world: TreeWorld

    init() throws {
        world = try TreeWorld(seed: 8, devices: 1)
        world.isHostile = false
        try world.ann.create("a", in: world)
        try world.settleDown()
    }

    private func create(_ name: String, _ content: LocalContent) throws -> [TreeAction] {
        try world.ann.machine.turn(world.time) { machine throws(TreeError) in
            _ = try machine.create(at: WorldDevice.path(name), content: content)
        }.actions
    }

    @Test("contents that cannot be uploaded wait without a place, and are tried again after a minute")
    func failing() throws {
        for number in 0..<6 { _ = try create("\(number)", .source(path: "/\(number)")) }
        let ids = world.ann.machine.queue.ids
        #expect(world.ann.machine.queue.asked == Set(ids.prefix(PushState.contentsMax)))
        for id in ids.prefix(4) {
            try world.ann.local(world) { machine throws(TreeError) in try machine.provided(id, .spooled([])) }
        }
        #expect(world.ann.machine.queue.asked == Set(ids.prefix(4)))
        try world.ann.local(world) { machine throws(TreeError) in
            for id in ids.prefix(4) { machine.uploadFailed(id) }
        }
        #expect(world.ann.machine.queue.asked == Set(ids.suffix(2)))
        let retry = world.now + PushState.contentPause
        #expect(world.ann.machine.queue.pauses.values.allSatisfy { $0 == retry })
        let time = TreeTime(monotonic: retry, unix: 0)
        let actions = try world.ann.machine.turn(time) { machine throws(TreeError) in machine.tick() }.actions
        #expect(actions.filter { if case .upload = $0 { true } else { false } } == ids.prefix(2).map { .upload($0) })
    }

    @Test("the app's work on a content ends when the operation is discarded, removed or gets another content")
    func forgotten() throws {
        for end in 0..<3 {
            #expect(try create("new", .ask).contains { if case .ask = $0 { true } else { false } })
            let (id, node) = (try #require(world.ann.machine.queue.ids.last), try world.ann.id("new"))
            let actions = try world.ann.machine.turn(world.time) { machine throws(TreeError) in
                switch end {
                case 0: try machine.discard(id)
                case 1: _ = try machine.delete(node)
                default: _ = try machine.setContent(of: node, .held(NodeContent(data: [1])))
                }
            }.actions
            #expect(actions.contains(.forget(id)))
        }
    }
}
