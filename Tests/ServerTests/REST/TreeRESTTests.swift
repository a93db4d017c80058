import Testing
@testable import ThicketNet
import ThicketProtocol
import ThicketTreeShape

@testable import ThicketServer

/// Batches and lists of children from the bytes of a request to those of the answer.
@Suite("Calls to a tree over HTTP")
struct TreeRESTTests {
    private static let opening =
        #"0:init:{"clientid":"c","api":"1.1","token":"ann-token","app_id":"app","name":"tree","mode":"tree"}"#
    private static let owner = "ann@example.com"

    private static func request(_ line: String, token: String, body: [UInt8]) throws -> HTTPRequest {
        var text = "\(line) HTTP/1.1\r\nhost: x\r\nX-Simperium-Token: \(token)\r\n"
        if !body.isEmpty { text += "content-length: \(body.count)\r\n" }
        var limits = HTTPLimits()
        limits.bodyBytesMax = 8 << 20
        var reader = HTTPRequestReader(limits: limits)
        return try #require(
            try (Array((text + "\r\n").utf8) + body).withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
                var input = bytes
                return try reader.next(&input)
            })
    }

    private static func ask(
        _ harness: HubHarness, _ line: String, token: String = "ann-token", body: [UInt8] = []
    ) throws -> HTTPResponse {
        let handler = RESTHandler(cors: CORSPolicy("none"), documentBytesMax: 1 << 20, makeChangeID: { "made" })
        switch handler.read(try request(line, token: token, body: body)) {
        case .answer(let response): return response
        case .call(let call):
            let id = ConnectionID(slot: 1_000, serial: 1)
            harness.call(id, call)
            return try #require(harness.answers(id).first)
        }
    }

    private static func batch(
        _ harness: HubHarness, _ id: Int, _ operations: [TreeOperation], owner: String = owner,
        token: String = "ann-token"
    ) throws -> HTTPResponse {
        let batch = TreeBatch(id: BatchID(UInt128(id)), operations)
        return try ask(
            harness, "POST /1/app/tree/\(owner)/batch?clientid=web", token: token,
            body: JSONValue.object(batch.object).serialized())
    }

    private static func page(_ harness: HubHarness, _ parameters: String) throws -> ChildrenPage {
        let response = try ask(harness, "GET /1/app/tree/\(owner)/children?\(parameters)")
        #expect(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
        let page = try ChildrenPage(parsing: response.body)
        #expect(JSONValue.object(page.object).serialized() == response.body, "the server writes the one form")
        return page
    }

    @Test("the first batch makes the tree, and its answer waits for the commit")
    func first() throws {
        let harness = try HubHarness()
        let response = try Self.batch(harness, 1, [TestShard.put(1, "a"), TestShard.put(2, below: .child(1), "b")])
        #expect(response.status == 200)
        let cv = try ChangeVersion(try harness.cv(2, bucket: "tree"))
        #expect(
            try TreeBatchAnswer(parsing: response.body) == .made(position: cv, results: [.version(1), .version(1)]))
        #expect(
            try Self.batch(harness, 1, [TestShard.put(1, "a"), TestShard.put(2, below: .child(1), "b")]).body
                == response.body)
        #expect(harness.metrics.treeBatches.value == 0, "the harness counts nothing: the shard's runner does")
    }

    @Test("sockets get the changes of a batch in one message, without others in between, with the batch's mark")
    func together() throws {
        let harness = try HubHarness()
        let socket = harness.connect()
        socket.send(Self.opening)
        socket.send("0:cv:\(try harness.cv(0, bucket: "tree"))")
        _ = socket.take()
        #expect(try Self.batch(harness, 1, (1...50).map { try TestShard.put($0, "n\($0)") }).status == 200)
        let messages = socket.take()
        #expect(messages.count == 1)
        let changes = try JSONValue(parsing: Array((messages.first ?? "").utf8.dropFirst(4))).arrayValue ?? []
        let marks = try changes.map { try BatchMark(try #require($0["tx"])) }
        #expect(marks == (0..<50).map { BatchMark(BatchID(1), index: $0, of: 50) })
        #expect(changes.allSatisfy { $0["clientid"]?.stringValue == "web" })
    }

    @Test(
        "a catch-up from the log, page by page, gives the same changes with the same marks", arguments: [false, true])
    func catchUp(fromDisk: Bool) throws {
        var limits = ServerLimits()
        limits.catchUpPageChanges = 7
        if fromDisk { limits.tailChangesMax = 1 }
        let harness = try HubHarness(limits: limits)
        let live = harness.connect()
        live.send(Self.opening)
        live.send("0:cv:\(try harness.cv(0, bucket: "tree"))")
        _ = live.take()
        for batch in 1...3 {
            let numbers = (batch * 10)..<(batch * 10 + 10)
            #expect(try Self.batch(harness, batch, numbers.map { try TestShard.put($0, "n\($0)") }).status == 200)
        }
        func changes(_ messages: [String]) throws -> [JSONValue] {
            try messages.flatMap { try JSONValue(parsing: Array($0.utf8.dropFirst(4))).arrayValue ?? [] }
        }
        let seen = try changes(live.take())
        let late = harness.connect()
        late.send(Self.opening)
        _ = late.take()
        late.send("0:cv:\(try harness.cv(4, bucket: "tree"))")
        let messages = late.take()
        #expect(try changes(messages) == Array(seen.dropFirst(4)))
        if fromDisk { #expect(messages.count > 3) }
        let last = try BatchMark(try #require(seen.last?["tx"]))
        #expect(last.isLast && seen.count == 30)
    }

    @Test("each refusal has its code as status, and the index, reason and current version")
    func refusals() throws {
        let harness = try HubHarness()
        #expect(try Self.batch(harness, 1, [TestShard.put(1, "a")]).status == 200)
        let cases: [(TreeOperation, String)] = [
            (try TestShard.put(1, "a", sv: 3), #"{"error":405,"reason":"stale","op":1,"ev":1}"#),
            (try TestShard.put(2, "a"), #"{"error":400,"reason":"name-taken","op":1}"#),
            (TestShard.delete(9, sv: 1), #"{"error":404,"reason":"node-missing","op":1}"#),
        ]
        for (operation, body) in cases {
            let response = try Self.batch(harness, 2, [TestShard.put(3, "c"), operation])
            #expect(String(decoding: response.body, as: UTF8.self) == body)
            #expect("\(response.status)" == body.dropFirst(9).prefix(3))
            #expect((response.fields["allow"] != nil) == (response.status == 405))
        }
        let other = try Self.batch(harness, 1, [TestShard.put(3, "c")])
        #expect(
            other.status == 409 && String(decoding: other.body, as: UTF8.self) == #"{"error":409,"reason":"batch-id"}"#)
        #expect(try Self.page(harness, "parent=home").lists[0].nodes.count == 1)
    }

    @Test("a commit that fails is answered 503 with the time to wait, and the same batch is made then")
    func failing() throws {
        let harness = try HubHarness(faults: {
            $0.changes == 2 && $0.number < 4 ? .fail(StoreError(.full, "a test")) : .none
        })
        let operations = [try TestShard.put(1, "a"), try TestShard.put(2, below: .child(1), "b")]
        let response = try Self.batch(harness, 1, operations)
        #expect(response.status == 503 && response.fields["retry-after"] == "1")
        #expect(String(decoding: response.body, as: UTF8.self) == #"{"error":503}"#)
        #expect(try Self.page(harness, "parent=home").lists[0].nodes.isEmpty)
        var made = response
        for _ in 0..<4 where made.status != 200 { made = try Self.batch(harness, 1, operations) }
        #expect(made.status == 200)
        #expect(try Self.page(harness, "parent=home").lists[0].nodes.count == 1)
    }

    @Test("the tree is that of the token's user: another owner is 404, a read-only or unknown token 401")
    func owners() throws {
        let harness = try HubHarness()
        let operations = [try TestShard.put(1, "a")]
        #expect(try Self.batch(harness, 1, operations, token: "bob-token").status == 404)
        #expect(try Self.batch(harness, 1, operations, owner: "bob@example.com").status == 404)
        #expect(try Self.batch(harness, 1, operations, token: "none").status == 401)
        #expect(
            try Self.ask(harness, "GET /1/app/tree/\(Self.owner)/children?parent=home").status == 404, "no tree yet")
        #expect(try Self.batch(harness, 1, operations).status == 200)
        #expect(try Self.batch(harness, 2, [TestShard.put(2, "b")], token: "read-token").status == 401)
        #expect(
            try Self.ask(harness, "GET /1/app/tree/\(Self.owner)/children?parent=home", token: "read-token").status
                == 200)
        #expect(
            try Self.ask(harness, "GET /1/app/tree/\(Self.owner)/children?parent=home", token: "bob-token").status
                == 404)
        #expect(try Self.ask(harness, "DELETE /1/app/tree/\(Self.owner)/batch").status == 405)
    }

    @Test("a bucket tree that is not a tree has no batches and no children")
    func open() throws {
        let harness = try HubHarness()
        _ = harness.client("old", bucket: "tree").ask(edit("k", "x", to: "clear"))
        #expect(try Self.batch(harness, 1, [TestShard.put(1, "a")]).status == 404)
        #expect(try Self.ask(harness, "GET /1/app/tree/\(Self.owner)/children?parent=home").status == 404)
    }

    @Test("children come newest first or by tag, page by page, and current is where the log goes on")
    func children() throws {
        let harness = try HubHarness()
        #expect(try Self.batch(harness, 1, (1...25).map { try TestShard.put($0, "n\($0)") }).status == 200)
        #expect(
            try Self.batch(harness, 2, (30...33).map { try TestShard.put($0, below: .child(7), "m\($0)") }).status
                == 200)
        var (numbers, before) = ([Int](), "")
        repeat {
            let page = try Self.page(harness, "parent=home&limit=10\(before)")
            #expect(page.current.text == (try harness.cv(29, bucket: "tree")))
            numbers += page.lists[0].nodes.map { Int($0.id.value) }
            before = page.lists[0].next.map { "&before=\($0)" } ?? ""
        } while !before.isEmpty
        #expect(numbers == (1...25).reversed())
        let first = try Self.page(harness, "parent=home&limit=20&order=tag").lists[0]
        let rest = try Self.page(harness, "parent=home&limit=20&order=tag&before=\(try #require(first.next))").lists[0]
        #expect(Set((first.nodes + rest.nodes).map { Int($0.id.value) }) == Set(1...25) && rest.next == nil)
        let stats = try Self.page(harness, "parent=home&stats=1&limit=1000").lists[0].nodes
        #expect(stats.first { $0.id == NodeText.id(7) }?.stats == ChildStats(count: 4, newest: harness.now.unix))
        #expect(stats.count { $0.stats == ChildStats(count: 0, newest: nil) } == 24)
        for wrong in [
            "parent=home&before=x", "parent=home&order=tag&before=x", "parent=x", "", "parent=home&limit=9999",
        ] {
            #expect(try Self.ask(harness, "GET /1/app/tree/\(Self.owner)/children?\(wrong)").status == 400)
        }
    }

    @Test("a list that is asked for again is the same, until the tree changes")
    func cached() throws {
        let harness = try HubHarness()
        for batch in 1...3 {
            let puts = try (0..<40).map { try TestShard.put(batch * 100 + $0, "n\(batch * 100 + $0)") }
            #expect(try Self.batch(harness, batch, puts).status == 200)
        }
        let query = "parent=home&limit=1000"
        let first = try Self.page(harness, query)
        #expect(first.lists[0].nodes.count == 120 && JSONValue.object(first.object).serialized().count > 16 << 10)
        #expect(try Self.page(harness, query).object == first.object)
        #expect(try Self.page(harness, query + "&stats=1").object != first.object)
        #expect(try Self.batch(harness, 4, [TestShard.put(900, "new")]).status == 200)
        let later = try Self.page(harness, query)
        #expect(later.lists[0].nodes.map(\.id) == [NodeText.id(900)] + first.lists[0].nodes.map(\.id))
        #expect(later.current != first.current)
    }

    @Test("an index of a tree begins with the node that changed longest ago, page by page and from a position on")
    func index() throws {
        let harness = try HubHarness()
        #expect(try Self.batch(harness, 1, (1...25).map { try TestShard.put($0, "n\($0)") }).status == 200)
        #expect(try Self.batch(harness, 2, [TestShard.put(3, "n3", sv: 1)]).status == 200)
        func list(_ parameters: String) throws -> [Int] {
            var (numbers, mark) = ([Int](), "")
            repeat {
                let response = try Self.ask(harness, "GET /1/app/tree/index?limit=10\(parameters)\(mark)")
                let page = try JSONValue(parsing: response.body)
                for case .object(let entry) in page["index"]?.arrayValue ?? [] {
                    let id = try #require(entry["id"]?.stringValue.flatMap(NodeID.init(text:)))
                    numbers.append(Int(id.value))
                }
                mark = page["mark"]?.stringValue.map { "&mark=\($0)" } ?? ""
            } while !mark.isEmpty
            return numbers
        }
        let order = [1, 2] + Array(4...25) + [3]
        #expect(try list("") == order)
        #expect(try list("&data=1") == order)
        #expect(try list("&data=1") == order, "from pages in memory")
        #expect(try list("&since=\(harness.cv(20, bucket: "tree"))") == Array(21...25) + [3])
        #expect(try Self.batch(harness, 3, [TestShard.put(26, "n26")]).status == 200)
        #expect(try list("&data=1") == order + [26])
    }

    @Test("a page may be newer than its current; the log from there has all that is newer, so that nothing is missed")
    func current() throws {
        let harness = try HubHarness()
        #expect(try Self.batch(harness, 1, [TestShard.put(1, "a")]).status == 200)
        let socket = harness.connect()
        socket.send(Self.opening)
        _ = socket.take()
        harness.holdsCommits = true
        harness.hub.call(
            ConnectionID(slot: 2_000, serial: 2),
            RESTCall(
                app: try AppID("app"), bucket: try BucketName("tree"), token: "ann-token", user: nil, deviceID: nil,
                clientID: try ClientID("web"),
                operation: .batch(
                    try TreeBatchRequest(
                        parsing: JSONValue.object(TreeBatch(id: BatchID(2), [TestShard.put(2, "b")]).object)
                            .serialized())), bytes: 10), now: harness.now)
        harness.settle()
        // It is on disk now and not published yet.
        let group = harness.decide()
        let page = try Self.page(harness, "parent=home")
        #expect(page.lists[0].nodes.map(\.id) == [NodeText.id(2), NodeText.id(1)])
        #expect(page.current.text == (try harness.cv(1, bucket: "tree")))
        socket.send("0:cv:\(page.current.text)")
        harness.publish(group)
        #expect(socket.take().contains { $0.contains(NodeText.key(2)) })
    }

    @Test("children of many parents come in one answer, in the order of the query; content is left out of a skeleton")
    func many() throws {
        let harness = try HubHarness()
        var record = try NodeText.record(.trunk(.home), "c")
        record.data = .inline(DataID(5), sealed: [UInt8](repeating: 3, count: 80))
        #expect(
            try Self.batch(
                harness, 1, [.put(NodeText.id(1), source: 0, record), TestShard.put(2, below: .child(1), "d")]
            ).status == 200)
        var query = ChildrenQuery(of: [.child(1), .trunk(.home), .child(99)], isSkeleton: true, wantsStats: true)
        func ask() throws -> ChildrenPage {
            let response = try Self.ask(
                harness, "POST /1/app/tree/\(Self.owner)/children", body: JSONValue.object(query.object).serialized())
            return try ChildrenPage(parsing: response.body)
        }
        let page = try ask()
        #expect(page.lists.map(\.parent) == query.parents && page.lists.map(\.nodes.count) == [1, 1, 0])
        #expect(try page.lists[1].nodes[0].record.data == record.data?.withoutInline)
        query.isSkeleton = false
        #expect(try ask().lists[1].nodes[0].record.data == record.data)
        #expect(try Self.ask(harness, "POST /1/app/tree/\(Self.owner)/children", body: Array("{}".utf8)).status == 400)
    }

    @Test("an operator's or attacker's body is refused in time: too many operations, too many bytes, depth, bad UTF-8")
    func hostile() throws {
        let harness = try HubHarness()
        let line = "POST /1/app/tree/\(Self.owner)/batch"
        let operations = [TreeOperation](repeating: TestShard.delete(1, sv: 1), count: 10_000)
        let many = try Self.batch(harness, 1, operations)
        #expect(many.status == 413 && String(decoding: many.body, as: UTF8.self) == #"{"error":413,"reason":"batch"}"#)
        let long = [UInt8](repeating: 0x20, count: TreeLimits.batchBytesMax + 1)
        #expect(try Self.ask(harness, line, body: long).status == 413)
        let bodies: [[UInt8]] = [
            Array(String(repeating: "[", count: 100_000).utf8), [0xFF, 0xFE], Array("{}".utf8), Array("null".utf8),
            Array(#"{"id":"\#(String(repeating: "a", count: 50_000))","ops":[]}"#.utf8),
        ]
        for body in bodies { #expect(try Self.ask(harness, line, body: body).status == 400) }
        #expect(try Self.ask(harness, line).status == 400)
        // A large body is parsed by a reader and takes the same way.
        let puts = try (1...900).map { try TestShard.put($0, "n\($0)") }
        #expect(try Self.batch(harness, 3, puts).status == 200)
        #expect(try Self.batch(harness, 3, puts).status == 200)
    }
}
