import Testing
import ThicketClient
import ThicketNonces
import ThicketProtocol

@Suite("Index scans and the storage of their pages", .nonceWatch)
struct IndexScanTests {
    /// A page with one object for each key, all of version 2 and with the key as text.
    private func page(_ keys: [String], mark: String? = nil, version: Int = 2) -> String {
        let list = keys.map { #"{"id":"\#($0)","v":\#(version),"d":{"t":"\#($0)"}}"# }.joined(separator: ",")
        return #"0:i:{"current":"c1","index":[\#(list)]\#(mark.map { #","mark":"\#($0)""# } ?? "")}"#
    }

    /// Connected, and the first page is requested.
    private func scanning(
        _ kind: BucketKind, hasReader: Bool = false, script: SealedScript? = nil
    ) throws -> Transcript {
        var talk = try Transcript(kind, script: script)
        talk.machine.bucketsWithReaders = hasReader ? nil : []
        _ = talk.connect()
        _ = talk.hear("0:auth:user@example.com")
        return talk
    }

    @Test("the next page is requested before the last one is stored, and only once", arguments: BucketKind.allCases)
    func asksAhead(kind: BucketKind) throws {
        var talk = try scanning(kind)
        let first = talk.batch([page(["a"], mark: "m1")])
        let commits = talk.store.commits
        #expect(talk.sent(talk.machine.ahead(of: first, now: talk.now)) == ["0:i:1:m1::1000"])
        #expect(talk.store.commits == commits)
        #expect(talk.sent(talk.machine.received(first, now: talk.now)).isEmpty)
        #expect(talk.store.commits == commits + 1)
        #expect(talk.hear(page(["b"], mark: "m2")) == ["0:i:1:m2::1000"])
        #expect(talk.hear(page(["c"])) == ["0:cv:c1"])
        for key in ["a", "b", "c"] { #expect(try talk.local(key) == #"{"t":"\#(key)"}"#) }
    }

    @Test(
        "a page that was requested ahead and does not come ends the connection, like any other",
        arguments: BucketKind.allCases)
    func unanswered(kind: BucketKind) throws {
        var talk = try scanning(kind)
        talk.now += 5_000
        _ = talk.hear(page(["a"], mark: "m1"))
        let due = talk.now + SyncLimits.answerMilliseconds
        for time in stride(from: talk.now, to: due, by: 10_000) {
            _ = talk.machine.tick(now: time)
            _ = talk.machine.received([Array("h:1".utf8)], now: time)
        }
        #expect(talk.machine.tick(now: due - 1).contains(.disconnect) == false)
        #expect(talk.machine.tick(now: due).contains(.disconnect))
    }

    @Test(
        "nothing is requested ahead after the last page, for a bucket not being read, or at a repeated mark",
        arguments: BucketKind.allCases)
    func asksNothing(kind: BucketKind) throws {
        var talk = try scanning(kind)
        for text in [
            page(["a"]), page(["a"], mark: "m1").replacing("0:i", with: "1:i"), "0:i:{", "h:1", "0:c:[]",
        ] {
            #expect(talk.machine.ahead(of: talk.batch([text]), now: talk.now).isEmpty)
        }
        _ = talk.hear(page(["a"], mark: "m1"))
        let stuck = talk.batch([page(["b"], mark: "m1")])
        #expect(talk.machine.ahead(of: stuck, now: talk.now).isEmpty)
        #expect(talk.machine.received(stuck, now: talk.now).contains(.disconnect))
        _ = talk.machine.goOffline(now: talk.now)
        #expect(talk.machine.ahead(of: talk.batch([page(["a"], mark: "m2")]), now: talk.now).isEmpty)
        var live = try Transcript(kind)
        _ = live.live()
        #expect(live.machine.ahead(of: live.batch([page(["a"], mark: "m1")]), now: live.now).isEmpty)
    }

    @Test(
        "when the connection ends between request and storage, the page that was not stored is requested again",
        arguments: BucketKind.allCases)
    func lostBetween(kind: BucketKind) throws {
        var talk = try scanning(kind)
        _ = talk.hear(page(["a"], mark: "m1"))
        _ = talk.machine.ahead(of: talk.batch([page(["b"], mark: "m2")]), now: talk.now)
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        #expect(talk.connect().first?.contains(#""cmd":"i:1:m1::1000""#) == true)
        #expect(talk.hear("0:auth:user@example.com").isEmpty)
        #expect(talk.hear(page(["b"], mark: "m2")) == ["0:i:1:m2::1000"])
        #expect(talk.hear(page(["c"])) == ["0:cv:c1"])
        for key in ["a", "b", "c"] { #expect(try talk.local(key) == #"{"t":"\#(key)"}"#) }
    }

    @Test(
        "when the store fails after a request ahead, the scan continues from the last stored page",
        arguments: BucketKind.allCases)
    func storeFails(kind: BucketKind) throws {
        var talk = try scanning(kind)
        _ = talk.hear(page(["a"], mark: "m1"))
        talk.store.failsNextCommit = true
        #expect(talk.actions([page(["b"], mark: "m2")]).contains(.disconnect))
        #expect(try talk.local("b") == nil)
        #expect(talk.connect().first?.contains(#""cmd":"i:1:m1::1000""#) == true)
        _ = talk.hear("0:auth:user@example.com")
        #expect(talk.hear(page(["b"])) == ["0:cv:c1"])
        #expect(try talk.local("a") == #"{"t":"a"}"#)
        #expect(try talk.local("b") == #"{"t":"b"}"#)
    }

    @Test(
        "a page that comes twice, or lists an object twice, has the effect of one", arguments: [false, true],
        BucketKind.allCases)
    func twice(hasReader: Bool, kind: BucketKind) throws {
        var talk = try scanning(kind, hasReader: hasReader)
        _ = talk.hear(page(["a", "b", "a"], mark: "m1"))
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        _ = talk.connect()
        _ = talk.hear("0:auth:user@example.com")
        #expect(talk.hear(page(["a", "b", "c"], mark: "m2")) == ["0:i:1:m2::1000"])
        #expect(talk.hear(page(["c"])) == ["0:cv:c1"])
        #expect(try talk.machine.keys(talk.notes, after: nil, limit: 10).map(\.text) == ["a", "b", "c"])
        for key in ["a", "b", "c"] { #expect(try talk.ghost(key) == (2, #"{"t":"\#(key)"}"#)) }
    }

    @Test(
        // One case runs two worlds with the same seed.
        "a change in the same batch as the page is applied, before the page or after it", .noncesGiven,
        arguments: [false, true], BucketKind.allCases)
    func changedMeanwhile(hasReader: Bool, kind: BucketKind) throws {
        let change =
            #"0:c:[{"clientid":"x","cv":"c2","id":"a","o":"M","v":{"n":{"o":"+","v":1}},"sv":2,"ev":3,"ccids":["q"]}]"#
        var behind = try scanning(kind, hasReader: hasReader)
        _ = behind.hear(page(["a", "b"], mark: "m1"), change)
        #expect(try behind.ghost("a") == (3, #"{"t":"a","n":1}"#))
        let new =
            #"0:c:[{"clientid":"x","cv":"c2","id":"a","o":"M","v":{"n":{"o":"+","v":1}},"ev":3,"ccids":["q"]}]"#
        var before = try scanning(kind, hasReader: hasReader)
        _ = before.hear(new, page(["a", "b"], mark: "m1"))
        #expect(try before.ghost("a") == (3, #"{"n":1}"#))
        for var talk in [behind, before] {
            #expect(talk.hear(page(["c"])) == ["0:cv:c1"])
            #expect(try talk.machine.keys(talk.notes, after: nil, limit: 10).map(\.text) == ["a", "b", "c"])
            #expect(try talk.ghost("a").version == 3)
        }
    }

    @Test(
        "an object created here before its page keeps its edit, and both are merged", arguments: [false, true],
        BucketKind.allCases)
    func madeHere(hasReader: Bool, kind: BucketKind) throws {
        var talk = try scanning(kind, hasReader: hasReader)
        _ = try talk.set("a", #"{"mine":1}"#)
        _ = talk.hear(page(["a", "b"]))
        #expect(try talk.local("a") == #"{"t":"a","mine":1}"#)
        #expect(try talk.ghost("a") == (2, #"{"t":"a"}"#))
        let sent = talk.hear("0:c:[]")
        #expect(sent.count == 1)
        #expect(sent.first?.contains(#""sv":2"#) == true)
    }

    @Test(
        "a bucket with a reader reports every object; one without reports nothing and stores the same",
        arguments: BucketKind.allCases)
    func incoming(kind: BucketKind) throws {
        var loud = try scanning(kind, hasReader: true)
        var quiet = try scanning(kind, script: loud.script)
        #expect(loud.events(page(["a", "b"], mark: "m1")).count == 2)
        #expect(quiet.events(page(["a", "b"], mark: "m1")).isEmpty)
        quiet.machine.bucketsWithReaders = [loud.notes]
        #expect(quiet.events(page(["c"])).count == 1)
        _ = loud.hear(page(["c"]))
        for key in ["a", "b", "c"] {
            let address = try loud.address(key)
            #expect(loud.store.entity(address) == quiet.store.entity(address))
        }
        #expect(loud.machine.revision == quiet.machine.revision)
    }

    @Test("an index entry without data is requested alone", arguments: BucketKind.allCases)
    func withoutData(kind: BucketKind) throws {
        var talk = try scanning(kind)
        _ = talk.hear(
            #"0:i:{"current":"c1","index":[{"id":"a","v":2},{"id":"b","v":2,"d":7},{"id":"c","v":1,"d":{}}]}"#)
        #expect(talk.hear("0:c:[]") == ["0:e:a.2", "0:e:b.2"])
        #expect(try talk.local("c") == "{}")
    }
}
