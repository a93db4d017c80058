import Testing
import ThicketClient
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// Deposits that are repeated and deposits with attachments, at a real server (S12; decision 0067).
@Suite("Drop boxes: repeated deposits and attachments", .timeLimit(.minutes(10)))
struct DepositTests {
    /// Ann's drop box.
    private struct Box {
        let bench: PeopleBench
        let ann: PeopleBench.Person
        let root: NodeID

        init() async throws {
            bench = try PeopleBench()
            ann = try await bench.person("ann")
            root = try await ann.tree.createNode(at: .home("box")).id
            try await ann.tree.waitUntilSynced(timeout: PeopleBench.patience)
        }

        func add(_ name: String, _ letters: SharePermissions) async throws -> PeopleBench.Person {
            let person = try await bench.person(name)
            let operation = try await ann.tree.sharing.share(root, with: [person.user: letters])
            try await ann.tree.wait(for: operation, timeout: PeopleBench.patience)
            return person
        }

        /// The names in the box, once there are so many.
        func names(count: Int) async throws -> [String] {
            let root = root
            try await ann.tree.wait { tree in try tree.children(of: .node(root)).count >= count }
            return try await ann.tree.children(of: .node(root)).map(\.name.text)
        }
    }

    @Test(
        "S12: a deposit that is repeated with its id makes no second node, also where one is all that a member may make",
        arguments: [SharePermissions.deposit, .oneChild])
    func repeated(letters: SharePermissions) async throws {
        let box = try await Box()
        let dave = try await box.add("dave", letters)
        let id = NodeID.random()
        let session = dave.session
        for text in ["first", "second"] {
            let made = try await session.deposit(
                .text(text), named: NodeName("a.txt"), into: box.ann.user, root: box.root, id: id)
            #expect(made == id)
        }
        let last = try await box.add("erin", .deposit)
        try await last.session.deposit(.text("x"), named: NodeName("last"), into: box.ann.user, root: box.root)
        #expect(try await box.names(count: 2).filter { $0.hasPrefix("a (") }.count == 1)
        #expect(try await box.ann.tree.data(of: id) == Array("first".utf8))
        // Also when the owner has written and moved it.
        try await box.ann.tree.move(id, to: .home("mine"))
        try await box.ann.tree.waitUntilSynced(timeout: PeopleBench.patience)
        #expect(
            try await session.deposit(
                .text("third"), named: NodeName("a.txt"), into: box.ann.user, root: box.root, id: id) == id)
        #expect(try await box.ann.tree.data(of: id) == Array("first".utf8))
        // What the list does not permit is refused as before, with an id too.
        let ending = try await box.ann.tree.sharing.remove(dave.user, from: box.root)
        try await box.ann.tree.wait(for: ending, timeout: PeopleBench.patience)
        let refused = await #expect(throws: TreeError.self) {
            try await session.deposit(
                .text("x"), named: NodeName("a.txt"), into: box.ann.user, root: box.root, id: id)
        }
        #expect(refused?.code == .refused)
        for person in [box.ann, dave, last] { await person.session.close() }
    }

    @Test("S12: a deposit arrives with its attachments, in records and in blobs, and opens for the owner alone")
    func attachments() async throws {
        let box = try await Box()
        let (dave, carol) = (try await box.add("dave", .deposit), try await box.add("carol", .readWrite))
        let large = [UInt8](repeating: 7, count: 300_000)
        let files = [
            (name: try NodeName("photo.jpg"), content: NodeSections(data: .bytes(large))),
            (name: try NodeName("note.txt"), content: .text("small")),
        ]
        let id = try await dave.session.deposit(
            .text("report"), named: NodeName("report"), into: box.ann.user, root: box.root, attachments: files)
        let tree = box.ann.tree
        try await tree.wait { tree in try tree.children(of: .node(id)).count == 2 }
        let found = try await tree.children(of: .node(id))
        #expect(Set(found.map(\.name.text)) == ["photo.jpg", "note.txt"])
        for file in found {
            let wanted = file.name.text == "photo.jpg" ? large : Array("small".utf8)
            #expect(try await tree.data(of: file.id) == wanted)
            #expect(try await tree.sharing.author(of: file.id) == dave.user)
        }
        // Another member does not open them until the owner has written the deposit, and reports nothing.
        let branch = try await carol.session.branch(of: box.ann.user, root: box.root)
        try await branch.waitUntilSynced(timeout: PeopleBench.patience)
        #expect(try await branch.children(of: .node(box.root)).isEmpty)
        #expect(try await branch.quarantined.allSatisfy { $0.kind == .awaitingKeys })
        try await tree.move(id, to: .home("box", "from dave"))
        try await branch.wait { tree in try tree.children(of: .node(id)).count == 2 }
        let note = try #require(try await branch.children(of: .node(id)).first { $0.name.text == "note.txt" })
        #expect(try await branch.data(of: note.id) == Array("small".utf8))
        for each in [tree, branch] { #expect(try await each.quarantined.isEmpty) }
        for person in [box.ann, dave, carol] { await person.session.close() }
    }

    @Test("a deposit with two attachments of one name, or with too many, is refused before anything is sent")
    func badAttachments() async throws {
        let box = try await Box()
        let dave = try await box.add("dave", .deposit)
        let (root, ann, session) = (box.root, box.ann.user, dave.session)
        let one = (name: try NodeName("a"), content: NodeSections.text("x"))
        let many = try (0...DepositLimits.attachmentsMax).map {
            (name: try NodeName("n\($0)"), content: NodeSections.text("x"))
        }
        for (files, code) in [([one, (try NodeName("A"), .text("y"))], TreeError.Code.nameTaken), (many, .limit)] {
            let refused = await #expect(throws: TreeError.self) {
                try await session.deposit(.text("x"), named: NodeName("x"), into: ann, root: root, attachments: files)
            }
            #expect(refused?.code == code)
        }
        // Where one node is all that a member may make, attachments are refused, and so is the deposit.
        let erin = try await box.add("erin", .oneChild)
        let single = await #expect(throws: TreeError.self) {
            try await erin.session.deposit(.text("x"), named: NodeName("x"), into: ann, root: root, attachments: [one])
        }
        #expect(single?.code == .refused && single?.reason == "permission")
        try await dave.session.deposit(.text("x"), named: NodeName("last"), into: ann, root: root)
        #expect(try await box.names(count: 1).count == 1)
        for person in [box.ann, dave, erin] { await person.session.close() }
    }
}
