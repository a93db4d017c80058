import Testing
@testable import ThicketNet
import ThicketProtocol
import ThicketTreeShape

@testable import ThicketServer

/// Messages and inbox policies from the bytes of a request to those of the answer.
@Suite("Messages over HTTP")
struct MessageRESTTests {
    private static let (ann, bob) = ("ann@example.com", "bob@example.com")
    private let people: TestDirectory
    private let harness: HubHarness

    init() throws {
        people = try TestDirectory(Self.ann, Self.bob)
        harness = try HubHarness()
        harness.hub.keyDirectory = people
    }

    private func ask(_ line: String, token: String = "ann-token", body: [UInt8] = []) throws -> HTTPResponse {
        var text = "\(line) HTTP/1.1\r\nhost: x\r\nX-Simperium-Token: \(token)\r\n"
        if !body.isEmpty { text += "content-length: \(body.count)\r\n" }
        var limits = HTTPLimits()
        limits.bodyBytesMax = 8 << 20
        var reader = HTTPRequestReader(limits: limits)
        let read = try (Array((text + "\r\n").utf8) + body).withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
            var input = bytes
            return try reader.next(&input)
        }
        let request = try #require(read)
        let handler = RESTHandler(cors: CORSPolicy("none"), documentBytesMax: 1 << 20, makeChangeID: { "made" })
        switch handler.read(request) {
        case .answer(let response): return response
        case .call(let call):
            let id = ConnectionID(slot: 1_000, serial: 1)
            harness.call(id, call)
            return try #require(harness.answers(id).first)
        }
    }

    private func send(_ id: Int, _ operations: [TreeOperation], token: String = "ann-token") throws -> HTTPResponse {
        let batch = TreeBatch(id: BatchID(UInt128(id)), operations)
        let owner = token == "ann-token" ? Self.ann : Self.bob
        return try ask(
            "POST /1/app/tree/\(owner)/batch?clientid=web", token: token,
            body: JSONValue.object(batch.object).serialized())
    }

    private func changes(_ messages: [String]) throws -> [JSONValue] {
        try messages.flatMap { try JSONValue(parsing: Array($0.utf8.dropFirst(4))).arrayValue ?? [] }
    }

    @Test("a connected receiver gets a message with its attachments in one message, and nothing of the sender's marks")
    func delivery() throws {
        let socket = harness.connect()
        socket.send(
            #"0:init:{"clientid":"phone","api":"1.1","token":"bob-token","app_id":"app","name":"tree","mode":"tree"}"#)
        socket.send("0:cv:\(try harness.cv(0, bucket: "tree", user: Self.bob))")
        _ = socket.take()
        let response = try send(
            1,
            [
                TestShard.put(1, below: .trunk(.outbox), "sent"), people.copy(2, from: Self.ann, to: Self.bob),
                people.copy(3, from: Self.ann, to: Self.bob, below: 2),
            ])
        #expect(response.status == 200, "\(String(decoding: response.body, as: UTF8.self))")
        let answer = try TreeBatchAnswer(parsing: response.body)
        let cv = try ChangeVersion(try harness.cv(1, bucket: "tree"))
        #expect(answer == .made(position: cv, results: [.version(1), .version(1), .version(1)]))
        let messages = socket.take()
        #expect(messages.count == 1)
        let received = try changes(messages)
        let marks = try received.map { try BatchMark(try #require($0["tx"])) }
        #expect(marks.map(\.index) == [0, 1] && marks.allSatisfy { $0.count == 2 && $0.batch != BatchID(1) })
        #expect(received.map { $0["id"]?.stringValue } == [NodeText.key(2), NodeText.key(3)])
        #expect(received.allSatisfy { $0["clientid"]?.stringValue == "copy" })
        #expect(received.allSatisfy { $0["v"]?["_from"]?["v"]?.stringValue == Self.ann })
        // Its own operations go on as before.
        #expect(try send(2, [TestShard.delete(3, sv: 1)], token: "bob-token").status == 200)
    }

    @Test("an owner with the id i has the paths of a tree, as every other one")
    func ownerNamedAsThePathOfObjects() throws {
        let body = Array(#"{"policy":"nobody"}"#.utf8)
        for (line, body) in [("PUT", body), ("GET", [])] {
            let other = try ask("\(line) /1/app/tree/\(Self.bob)/inbox", body: body)
            let named = try ask("\(line) /1/app/tree/i/inbox", body: body)
            #expect(named.status == other.status && named.status != 405)
            #expect(named.body == other.body)
        }
        #expect(try ask("POST /1/app/tree/i/children", body: Array("{}".utf8)).status != 405)
    }

    @Test("A8: a record that is not signed by the user of the token is 401 with reason and index")
    func forgery() throws {
        let response = try send(
            1, [TestShard.put(1, "a"), people.copy(2, from: Self.bob, to: Self.bob)])
        #expect(response.status == 401)
        guard case .refused(let refusal) = try TreeBatchAnswer(parsing: response.body) else {
            return #expect(Bool(false), "it was made")
        }
        #expect(refusal == BatchRefusal(.unauthorized, .signature, operation: 1))
        harness.hub.keyDirectory = nil
        #expect(try send(2, [people.copy(2, from: Self.ann, to: Self.bob)]).status == 503)
    }

    @Test("the policy of an inbox is read and replaced by its owner only, and is in force when it is answered")
    func policy() throws {
        let path = "/1/app/tree/\(Self.bob)/inbox"
        let everyone = #"{"policy":"everyone","contacts":[],"blocked":[]}"#
        let blocked = #"{"policy":"everyone","contacts":[],"blocked":["\#(Self.ann)"]}"#
        func text(_ response: HTTPResponse) -> String { String(decoding: response.body, as: UTF8.self) }
        let first = try ask("GET \(path)", token: "bob-token")
        #expect(first.status == 200 && text(first) == everyone)
        #expect(try send(1, [people.copy(2, from: Self.ann, to: Self.bob)]).status == 200)
        let set = try ask("PUT \(path)", token: "bob-token", body: Array(blocked.utf8))
        #expect(set.status == 200 && text(set) == blocked)
        #expect(text(try ask("GET \(path)", token: "bob-token")) == blocked)
        let refused = try send(2, [people.copy(3, from: Self.ann, to: Self.bob)])
        let absent = try send(3, [people.copy(3, from: Self.ann, to: "carol")])
        #expect(refused.status == 401 && refused.body == absent.body && refused.fields == absent.fields)
        for (line, token) in [("GET \(path)", "ann-token"), ("PUT \(path)", "ann-token")] {
            #expect(try ask(line, token: token, body: Array((line.hasPrefix("P") ? everyone : "").utf8)).status == 404)
        }
        #expect(
            try ask("PUT /1/app/tree/\(Self.ann)/inbox", token: "read-token", body: Array(everyone.utf8)).status == 401)
        #expect(try ask("POST \(path)", token: "bob-token").status == 405)
        let long = (0...1_000).map { "\"u\($0)\"" }.joined(separator: ",")
        for wrong in [
            "", "{}", #"{"policy":"some"}"#, #"{"policy":"nobody","blocked":["a","a"]}"#,
            #"{"policy":"nobody","blocked":[1]}"#, #"{"policy":"nobody","other":[]}"#,
            "{\"policy\":\"nobody\",\"contacts\":[\(long)]}",
        ] {
            #expect(
                try ask("PUT \(path)", token: "bob-token", body: Array(wrong.utf8)).status == 400, "\(wrong.prefix(60))"
            )
        }
        #expect(text(try ask("GET \(path)", token: "bob-token")) == blocked)
    }
}
