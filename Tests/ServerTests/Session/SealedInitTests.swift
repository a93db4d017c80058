import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketServer

/// The first `init` that asks for a new bucket to be sealed, and what may happen between it and the disk.
@Suite("An init that seals a bucket")
struct SealedInitTests {
    private static let auth = "0:auth:ann@example.com"
    private static let sealed: String = #"0:o:{"mode":"sealed"}"#
    private static let open: String = #"0:o:{"mode":"open"}"#

    private static func opening(
        _ mode: String? = "sealed", token: String = "ann-token", bucket: String = "notes", command: String? = nil
    ) -> String {
        let extra: String =
            (mode.map { #","mode":"\#($0)""# } ?? "") + (command.map { #","cmd":"\#($0)""# } ?? "")
        return #"0:init:{"clientid":"c","api":"1.1","token":"\#(token)","app_id":"app","name":"\#(bucket)"\#(extra)}"#
    }

    private static func creation(_ ccid: Int) -> String {
        #"0:c:{"id":"\#(SealedText.key())","o":"M","ccid":"\#(SealedText.changeID(ccid))","v":"#
            + SealedText.creation(SealedText.snapshot()).serializedText + "}"
    }

    @Test("no client is admitted before the mode is on disk; then all that waited are, each with what it asked for")
    func waiting() throws {
        let harness = try HubHarness()
        harness.holdsCommits = true
        let (one, two): (Peer, Peer) = (harness.connect(), harness.connect())
        one.send(Self.opening(command: "i:1:::10"), Self.creation(1))
        two.send(Self.opening())
        #expect(one.take() == [] && two.take() == [])
        #expect(harness.requests.count == 1, "one request answers both")
        harness.holdsCommits = false
        harness.settle()
        let reported: [String] = one.take()
        #expect(Array(reported.prefix(2)) == [Self.auth, Self.sealed])
        #expect(reported.count == 4 && reported[2].hasPrefix("0:i:") && reported[3].hasPrefix("0:c:["), "\(reported)")
        #expect(two.take() == [Self.auth, Self.sealed])
        #expect(try harness.store.makeReader().bucket(Self.bucket())?.mode == .sealed)
    }

    private static func bucket() throws -> BucketID {
        try BucketID(app: AppID("app"), user: UserID("ann@example.com"), name: BucketName("notes"))
    }

    @Test("a client that may only read gets no mode before a client that may write has created the bucket")
    func readerFirst() throws {
        let harness = try HubHarness()
        let (reader, writer): (Peer, Peer) = (harness.connect(), harness.connect())
        #expect(reader.ask(Self.opening(token: "read-token")) == [Self.auth])
        #expect(writer.ask(Self.opening()) == [Self.auth, Self.sealed])
        harness.settle()
        #expect(reader.take() == [Self.sealed])
    }

    @Test("a store that cannot write the mode refuses the init with 500, and the next init tries again")
    func failing() throws {
        let faults: FaultPlan = { point in point.number == 1 ? .fail(StoreError(.full, "a test")) : .none }
        let harness = try HubHarness(faults: faults)
        let peer: Peer = harness.connect()
        let refusal: [String] = peer.ask(Self.opening())
        #expect(refusal.count == 1 && refusal[0].hasSuffix(#""code":500}"#), "\(refusal)")
        #expect(try harness.store.makeReader().bucket(Self.bucket()) == nil)
        #expect(peer.ask(Self.opening()) == [Self.auth, Self.sealed])
    }

    @Test(
        "a crash before the mode is on disk leaves nothing, a crash after it a sealed bucket",
        arguments: [false, true])
    func crashing(isAfter: Bool) throws {
        let store = MemoryStore(faults: { point in
            point.number == 1 ? (isAfter ? .crashAfter : .crashBefore) : .none
        })
        let shard = try TestShard(store: store)
        #expect(shard.seal() == .unknown)
        try shard.restart()
        let answer: Answer = try shard.make("k", ["t": "clear"])
        #expect(answer.code == (isAfter ? 400 : nil))
        #expect(shard.seal() == .mode(isAfter ? .sealed : .open))
    }

    @Test("an open change that comes first keeps the bucket open, and the client that asked for sealed gets this mode")
    func openFirst() throws {
        let harness = try HubHarness()
        let old: Peer = harness.client("old")
        harness.holdsCommits = true
        old.send(edit("k", "x", to: "clear"))
        let peer: Peer = harness.connect()
        peer.send(Self.opening())
        harness.holdsCommits = false
        harness.settle()
        #expect(peer.take() == [Self.auth, Self.open])
        #expect(old.take().first?.contains(#""ev":1"#) == true)
    }

    @Test("an open change after the request to seal, in the same group, is refused with 400 under the new mode")
    func openBehind() throws {
        let harness = try HubHarness()
        let old: Peer = harness.client("old")
        harness.holdsCommits = true
        let peer: Peer = harness.connect()
        peer.send(Self.opening())
        old.send(edit("k", "x", to: "clear"))
        harness.holdsCommits = false
        harness.settle()
        #expect(peer.take() == [Self.auth, Self.sealed])
        let reported: [String] = old.take()
        #expect(reported.contains(Self.sealed) && reported.contains { $0.contains(#""error":400"#) }, "\(reported)")
    }

    @Test("a client that disconnects or opens another bucket while it waits is forgotten")
    func leaving() throws {
        let harness = try HubHarness()
        harness.holdsCommits = true
        let (one, two): (Peer, Peer) = (harness.connect(), harness.connect())
        one.send(Self.opening())
        two.send(Self.opening())
        one.close()
        two.send(Self.opening(nil, bucket: "other"))
        harness.holdsCommits = false
        harness.settle()
        #expect(one.take() == [] && two.take() == [Self.auth])
        #expect(harness.connect().ask(Self.opening(nil)) == [Self.auth, Self.sealed])
    }

    @Test("a word that is not a mode seals nothing, nor does a reader")
    func noWish() throws {
        let harness = try HubHarness()
        for mode: String in ["SEALED", "sealed ", "closed", ""] {
            #expect(harness.connect().ask(Self.opening(mode)) == [Self.auth, Self.open], "\(mode)")
        }
        #expect(harness.connect().ask(Self.opening(token: "read-token")) == [Self.auth])
        #expect(try harness.store.makeReader().bucket(Self.bucket()) == nil)
    }

    /// A token of ann that is valid for 30 s.
    private static func grantShort(_ harness: HubHarness, isReadOnly: Bool = false) throws {
        harness.store.addGrant(
            TokenGrant(
                app: try AppID("app"), user: try UserID("ann@example.com"), isReadOnly: isReadOnly,
                expires: harness.now.unix + 30_000),
            tokenHash: Hash.sha256(Array("short-token".utf8)))
    }

    private static func isExpired(_ reported: [String]) -> Bool {
        reported.count == 1 && reported[0].contains("Token expired")
    }

    @Test("a bucket that becomes sealed while a channel is between two tokens is reported after the next auth")
    func betweenTokens() throws {
        let harness = try HubHarness()
        try Self.grantShort(harness)
        let peer: Peer = harness.connect()
        #expect(peer.ask(Self.opening(nil, token: "short-token")) == [Self.auth])
        harness.pass(seconds: 30)
        #expect(Self.isExpired(peer.take()))
        let (app, name): (AppID, BucketName) = (try AppID("app"), try BucketName("notes"))
        harness.store.setMode(.sealed, ofNew: name, in: app)
        harness.hub.changeMode(app, name, .sealed)
        harness.settle()
        #expect(peer.take() == [], "nothing is delivered without a token")
        #expect(peer.ask(Self.opening(nil)) == [Self.auth, Self.sealed])
    }

    @Test("a renewal is answered with the bucket's mode when it asks, and otherwise only with a sealed one")
    func renewalAsks() throws {
        for (mode, first, then): (String?, [String], [String]) in [
            (nil, [Self.auth], [Self.auth]), ("open", [Self.auth, Self.open], [Self.auth, Self.open]),
            ("sealed", [Self.auth, Self.sealed], [Self.auth, Self.sealed]),
        ] {
            let harness = try HubHarness()
            try Self.grantShort(harness)
            let peer: Peer = harness.connect()
            #expect(peer.ask(Self.opening(mode, token: "short-token")) == first)
            harness.pass(seconds: 30)
            #expect(Self.isExpired(peer.take()))
            #expect(peer.ask(Self.opening(mode)) == then)
        }
    }

    @Test("a reader that wanted a new bucket sealed seals it with its next token that may write")
    func readerWrites() throws {
        let harness = try HubHarness()
        try Self.grantShort(harness, isReadOnly: true)
        let peer: Peer = harness.connect()
        #expect(peer.ask(Self.opening(token: "short-token")) == [Self.auth])
        harness.pass(seconds: 30)
        #expect(Self.isExpired(peer.take()))
        #expect(peer.ask(Self.opening()) == [Self.auth, Self.sealed])
        #expect(try harness.store.makeReader().bucket(Self.bucket())?.mode == .sealed)
        _ = peer.ask("0:i:1:::10")
        #expect(peer.ask(Self.creation(1)).first?.contains(#""ev":1"#) == true)
    }

    @Test("an operator's mode reaches clients that have the bucket open, and holds for what they write next")
    func byOperator() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c")
        let (app, name): (AppID, BucketName) = (try AppID("app"), try BucketName("notes"))
        harness.store.setMode(.sealed, ofNew: name, in: app)
        harness.hub.changeMode(app, name, .sealed)
        harness.settle()
        #expect(peer.take() == [Self.sealed])
        #expect(peer.ask(edit("k", "x", to: "clear")).first?.contains(#""error":400"#) == true)
        #expect(peer.ask(Self.creation(1)).first?.contains(#""ev":1"#) == true)
    }
}
