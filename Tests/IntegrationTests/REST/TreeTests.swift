import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketServer
import ThicketTestServer
import ThicketTreeShape

/// Batches, children and burn times on a real server.
@Suite("Trees over HTTP")
struct TreeTests {
    private static let place = "tree/ann@example.com"

    /// A record in the form of a record; nothing in it is sealed.
    private static func put(_ number: Int, below parent: NodeParent, burns: Int64? = nil) throws -> TreeOperation {
        let node = NodeID(UInt128(number))
        let record = NodeRecord(
            parent: parent, tag: try NodeTag(of: Array("n\(number)".utf8), salt: []), epoch: 0,
            wraps: [RecordWrap(.parent, sealed: [1] + [UInt8](repeating: 0, count: TreeLimits.parentWrapBytes - 1))],
            commitment: [UInt8](repeating: 2, count: 32), metadata: [1] + [UInt8](repeating: 3, count: 92),
            burnTime: burns, base: 0)
        return .put(node, source: 0, record)
    }

    private func withServer(_ kind: StoreKind, _ body: (TestServer) throws -> Void) throws {
        let store = try TestStore(kind)
        let server = try TestServer(store: store.store)
        defer { server.stop() }
        try body(server)
    }

    private static func text(_ id: Int, _ operations: [TreeOperation]) -> String {
        JSONValue.object(TreeBatch(id: BatchID(UInt128(id)), operations).object).serializedText
    }

    @Test(
        "a batch of two is on disk when it is answered, reaches a socket at once, and is listed",
        .rows("tree-batch", "tree-batch-again", "tree-children"), arguments: StoreKind.allCases)
    func thin(kind: StoreKind) throws {
        try withServer(kind) { server in
            let http = try server.http()
            let socket = try server.client()
            try socket.send(
                #"0:init:{"clientid":"s","api":"1.1","token":"ann-token","app_id":"app","name":"tree","mode":"tree"}"#)
            #expect(try socket.receive() == "0:auth:ann@example.com" && socket.receive() == #"0:o:{"mode":"tree"}"#)
            let batch = Self.text(1, [try Self.put(1, below: .trunk(.home)), try Self.put(2, below: .node(NodeID(1)))])
            let made = try http.ask("POST", "\(Self.place)/batch", body: batch)
            #expect(made.status == 200)
            let answer = try TreeBatchAnswer(parsing: Array(made.body.utf8))
            guard case .made(let position, let results) = answer else { return #expect(Bool(false), "\(answer)") }
            #expect(results == [.version(1), .version(1)])
            #expect(try http.ask("POST", "\(Self.place)/batch", body: batch).body == made.body)
            let listed = try http.ask("GET", "\(Self.place)/children?parent=home&stats=1")
            let page = try ChildrenPage(parsing: Array(listed.body.utf8))
            #expect(page.current == position && page.lists[0].nodes.map(\.id) == [NodeID(1)])
            #expect(page.lists[0].nodes[0].stats?.count == 1)
            let query = ChildrenQuery(of: [.trunk(.home), .node(NodeID(1))], isSkeleton: true)
            let both = try http.ask(
                "POST", "\(Self.place)/children", body: JSONValue.object(query.object).serializedText)
            #expect(try ChildrenPage(parsing: Array(both.body.utf8)).lists.map(\.nodes.count) == [1, 1])
            _ = try socket.ask("0:cv:\(position.text)")
            #expect(
                try http.ask(
                    "POST", "\(Self.place)/batch", body: Self.text(2, [try Self.put(3, below: .trunk(.prefs))])
                ).status == 200)
            #expect(try socket.receive().contains(#""tx":{"id":"aaaaaaaaaaaaaaaaaaaaaaaaai","i":0,"n":1}"#))
            #expect(server.metrics.treeBatches.value == 3)
        }
    }

    @Test(
        "the usage of a tree is that of its nodes and blobs, also for an administrator, and of no other user",
        .rows("tree-usage"), arguments: StoreKind.allCases)
    func usage(kind: StoreKind) throws {
        let store = try TestStore(kind)
        let key = try store.addAdminKey()
        let server = try TestServer(store: store.store)
        defer { server.stop() }
        let http = try server.http()
        #expect(try http.ask("GET", "\(Self.place)/usage").status == 404, "no tree yet")
        let operations = [try Self.put(1, below: .trunk(.home)), try Self.put(2, below: .node(NodeID(1)))]
        #expect(try http.ask("POST", "\(Self.place)/batch", body: Self.text(1, operations)).status == 200)
        let page = try http.ask("GET", "\(Self.place)/children?parent=home")
        let record = try #require(JSONValue(parsing: page.body)["children"]?[0]?["nodes"]?[0]?["d"])
        let used = try http.ask("GET", "\(Self.place)/usage")
        let usage = try JSONValue(parsing: used.body)
        let bytes = try #require(usage["nodes"]?["bytes"]?.intValue)
        #expect(used.status == 200 && usage["nodes"]?["count"] == 2)
        #expect(bytes > record.serialized().count && bytes < 3 * record.serialized().count)
        #expect(usage["blobs"] == ["count": 0, "bytes": 0] && usage["uploads"] == ["count": 0, "bytes": 0])
        let asAnn = [("x-simperium-user", "ann@example.com")]
        #expect(try server.http(token: key).ask("GET", "\(Self.place)/usage", fields: asAnn).body == used.body)
        #expect(try http.ask("GET", "tree/bob@example.com/usage").status == 404)
        #expect(try http.ask("POST", "\(Self.place)/usage", body: "{}").status == 405)
    }

    @Test(
        "a server that starts removes what should have burned while it was down", .rows("tree-burn"),
        arguments: StoreKind.allCases)
    func burning(kind: StoreKind) throws {
        let store = try TestStore(kind)
        let first = try TestServer(store: store.store)
        let batch = Self.text(
            1,
            [
                try Self.put(1, below: .trunk(.home), burns: 1), try Self.put(2, below: .node(NodeID(1))),
                try Self.put(3, below: .trunk(.home)),
            ])
        let made = try first.http().ask("POST", "\(Self.place)/batch", body: batch)
        first.stop()
        #expect(made.status == 200)
        let second = try TestServer(store: store.store)
        defer { second.stop() }
        #expect(waitUntil { first.metrics.treeBurned.value + second.metrics.treeBurned.value == 2 })
        let listed = try second.http().ask("GET", "\(Self.place)/children?parent=home")
        #expect(try ChildrenPage(parsing: Array(listed.body.utf8)).lists[0].nodes.map(\.id) == [NodeID(3)])
    }

    @Test(
        "one refused operation refuses the batch, and another batch with a known id is refused",
        .rows("tree-batch-refused", "tree-batch-other"), arguments: StoreKind.allCases)
    func refused(kind: StoreKind) throws {
        try withServer(kind) { server in
            let http = try server.http()
            let good = try Self.put(1, below: .trunk(.home))
            let orphan = try Self.put(2, below: .node(NodeID(9)))
            let answer = try http.ask("POST", "\(Self.place)/batch", body: Self.text(1, [good, orphan]))
            #expect(answer.status == 400 && answer.body == #"{"error":400,"reason":"parent-missing","op":1}"#)
            let page = try http.ask("GET", "\(Self.place)/children?parent=home")
            #expect(try ChildrenPage(parsing: Array(page.body.utf8)).lists[0].nodes.isEmpty)
            #expect(try http.ask("POST", "\(Self.place)/batch", body: Self.text(1, [good])).status == 200)
            let other = Self.text(1, [try Self.put(3, below: .trunk(.home))])
            let known = try http.ask("POST", "\(Self.place)/batch", body: other)
            #expect(known.status == 409 && known.body == #"{"error":409,"reason":"batch-id"}"#)
        }
    }
}
