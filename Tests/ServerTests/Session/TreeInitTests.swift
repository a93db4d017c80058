import Testing
@testable import ThicketNet
import ThicketProtocol
import ThicketTreeShape

@testable import ThicketServer

@Suite("An init that makes a tree")
struct TreeInitTests {
    private static let auth = "0:auth:ann@example.com"

    private static func opening(
        _ mode: String? = "tree", token: String = "ann-token", bucket: String = "tree"
    ) -> String {
        let extra: String = mode.map { #","mode":"\#($0)""# } ?? ""
        return #"0:init:{"clientid":"c","api":"1.1","token":"\#(token)","app_id":"app","name":"\#(bucket)"\#(extra)}"#
    }

    private static func reported(_ mode: String) -> [String] { [auth, #"0:o:{"mode":"\#(mode)"}"#] }

    private static func change(_ number: Int, below parent: NodeParent, _ ccid: String) throws -> String {
        let record: JSONObject = try NodeText.record(parent, "n").object
        return #"0:c:{"id":"\#(NodeText.key(number))","o":"M","ccid":"\#(ccid)","d":"#
            + JSONValue.object(record).serializedText + "}"
    }

    @Test("the mode is on disk before the client is admitted, and every later init is told")
    func making() throws {
        let harness = try HubHarness()
        harness.holdsCommits = true
        let (one, two): (Peer, Peer) = (harness.connect(), harness.connect())
        one.send(Self.opening())
        two.send(Self.opening("sealed"))
        #expect(one.take() == [] && two.take() == [] && harness.requests.count == 1)
        harness.holdsCommits = false
        harness.settle()
        #expect(one.take() == Self.reported("tree"))
        #expect(two.take() == Self.reported("tree"), "the first of two wishes counts")
        #expect(harness.connect().ask(Self.opening(nil)) == Self.reported("tree"))
    }

    @Test("another bucket, and a bucket that has held something, are reported as open")
    func others() throws {
        let harness = try HubHarness()
        #expect(harness.connect().ask(Self.opening(bucket: "notes")) == Self.reported("open"))
        let old: Peer = harness.client("old", bucket: "tree")
        #expect(old.ask(edit("k", "x", to: "clear")).first?.contains(#""ev":1"#) == true)
        #expect(harness.connect().ask(Self.opening()) == Self.reported("open"))
    }

    @Test("a client that may only read gets no mode before one that may write has made the tree")
    func readerFirst() throws {
        let harness = try HubHarness()
        let (reader, writer): (Peer, Peer) = (harness.connect(), harness.connect())
        #expect(reader.ask(Self.opening(token: "read-token")) == [Self.auth])
        #expect(writer.ask(Self.opening()) == Self.reported("tree"))
        harness.settle()
        #expect(reader.take() == [#"0:o:{"mode":"tree"}"#])
    }

    @Test("a refusal has the word of its reason, and a stale change the current version")
    func reasons() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.connect()
        _ = peer.ask(Self.opening())
        let (one, two): (String, String) = (NodeText.key(1), NodeText.key(2))
        #expect(try peer.ask(Self.change(1, below: .trunk(.home), "x1")).first?.contains(#""ev":1"#) == true)
        #expect(
            try peer.ask(Self.change(2, below: .child(7), "x2")) == [
                #"0:c:[{"clientid":"c","id":"\#(two)","error":400,"ccids":["x2"],"reason":"parent-missing"}]"#
            ])
        #expect(
            try peer.ask(Self.change(1, below: .trunk(.prefs), "x3")) == [
                #"0:c:[{"clientid":"c","id":"\#(one)","error":405,"ccids":["x3"],"reason":"stale","ev":1}]"#
            ])
    }

    @Test("over HTTP a whole record is written; members to merge, and a missing version, are refused")
    func overHTTP() throws {
        let harness = try HubHarness()
        _ = harness.connect().ask(Self.opening())
        let record: JSONObject = try NodeText.record(.trunk(.home), "n").object
        func answer(_ serial: UInt32, merges: Bool, _ ccid: String) throws -> HTTPResponse? {
            let id = ConnectionID(slot: 1_000, serial: serial)
            let body: JSONNode = try JSONDocument(parsing: JSONValue.object(record).serialized()).root
            let change = ChangeRequest(
                key: NodeText.key(1), ccid: ccid, operation: .modify, object: .node(body))
            harness.call(
                id,
                RESTCall(
                    app: try AppID("app"), bucket: try BucketName("tree"), token: "ann-token", user: nil,
                    deviceID: nil, clientID: try ClientID("web"),
                    operation: .write(
                        change, ChangeTerms(mergesObject: merges, needsSource: true), wantsObject: false), bytes: 10))
            return harness.answers(id).first
        }
        let merged: HTTPResponse? = try answer(1, merges: true, "c1")
        #expect(merged?.status == 400)
        let text = String(decoding: merged?.body ?? [], as: UTF8.self)
        #expect(text.contains("tree_refused"))
        #expect(try answer(2, merges: false, "c2")?.status == 200)
        #expect(try answer(3, merges: false, "c3")?.status == 412, "stale")
    }
}
