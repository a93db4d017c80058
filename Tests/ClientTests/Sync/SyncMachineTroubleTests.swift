import Testing
import ThicketClient
import ThicketNonces
import ThicketProtocol

@Suite("Ghosts that do not match the server", .nonceWatch)
struct ReloadTests {
    private func change(_ key: String, _ sv: Int, _ ev: Int, _ v: String) -> String {
        #"0:c:[{"clientid":"x","cv":"cv\#(ev)","id":"\#(key)","o":"M","v":\#(v),"sv":\#(sv),"ev":\#(ev),"ccids":["q\#(ev)"]}]"#
    }

    @Test(
        "a change on an unknown version requests the object, and edits are transformed over the gap",
        arguments: BucketKind.allCases)
    func gap(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        _ = talk.machine.goOffline(now: talk.now)
        _ = try talk.type("a", at: 3, "!")
        try talk.serverHolds("a", 4, #"{"t":"ZZabcd"}"#)
        _ = talk.connect()
        #expect(
            talk.hear("0:auth:user@example.com", change("a", 4, 5, #"{"t":{"o":"d","v":"=6\t+x"}}"#)) == ["0:cv:cv5"])
        #expect(talk.hear("0:c:[]") == ["0:e:a.5"])
        let sent = talk.hear("0:e:a.5\n{\"data\":{\"t\":\"ZZabcdx\"}}")
        #expect(try talk.local("a") == #"{"t":"ZZabcdx!"}"#)
        #expect(sent.first?.contains(#""sv":5"#) == true)
    }

    @Test(
        "a diff that does not fit requests the object; a later change is requested, too",
        arguments: BucketKind.allCases)
    func misfit(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        #expect(talk.hear(change("a", 1, 2, #"{"t":{"o":"d","v":"=9\t+x"}}"#)) == ["0:e:a.2"])
        #expect(talk.hear(change("a", 2, 3, #"{"t":{"o":"d","v":"=9\t+y"}}"#)).isEmpty)
        #expect(talk.hear("0:e:a.2\n{\"data\":{\"t\":\"two\"}}") == ["0:e:a.3"])
        #expect(talk.hear("0:e:a.3\n{\"data\":{\"t\":\"three\"}}").isEmpty)
        #expect(try talk.ghost("a") == (3, #"{"t":"three"}"#))
    }

    @Test("the request for an object survives a restart", arguments: BucketKind.allCases)
    func survives(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        try talk.serverHolds("a", 7, #"{"t":"abc"}"#)
        #expect(talk.hear(change("a", 7, 8, "{}")) == ["0:e:a.8"])
        var again = try talk.restarted()
        _ = again.connect()
        #expect(again.hear("0:auth:user@example.com", "0:c:[]") == ["0:e:a.8"])
    }

    @Test("a version the server no longer has leads to the index", arguments: BucketKind.allCases)
    func unknownVersion(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        try talk.serverHolds("a", 7, #"{"t":"abc"}"#)
        #expect(talk.hear(change("a", 7, 8, "{}")) == ["0:e:a.8"])
        #expect(talk.hear("0:e:a.8\n?") == ["0:i:1:::1000"])
        #expect(talk.hear(#"0:i:{"current":"c9","index":[{"id":"a","v":9,"d":{"t":"nine"}}]}"#) == ["0:cv:c9"])
        #expect(talk.hear("0:c:[]").isEmpty)
        #expect(try talk.ghost("a") == (9, #"{"t":"nine"}"#))
        #expect(talk.machine.status == .upToDate)
    }

    @Test("a change that was seen already is ignored", arguments: BucketKind.allCases)
    func seen(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 5, #"{"t":"abc"}"#)])
        try talk.serverHolds("a", 3, #"{"t":"before it"}"#)
        #expect(talk.events(change("a", 3, 4, #"{"t":{"o":"d","v":"=9\t+x"}}"#)).isEmpty)
        #expect(try talk.ghost("a").version == 5)
    }

    /// A pending change with an unknown outcome, and an index that may contain it already.
    private func held(_ kind: BucketKind) throws -> (Transcript, String) {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        let sent = try talk.type("a", at: 3, "P")
        _ = try talk.type("a", at: 4, "L")
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        _ = talk.connect()
        #expect(talk.hear("0:auth:user@example.com", "0:cv:?") == ["0:i:1:::1000"])
        return (talk, try #require(sent.first))
    }

    @Test(
        "409: the change is inside the new ghost; later edits are carried over the rest", arguments: BucketKind.allCases
    )
    func inside(kind: BucketKind) throws {
        var (talk, first) = try held(kind)
        try talk.serverTakes(first)
        let reported = talk.events(#"0:i:{"current":"c9","index":[{"id":"a","v":3,"d":{"t":"RabcP"}}]}"#)
        var next = talk.hear("0:c:[]")
        if kind == .open {
            // It is also unknown whether the state follows ours (0083).
            let isConflict = reported.first.map {
                if case .conflict(let report) = $0 { report.key == "a" } else { false }
            }
            #expect(reported.count == 1 && isConflict == true)
            #expect(next == [first], "the same bytes: only the server knows")
            next = talk.hear(#"0:c:[{"clientid":"me","id":"a","error":409,"ccids":["\#(ccid(first))"]}]"#)
        } else {
            // A sealed object shows what it contains: no question is needed.
            #expect(reported.count == 1 && next.count == 1)
        }
        #expect(try talk.local("a") == #"{"t":"RabcPL"}"#)
        #expect(next.first?.contains(#""sv":3,"o":"M","v":{"t":{"o":"d","v":"=5\t+L"}}"#) == true)
    }

    @Test(
        "after an acknowledgement the change was not in the index's state, and is applied on top",
        arguments: BucketKind.allCases)
    func onTop(kind: BucketKind) throws {
        var (talk, first) = try held(kind)
        _ = talk.hear(#"0:i:{"current":"c9","index":[{"id":"a","v":3,"d":{"t":"Rabc"}}]}"#)
        #expect(talk.hear("0:c:[]") == [talk.again(first, on: 3)])
        _ = talk.hear(
            #"0:c:[{"clientid":"me","cv":"c10","id":"a","o":"M","v":{"t":{"o":"d","v":"=4\t+P"}},"sv":3,"ev":4,"ccids":["\#(ccid(first))"]}]"#
        )
        #expect(try talk.local("a") == #"{"t":"RabcPL"}"#)
        #expect(try talk.ghost("a") == (4, #"{"t":"RabcP"}"#))
    }

    @Test(
        "a change that is too old is made again from the new ghost, with nothing lost",
        arguments: BucketKind.allCases)
    func tooOld(kind: BucketKind) throws {
        var (talk, first) = try held(kind)
        _ = talk.hear(#"0:i:{"current":"c9","index":[{"id":"a","v":90,"d":{"t":"Rabc"}}]}"#)
        #expect(talk.hear("0:c:[]") == [talk.again(first, on: 90)])
        // A sealed change is accepted on any version, but that far after its base it has no effect.
        let answer =
            kind == .open ? #""error":405"# : #""cv":"c10","o":"M","v":{},"sv":90,"ev":91"#
        let next = talk.hear(#"0:c:[{"clientid":"me","id":"a",\#(answer),"ccids":["\#(ccid(first))"]}]"#)
        guard kind == .open else {
            #expect(next.first?.contains(#""sv":91,"o":"M","v":{"t":{"o":"d","v":"=4\t+PL"}}"#) == true)
            return #expect(ccid(next.first) != ccid(first))
        }
        #expect(next.count == 1 && next[0].contains(#""sv":90,"o":"M","v":{"t":{"o":"d","v":"=4\t+P"}}"#))
        #expect(ccid(next.first) == ccid(first))
        let later = talk.hear(
            #"0:c:[{"clientid":"me","cv":"c10","id":"a","o":"M","v":{"t":{"o":"d","v":"=4\t+P"}},"sv":90,"ev":91,"ccids":["\#(ccid(first))"]}]"#
        )
        #expect(later.count == 1 && later[0].contains(#""sv":91,"o":"M","v":{"t":{"o":"d","v":"=5\t+L"}}"#))
    }

    /// Open only: an index does not show why an object of a sealed bucket is missing (`heldMissing`).
    @Test("an object that is in no index is recreated when its change is refused")
    func heldGone() throws {
        var (talk, first) = try held(.open)
        _ = talk.hear(#"0:i:{"current":"c9","index":[{"id":"b","v":1,"d":{}}]}"#)
        #expect(try talk.local("a") == #"{"t":"abcPL"}"#)
        #expect(talk.hear("0:c:[]") == [first])
        let next = talk.hear(#"0:c:[{"clientid":"me","id":"a","error":404,"ccids":["\#(ccid(first))"]}]"#)
        #expect(next.count == 1 && next[0].contains(#""v":{"t":{"o":"+","v":"abcP"}}"#) && ccid(next[0]) == ccid(first))
        #expect(try talk.local("a") == #"{"t":"abcPL"}"#)
    }

    @Test(
        "a sealed object that is in no index stays with its edits and is reported; its change is not sent again")
    func heldMissing() throws {
        var (talk, _) = try held(.sealed)
        #expect(talk.hear(#"0:i:{"current":"c9","index":[{"id":"b","v":1,"d":{}}]}"#) == ["0:cv:cv1"])
        talk.mayAlarm = true
        let reported = talk.events("0:cv:?")
        guard case .integrity(let report)? = reported.first else { throw NotAnObject() }
        #expect(reported.count == 1 && report.kind == .removed && report.key == "a")
        #expect(talk.hear("0:c:[]").isEmpty)
        #expect(try talk.local("a") == #"{"t":"abcPL"}"#)
    }
}

@Suite("Refusals, by code", .nonceWatch)
struct RefusalTests {
    /// All objects, unchanged.
    private static let page =
        #"0:i:{"current":"c9","index":[{"id":"a","v":1,"d":{"t":"abc"}},{"id":"b","v":1,"d":{"t":"x"}}]}"#

    private func refused(
        _ code: Int, _ kind: BucketKind
    ) throws -> (talk: Transcript, first: String, answer: [SyncAction]) {
        var talk = try Transcript(kind)
        _ = talk.live([("a", 1, #"{"t":"abc"}"#), ("b", 1, #"{"t":"x"}"#)])
        let first = try #require(try talk.type("a", at: 3, "P").first)
        let answer = talk.actions([
            #"0:c:[{"clientid":"me","id":"a","error":\#(code),"ccids":["\#(ccid(first))"]}]"#
        ])
        return (talk, first, answer)
    }

    @Test(
        "400 and 413: reported once, kept, not sent again until the next edit; others continue", arguments: [400, 413],
        BucketKind.allCases)
    func givenUp(code: Int, kind: BucketKind) throws {
        var (talk, _, answer) = try refused(code, kind)
        #expect(talk.sent(answer).isEmpty)
        let reported = answer.compactMap { action -> Int?? in
            guard case .event(_, .refused(let edit)) = action else { return nil }
            return .some(edit.error.number)
        }
        #expect(reported == [code])
        #expect(try talk.local("a") == #"{"t":"abcP"}"#)
        #expect(try talk.type("b", at: 0, "y").count == 1)
        let again = try talk.type("a", at: 4, "Q")
        #expect(again.first?.contains(#""v":{"t":{"o":"d","v":"=3\t+PQ"}}"#) == true)
        var restarted = try talk.restarted()
        #expect(try restarted.local("a") == #"{"t":"abcPQ"}"#)
    }

    @Test(
        "a refused edit is not sent after a restart either, and is still rebased over foreign changes",
        arguments: BucketKind.allCases)
    func stalled(kind: BucketKind) throws {
        let (talk, _, _) = try refused(413, kind)
        var again = try talk.restarted()
        _ = again.connect()
        let sent = again.hear(
            "0:auth:user@example.com",
            #"0:c:[{"clientid":"x","cv":"cv2","id":"a","o":"M","v":{"t":{"o":"d","v":"+R\t=3"}},"sv":1,"ev":2,"ccids":["q"]}]"#
        )
        #expect(sent == ["0:cv:cv2"])
        #expect(again.hear("0:c:[]").isEmpty)
        #expect(try again.local("a") == #"{"t":"RabcP"}"#)
        #expect(again.machine.status == .upToDate)
        #expect(again.machine.isSynced(again.notes))
        #expect(again.machine.unconfirmed(again.notes) == (1, 1))
    }

    @Test(
        "a refused edit can be discarded: the object is as on the server, and edits continue from it",
        arguments: [400, 401, 413], BucketKind.allCases)
    func discarded(code: Int, kind: BucketKind) throws {
        var (talk, _, _) = try refused(code, kind)
        let key = try EntityKey("a")
        #expect(try talk.machine.isRefused(talk.notes, key))
        let reported = try talk.machine.discard(talk.notes, key, now: talk.now)
        #expect(reported.contains { if case .event(_, .changed(let change)) = $0 { change.key == "a" } else { false } })
        #expect(try talk.local("a") == #"{"t":"abc"}"#)
        #expect(talk.machine.unconfirmed(talk.notes) == (0, 0) && talk.machine.isSynced(talk.notes))
        #expect(try talk.machine.isRefused(talk.notes, key) == false)
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        _ = talk.connect()
        #expect(talk.hear("0:auth:user@example.com", "0:c:[]").isEmpty, "it is not sent again")
        let next = try talk.type("a", at: 0, "x")
        #expect(next.first?.contains(#""sv":1,"o":"M","v":{"t":{"o":"d","v":"+x\t=3"}}"#) == true)
    }

    @Test("an edit whose outcome is open cannot be discarded", arguments: [500, 503, 405, 440], BucketKind.allCases)
    func notDiscarded(code: Int, kind: BucketKind) throws {
        var (talk, _, _) = try refused(code, kind)
        #expect(try talk.machine.isRefused(talk.notes, try EntityKey("a")) == false)
        _ = try talk.type("b", at: 0, "y")
        #expect(try talk.machine.isRefused(talk.notes, try EntityKey("b")) == false)
    }

    @Test(
        "440: an open change is sent again with the whole object under the same ccid, a sealed one as it was",
        arguments: BucketKind.allCases)
    func invalidDiff(kind: BucketKind) throws {
        var (talk, first, answer) = try refused(440, kind)
        let next = talk.sent(answer)
        guard kind == .open else {
            // A sealed object is never sent as a whole: the same bytes are sent again after an index scan.
            #expect(next == ["0:i:1:::1000"])
            #expect(talk.hear(Self.page) == ["0:cv:c9"])
            return #expect(talk.hear("0:c:[]") == [first])
        }
        #expect(next.first?.contains(#""sv":1,"o":"M","v":{"t":{"o":"d","v":"=3\t+P"}},"d":{"t":"abcP"}"#) == true)
        #expect(ccid(next.first) == ccid(first))
    }

    @Test(
        "405 on the newest version: the index is read, the change sent again, at last as a whole, then given up",
        arguments: BucketKind.allCases)
    func badVersion(kind: BucketKind) throws {
        var (talk, first, answer) = try refused(405, kind)
        #expect(talk.sent(answer) == ["0:i:1:::1000"])
        var sent = [String]()
        for round in 0..<8 {
            let page = talk.hear(Self.page)
            guard page == ["0:cv:c9"] else { break }
            let change = talk.hear("0:c:[]")
            guard let last = change.last else { break }
            #expect(change.count == 1, "round \(round)")
            sent.append(last)
            _ = talk.hear(#"0:c:[{"clientid":"me","id":"a","error":405,"ccids":["\#(ccid(last))"]}]"#)
        }
        try #require(sent.count == 4)
        if kind == .open {
            #expect(sent.map { $0.contains("\"d\":{") } == [false, false, false, true])
            #expect(Set(sent.map(ccid)) == [ccid(first)])
        } else {
            // Never as a whole: the same bytes each time.
            #expect(Set(sent) == [first])
        }
        #expect(try talk.local("a") == #"{"t":"abcP"}"#)
        #expect(talk.machine.unconfirmed(talk.notes) == (1, 1))
    }

    /// Open only: a sealed operation is put before all others and is never empty (`nowhere`).
    @Test("412: the server has this state already, and the change ends")
    func empty() throws {
        let (talk, _, answer) = try refused(412, .open)
        #expect(talk.sent(answer).isEmpty)
        #expect(talk.machine.status == .upToDate)
    }

    @Test(
        "409 or 412 to a sealed change that no state contains: its edit is sent again as another change",
        arguments: [409, 412])
    func nowhere(code: Int) throws {
        var (talk, first, answer) = try refused(code, .sealed)
        #expect(talk.sent(answer) == ["0:i:1:::1000"], "what there is has to be seen first")
        #expect(talk.hear(Self.page) == ["0:cv:c9"])
        let next = talk.hear("0:c:[]")
        #expect(next.count == 1 && next[0].contains(#""sv":1,"o":"M","v":{"t":{"o":"d","v":"=3\t+P"}}"#))
        #expect(ccid(next.first) != ccid(first))
        #expect(try talk.local("a") == #"{"t":"abcP"}"#)
    }

    @Test(
        "500, 503 and unknown 5xx: the same bytes are sent again after growing pauses", arguments: [500, 503, 599],
        BucketKind.allCases)
    func later(code: Int, kind: BucketKind) throws {
        var (talk, first, answer) = try refused(code, kind)
        #expect(talk.sent(answer).isEmpty)
        var pauses = [Int64]()
        for _ in 0..<4 {
            let due = try #require(talk.machine.deadline)
            pauses.append(due - talk.now)
            talk.now = due
            #expect(talk.sent(talk.machine.tick(now: due)) == [first])
            _ = talk.hear(#"0:c:[{"clientid":"me","id":"a","error":\#(code),"ccids":["\#(ccid(first))"]}]"#)
        }
        #expect(pauses.allSatisfy { (500...8_000).contains($0) })
        #expect(pauses[3] > pauses[0])
    }

    @Test(
        "401: reported as refused; nothing is sent on this connection, everything on the next",
        arguments: BucketKind.allCases)
    func readOnly(kind: BucketKind) throws {
        var (talk, first, answer) = try refused(401, kind)
        #expect(answer.contains { if case .event(_, .refused) = $0 { true } else { false } })
        #expect(try talk.type("b", at: 0, "y").isEmpty)
        #expect(talk.machine.isReadOnly(talk.notes))
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        _ = talk.connect()
        let sent = talk.hear("0:auth:user@example.com", "0:c:[]")
        #expect(sent.first == first)
        #expect(sent.count == 2)
    }

    @Test(
        "a connection closed for a too large message (1009): the largest change waits, the rest is sent",
        arguments: BucketKind.allCases)
    func messageTooBig(kind: BucketKind) throws {
        var talk = try Transcript(kind)
        _ = talk.live()
        _ = try talk.set("small", "{\"n\":1}")
        _ = try talk.set("large", "{\"t\":\"\(String(repeating: "x", count: 100_000))\"}")
        let reported = talk.machine.closed(LinkClosure(code: 1009, detail: "too big"), now: talk.now)
        #expect(reported.contains { if case .event(_, .refused(let edit)) = $0 { edit.key == "large" } else { false } })
        _ = talk.connect()
        let sent = talk.hear("0:auth:user@example.com", "0:c:[]")
        #expect(sent.count == 1)
        #expect(sent[0].contains("small"))
    }
}
