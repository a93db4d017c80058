import Testing
@testable import ThicketNet
import ThicketProtocol
import ThicketTreeShape

@testable import ThicketServer

/// Members of a shared branch at the hub: what a channel and a request of theirs is answered, from text to text.
@Suite("Members of shared branches")
struct SharingHubTests {
    private static let (ann, bob) = ("ann@example.com", "bob@example.com")
    private let people: TestDirectory
    private let harness: HubHarness

    init() throws { (people, harness) = try Self.made() }

    private static func made(_ limits: ServerLimits = .init()) throws -> (TestDirectory, HubHarness) {
        let people = try TestDirectory(ann, bob, "cleo")
        let harness = try HubHarness(limits: limits)
        harness.hub.keyDirectory = people
        try harness.grant("cleo-token", user: "cleo")
        return (people, harness)
    }

    private init(_ limits: ServerLimits) throws { (people, harness) = try Self.made(limits) }

    // MARK: Requests

    private func ask(_ line: String, token: String = "ann-token", body: [UInt8] = []) throws -> HTTPResponse {
        var text = "\(line) HTTP/1.1\r\nhost: x\r\nX-Simperium-Token: \(token)\r\n"
        if !body.isEmpty { text += "content-length: \(body.count)\r\n" }
        var reader = HTTPRequestReader(limits: HTTPLimits())
        let read = try (Array((text + "\r\n").utf8) + body).withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
            var input = bytes
            return try reader.next(&input)
        }
        let handler = RESTHandler(cors: CORSPolicy("none"), documentBytesMax: 1 << 20, makeChangeID: { "made" })
        switch handler.read(try #require(read)) {
        case .answer(let response): return response
        case .call(let call):
            let id = ConnectionID(slot: 1_000, serial: 1)
            harness.call(id, call)
            return try #require(harness.answers(id).first)
        }
    }

    @discardableResult
    private func make(
        _ id: Int, _ operations: TreeOperation..., token: String = "ann-token", path: String = "tree/\(ann)"
    ) throws -> TreeBatchAnswer {
        let batch = TreeBatch(id: BatchID(UInt128(id)), operations)
        let body = JSONValue.object(batch.object).serialized()
        return try TreeBatchAnswer(
            parsing: ask("POST /1/app/\(path)/batch?clientid=web", token: token, body: body).body)
    }

    private func branch(_ root: Int = 10, of owner: String = ann) throws -> String {
        BranchName(of: try UserID(owner), root: NodeText.id(root)).text
    }

    /// A record in ann's tree, signed for it.
    private func put(
        _ number: Int, by author: String = ann, below parent: Int? = nil, sv: Version = 0, list: ShareList? = nil,
        epoch: UInt32 = 0
    ) throws -> TreeOperation {
        try people.put(number, by: author, below: parent, sv: sv, list: list, epoch: epoch)
    }

    /// Ann shares node 10, with 11 below it, with bob; 1 and 2 are private.
    @discardableResult
    private func share(_ members: [String: String] = [bob: "rw"]) throws -> ShareList {
        let list = try people.list(members, on: 10)
        let answer = try make(
            1, TestShard.put(1, "n1"), TestShard.put(2, below: .child(1), "n2"), TestShard.put(10, "n10"),
            put(10, sv: 1, list: list), put(11, below: 10))
        guard case .made = answer else { throw TestFailure(description: "\(answer)") }
        return list
    }

    private struct TestFailure: Error { let description: String }

    // MARK: Channels

    private func open(_ name: String, token: String = "bob-token", mode: String = "tree") -> Peer {
        let socket = harness.connect()
        socket.send(
            "0:init:{\"clientid\":\"phone\",\"api\":\"1.1\",\"token\":\"\(token)\",\"app_id\":\"app\","
                + "\"name\":\"\(name)\",\"mode\":\"\(mode)\"}")
        return socket
    }

    /// A member's channel that follows the log from a position.
    private func follow(_ position: GlobalID, token: String = "bob-token") throws -> Peer {
        let socket = try open(branch(), token: token)
        let opened = socket.take()
        #expect(opened.first.map { $0.hasPrefix("0:auth:") && !$0.hasPrefix("0:auth:{") } == true, "\(opened)")
        socket.send("0:cv:\(try harness.cv(position, bucket: "tree"))")
        return socket
    }

    private func changes(_ messages: [String]) throws -> [JSONValue] {
        try messages.filter { $0.hasPrefix("0:c:") }
            .flatMap { try JSONValue(parsing: Array($0.utf8.dropFirst(4))).arrayValue ?? [] }
    }

    private func ids(_ messages: [String]) throws -> [String] {
        try changes(messages).map { change in
            let number = change["id"]?.stringValue.flatMap { NodeID(text: $0) }.map { Int($0.value) } ?? 0
            return "\(number)\(change["o"]?.stringValue ?? "")"
        }
    }

    @Test("a member gets the changes of its branch, live, its own included, and none of the rest of the tree")
    func live() throws {
        try share()
        let socket = try follow(5)
        #expect(try ids(socket.take()) == [])
        try make(2, put(12, below: 11), TestShard.put(1, "n1", sv: 1), put(13, below: 10))
        #expect(try ids(socket.take()) == ["12M", "13M"])
        let own = try make(3, put(14, by: Self.bob, below: 10), token: "bob-token", path: branch())
        #expect(own == .made(position: try ChangeVersion(harness.cv(9, bucket: "tree")), results: [.version(1)]))
        let received = try changes(socket.take())
        #expect(received.map { $0["v"]?["_from"]?["v"]?.stringValue } == [Self.bob])
        let mark = try BatchMark(try #require(received.first?["tx"]))
        #expect(mark.batch == BatchID(3) && mark.count == 1, "its own mark")
        try make(4, TestShard.put(2, below: .child(1), "n2", sv: 1))
        #expect(socket.take() == [])
    }

    @Test(
        "a node that leaves the branch is removed for members; one that comes into it is whole",
        arguments: [true, false])
    func moves(fromMemory: Bool) throws {
        var limits = ServerLimits()
        if !fromMemory { limits.tailChangesMax = 0 }
        let other = try SharingHubTests(limits)
        try other.share()
        let socket = try other.follow(5)
        _ = socket.take()
        try other.make(2, other.put(1, below: 11, sv: 1), TestShard.put(11, "n11", sv: 1))
        let late = try other.follow(5)
        for messages in [socket.take(), late.take()] {
            // Node 11 goes with what is below it.
            #expect(try other.ids(messages) == ["1M", "11-"])
            let entered = try #require(try other.changes(messages).first)
            #expect(entered["sv"] == nil && entered["ev"]?.intValue == 2)
            #expect(
                entered["v"]?.objectValue?.contains("m") == true && entered["v"]?.objectValue?.contains("w") == true)
        }
    }

    @Test("A12: with the change that removes it, a member is answered 401, and gets nothing more")
    func removal() throws {
        let before = try share([Self.bob: "rw", "cleo": "r"])
        let (bob, cleo) = (try follow(5), try follow(5, token: "cleo-token"))
        _ = (bob.take(), cleo.take())
        let next = try people.list(["cleo": "r"], on: 10, after: before, epoch: 1)
        try make(2, put(12, below: 10), put(10, sv: 2, list: next), put(13, below: 10, epoch: 1))
        let answer = bob.take()
        #expect(answer.count == 1 && answer[0].hasPrefix("0:auth:{") && answer[0].contains("401"), "\(answer)")
        #expect(try ids(cleo.take()) == ["12M", "10M", "13M"])
        try make(3, put(14, below: 10, epoch: 1))
        #expect(bob.take() == [] && harness.closed.isEmpty)
        bob.send("0:cv:\(try harness.cv(5, bucket: "tree"))")
        #expect(bob.take() == ["0:?"])
        // Later requests, too.
        #expect(try open(branch()).take() == answer)
        #expect(try ask("GET /1/app/\(branch())/children?parent=home", token: "bob-token").status == 401)
        #expect(
            try make(4, put(15, by: Self.bob, below: 10), token: "bob-token", path: branch()).isRefused(.permission))
        // The end of sharing.
        try make(5, TestShard.put(10, "n10", sv: 3))
        #expect(cleo.take().last?.hasPrefix("0:auth:{") == true)
    }

    @Test(
        "a member that was removed and is back reads its branch from the start: a position before that is cv:?",
        arguments: [true, false])
    func removedAndBack(fromMemory: Bool) throws {
        var limits = ServerLimits()
        if !fromMemory { limits.tailChangesMax = 0 }
        let other = try SharingHubTests(limits)
        let before = try other.share([Self.bob: "rw", "cleo": "r"])
        let removed = try other.people.list(["cleo": "r"], on: 10, after: before, epoch: 1)
        try other.make(2, other.put(10, sv: 2, list: removed), other.put(12, below: 10, epoch: 1))
        let back = try other.people.list([Self.bob: "rw", "cleo": "r"], on: 10, after: removed, epoch: 1)
        try other.make(3, other.put(10, sv: 3, list: back), other.put(13, below: 10, epoch: 1))
        // The root of that time has no key for bob.
        let bob = try other.follow(5)
        #expect(bob.take() == ["0:cv:?"])
        bob.send("0:cv:\(try other.harness.cv(8, bucket: "tree"))")
        #expect(try other.ids(bob.take()) == ["13M"])
        #expect(try other.ids(other.follow(5, token: "cleo-token").take()) == ["10M", "12M", "10M", "13M"])
    }

    @Test("A12: a member that is removed while its rights are looked up, or while it waits for a token, stays out")
    func races() throws {
        let before = try share()
        let next = try people.list([:], on: 10, after: before, epoch: 1)
        harness.holdsReads = true
        let socket = try open(branch())
        // The token, and the bucket.
        harness.answerRead()
        harness.answerRead()
        let answers = harness.reads.count
        #expect(answers == 1)
        // A reader has looked before the list changed, and its answer comes after.
        let answer = try #require(harness.look())
        harness.holdsReads = false
        try make(2, put(10, sv: 2, list: next))
        answer()
        #expect(socket.take().filter { $0.hasPrefix("0:auth:") }.allSatisfy { $0.contains("401") })
        try make(3, put(12, below: 10))
        #expect(try ids(socket.take()) == [])
    }

    @Test("A9: a missing tree, root, list or letter is one answer, on a channel and to a request")
    func oneAnswer() throws {
        try share([Self.bob: "W"])
        let names = try [
            branch(77), branch(1), branch(11), branch(10, of: "dora"), branch(10, of: Self.bob), branch(),
        ]
        var (frames, bodies) = (Set<[String]>(), Set<[UInt8]>())
        for name in names {
            frames.insert(open(name).take())
            frames.insert(open(name, mode: "open").take())
            for path in ["children?parent=home", "usage"] {
                let response = try ask("GET /1/app/\(name)/\(path)", token: "bob-token")
                #expect(response.status == 401)
                bodies.insert(response.body)
            }
        }
        frames.insert(try open(branch(), token: "ann-token").take())
        #expect(frames.count == 1 && frames.first?.count == 1 && frames.first?[0].contains("401") == true, "\(frames)")
        #expect(frames.first?[0].contains("\"no-read\"") == true, "devices read the text: \(frames)")
        #expect(bodies.count == 1)
        #expect(try ask("GET /1/app/\(branch())/usage", token: "ann-token").body == bodies.first)
        // No tree was made by any of them.
        #expect(try ask("GET /1/app/tree/\(Self.bob)/usage", token: "bob-token").status == 404)
        // A depositor writes, and reads nothing.
        #expect(
            try make(9, put(30, by: Self.bob, below: 10), token: "bob-token", path: branch()).isRefused(.permission))
        for path in ["index", "i/\(NodeText.key(11))", "changes", "inbox"] {
            #expect(try ask("GET /1/app/\(branch())/\(path)", token: "bob-token").status == 404, "\(path)")
        }
    }

    @Test("a member's channel has the position and nodes of the branch, no index, and refuses single changes")
    func commands() throws {
        try share()
        let socket = try follow(5)
        _ = socket.take()
        socket.send("0:i::::1")
        let probe = socket.take()
        #expect(probe == ["0:i:{\"current\":\"\(try harness.cv(5, bucket: "tree"))\",\"index\":[]}"], "\(probe)")
        socket.send("0:i:1:::20")
        socket.send("0:i::::20")
        #expect(socket.take() == ["0:?", "0:?"])
        for (number, version, isThere) in [(10, 2, true), (11, 1, true), (10, 1, false), (1, 1, false), (2, 1, false)] {
            socket.send("0:e:\(NodeText.key(number)).\(version)")
            let answer = socket.take()
            #expect(answer.first?.hasSuffix("\n?") == !isThere, "\(number).\(version): \(answer)")
        }
        socket.send("0:c:{\"id\":\"\(NodeText.key(11))\",\"o\":\"-\",\"sv\":1,\"ccid\":\"a\"}")
        #expect(try changes(socket.take()).map { $0["error"]?.intValue } == [401])
    }

    @Test("children in a branch: the root in the place of home, those of its nodes, and none of what is outside")
    func children() throws {
        try share()
        func numbers(_ parent: String) throws -> [Int] {
            let response = try ask("GET /1/app/\(branch())/children?parent=\(parent)", token: "bob-token")
            #expect(response.status == 200)
            return try ChildrenPage(parsing: response.body).lists[0].nodes.map { Int($0.id.value) }
        }
        #expect(try numbers("home") == [10])
        #expect(try numbers(NodeText.key(10)) == [11])
        for parent in [NodeText.key(1), NodeText.key(2), NodeText.key(77), "inbox", "prefs", "outbox"] {
            #expect(try numbers(parent) == [], "\(parent)")
        }
        #expect(try numbers(NodeText.key(11)) == [])
    }

    @Test("A9: contents of a branch are for its readers, through a node of it")
    func contents() throws {
        let before = try share([Self.bob: "r", "cleo": "W"])
        let ledger = try harness.store.makeBlobLedger()
        let (app, bob) = (try AppID("app"), try UserID(Self.bob))
        func mayRead(_ user: UserID, _ number: Int, root: Int = 10) throws -> Bool {
            let branch = BranchName(of: try UserID(Self.ann), root: NodeText.id(root))
            return try ledger.mayRead(user, NodeText.id(number), in: branch, of: app)
        }
        #expect(try mayRead(bob, 11) && mayRead(bob, 10))
        for number in [1, 2, 77] { #expect(try !mayRead(bob, number)) }
        for root in [1, 11, 77] { #expect(try !mayRead(bob, 11, root: root)) }
        #expect(try !mayRead(UserID("cleo"), 11))
        #expect(try !mayRead(UserID(Self.ann), 11), "the owner reads without a branch")
        let next = try people.list(["cleo": "W"], on: 10, after: before, epoch: 1)
        try make(2, put(10, sv: 2, list: next))
        #expect(try !mayRead(bob, 11))
    }
}

extension TreeBatchAnswer {
    fileprivate func isRefused(_ reason: RefusalReason) -> Bool {
        if case .refused(let refusal) = self { refusal.reason == reason } else { false }
    }
}
