import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// Changes by paths below `home`, as tests write them.
extension WorldDevice {
    static func path(_ text: String) -> TreePath {
        TreePath(.home, names: text.split(separator: "/").map { NodeName.test(String($0)) })
    }

    func id(_ path: String) throws -> NodeID {
        guard let row = try machine.row(at: Self.path(path)) else { throw TreeError(.notFound, path) }
        return row.id
    }

    /// - Parameter content: nil: without content.
    @discardableResult
    func create(_ path: String, _ content: String? = nil, in world: TreeWorld) throws -> NodeID {
        try local(world) { machine throws(TreeError) in
            try machine.create(
                at: Self.path(path), content: content.map { .held(NodeContent(data: Array($0.utf8))) } ?? .none
            ).id
        }
    }

    func move(_ path: String, to target: String, in world: TreeWorld) throws {
        let id = try id(path)
        _ = try local(world) { machine throws(TreeError) in try machine.move(id, to: Self.path(target)) }
    }

    func write(_ path: String, _ content: String, in world: TreeWorld) throws {
        let id = try id(path)
        _ = try local(world) { machine throws(TreeError) in
            try machine.setContent(of: id, .held(NodeContent(data: Array(content.utf8))))
        }
    }

    func remove(_ path: String, in world: TreeWorld) throws {
        let id = try id(path)
        _ = try local(world) { machine throws(TreeError) in try machine.delete(id) }
    }

    /// The states of all waiting operations that the app must decide.
    var holds: [PendingOperation.State] {
        machine.queue.ids.compactMap { machine.queue[$0]?.state }.filter { $0 != .waiting && $0 != .sending }
    }

    func retryAll(_ world: TreeWorld) throws {
        for id in machine.queue.ids {
            try local(world) { machine throws(TreeError) in try machine.retry(id) }
        }
    }

    func discardAll(_ world: TreeWorld) throws {
        for id in machine.queue.ids {
            try local(world) { machine throws(TreeError) in try machine.discard(id) }
        }
    }

    /// Opens everything that is not known yet.
    func openAll(_ world: TreeWorld) throws {
        while true {
            let unlisted = try skeleton().keys.filter { try !machine.isListed(.node($0)) }.sorted()
            if unlisted.isEmpty { return }
            try local(world) { machine throws(TreeError) in try machine.load(unlisted.map { .node($0) }) }
            try world.settleDown()
        }
    }

    /// One message to the server, and what it answers.
    func exchangeOnce(_ world: TreeWorld) throws {
        try deliverToServer(world)
        try deliverToDevice(world)
    }

    /// Exchanges everything with the server, while other devices do nothing.
    func run(_ world: TreeWorld) throws {
        var isQuiet = false
        while !isQuiet {
            isQuiet = true
            while try deliverToServer(world) { isQuiet = false }
            while try deliverToDevice(world) { isQuiet = false }
        }
    }

    /// The paths of all shown nodes, in order.
    func paths() throws -> [String] {
        try skeleton().values.map { $0.split(separator: " ").dropLast().joined(separator: " ") }.sorted()
    }

    func content(_ path: String) throws -> String? {
        let id = try id(path)
        guard let row = try store.row(id), let opened = try machine.open(row),
            let content = try opened.inlineContent()
        else { return nil }
        return String(decoding: content.data, as: UTF8.self)
    }

    /// A page with what a hostile server has in place of records.
    func harmed(_ page: ChildrenPage) throws -> ChildrenPage {
        if listedObjects.isEmpty { return page }
        var page = page
        for list in page.lists.indices {
            for node in page.lists[list].nodes.indices {
                guard let object = listedObjects[page.lists[list].nodes[node].id] else { continue }
                page.lists[list].nodes[node].object = object
            }
        }
        return try ChildrenPage(parsing: page.object.serialized())
    }
}
