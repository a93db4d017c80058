import Testing
import ThicketClient
import ThicketProtocol

@Suite("When ghost and server do not fit")
struct ReloadTests {
    private func change(_ key: String, _ sv: Int, _ ev: Int, _ v: String) -> String {
        #"0:c:[{"clientid":"x","cv":"cv\#(ev)","id":"\#(key)","o":"M","v":\#(v),"sv":\#(sv),"ev":\#(ev),"ccids":["q\#(ev)"]}]"#
    }

    @Test("a change on a version we do not have asks for the object, and edits are carried over the gap")
    func gap() throws {
        var talk: Transcript = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        _ = talk.machine.goOffline(now: talk.now)
        _ = try talk.type("a", at: 3, "!")
        _ = talk.connect()
        #expect(
            talk.hear("0:auth:user@example.com", change("a", 4, 5, #"{"t":{"o":"d","v":"=6\t+x"}}"#)) == ["0:cv:cv5"])
        #expect(talk.hear("0:c:[]") == ["0:e:a.5"])
        let sent: [String] = talk.hear("0:e:a.5\n{\"data\":{\"t\":\"ZZabcdx\"}}")
        #expect(try talk.local("a") == #"{"t":"ZZabcdx!"}"#)
        #expect(sent.first?.contains(#""sv":5"#) == true)
    }

    @Test("a diff that does not fit asks for the object; what came meanwhile is asked for too")
    func misfit() throws {
        var talk: Transcript = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        #expect(talk.hear(change("a", 1, 2, #"{"t":{"o":"d","v":"=9\t+x"}}"#)) == ["0:e:a.2"])
        #expect(talk.hear(change("a", 2, 3, #"{"t":{"o":"d","v":"=9\t+y"}}"#)).isEmpty)
        #expect(talk.hear("0:e:a.2\n{\"data\":{\"t\":\"two\"}}") == ["0:e:a.3"])
        #expect(talk.hear("0:e:a.3\n{\"data\":{\"t\":\"three\"}}").isEmpty)
        #expect(try talk.ghost("a") == (3, #"{"t":"three"}"#))
    }

    @Test("the wish for an object survives a restart")
    func survives() throws {
        var talk: Transcript = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        #expect(talk.hear(change("a", 7, 8, "{}")) == ["0:e:a.8"])
        var again: Transcript = try Transcript(store: talk.store)
        _ = again.connect()
        #expect(again.hear("0:auth:user@example.com", "0:c:[]") == ["0:e:a.8"])
    }

    @Test("a version the server no longer has leads to the index")
    func unknownVersion() throws {
        var talk: Transcript = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        #expect(talk.hear(change("a", 7, 8, "{}")) == ["0:e:a.8"])
        #expect(talk.hear("0:e:a.8\n?") == ["0:i:1:::1000"])
        #expect(talk.hear(#"0:i:{"current":"c9","index":[{"id":"a","v":9,"d":{"t":"nine"}}]}"#) == ["0:cv:c9"])
        #expect(talk.hear("0:c:[]").isEmpty)
        #expect(try talk.ghost("a") == (9, #"{"t":"nine"}"#))
        #expect(talk.machine.status == .upToDate)
    }

    @Test("a change that was seen already is ignored")
    func seen() throws {
        var talk: Transcript = try Transcript()
        _ = talk.live([("a", 5, #"{"t":"abc"}"#)])
        #expect(talk.events(change("a", 3, 4, #"{"t":{"o":"d","v":"=9\t+x"}}"#)).isEmpty)
        #expect(try talk.ghost("a").version == 5)
    }

    /// A pending change whose fate is unknown, and an index that may hold it already.
    private func held() throws -> (Transcript, String) {
        var talk: Transcript = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        let sent: [String] = try talk.type("a", at: 3, "P")
        _ = try talk.type("a", at: 4, "L")
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        _ = talk.connect()
        #expect(talk.hear("0:auth:user@example.com", "0:cv:?") == ["0:i:1:::1000"])
        return (talk, try #require(sent.first))
    }

    @Test("409: the change is inside the new ghost; later edits are carried over the rest")
    func inside() throws {
        var (talk, first): (Transcript, String) = try held()
        #expect(talk.events(#"0:i:{"current":"c9","index":[{"id":"a","v":3,"d":{"t":"RabcP"}}]}"#).isEmpty)
        #expect(talk.hear("0:c:[]") == [first], "the same bytes: only the server knows")
        let next: [String] = talk.hear(#"0:c:[{"clientid":"me","id":"a","error":409,"ccids":["\#(ccid(first))"]}]"#)
        #expect(try talk.local("a") == #"{"t":"RabcPL"}"#)
        #expect(next.first?.contains(#""sv":3,"o":"M","v":{"t":{"o":"d","v":"=5\t+L"}}"#) == true)
    }

    @Test("an acknowledgement: the change was not inside, and is applied on top")
    func onTop() throws {
        var (talk, first): (Transcript, String) = try held()
        _ = talk.hear(#"0:i:{"current":"c9","index":[{"id":"a","v":3,"d":{"t":"Rabc"}}]}"#)
        #expect(talk.hear("0:c:[]") == [first])
        _ = talk.hear(
            #"0:c:[{"clientid":"me","cv":"c10","id":"a","o":"M","v":{"t":{"o":"d","v":"=4\t+P"}},"sv":3,"ev":4,"ccids":["\#(ccid(first))"]}]"#
        )
        #expect(try talk.local("a") == #"{"t":"RabcPL"}"#)
        #expect(try talk.ghost("a") == (4, #"{"t":"RabcP"}"#))
    }

    @Test("405: the edit goes again, made from the new ghost, with nothing lost")
    func tooOld() throws {
        var (talk, first): (Transcript, String) = try held()
        _ = talk.hear(#"0:i:{"current":"c9","index":[{"id":"a","v":90,"d":{"t":"Rabc"}}]}"#)
        #expect(talk.hear("0:c:[]") == [first])
        let next: [String] = talk.hear(#"0:c:[{"clientid":"me","id":"a","error":405,"ccids":["\#(ccid(first))"]}]"#)
        #expect(next.first?.contains(#""sv":90,"o":"M","v":{"t":{"o":"d","v":"=4\t+PL"}}"#) == true)
        #expect(ccid(next.first) != ccid(first))
    }

    @Test("an object that is in no index comes back when its change is refused")
    func heldGone() throws {
        var (talk, first): (Transcript, String) = try held()
        _ = talk.hear(#"0:i:{"current":"c9","index":[{"id":"b","v":1,"d":{}}]}"#)
        #expect(try talk.local("a") == #"{"t":"abcPL"}"#)
        #expect(talk.hear("0:c:[]") == [first])
        let next: [String] = talk.hear(#"0:c:[{"clientid":"me","id":"a","error":404,"ccids":["\#(ccid(first))"]}]"#)
        #expect(next.first?.contains(#""v":{"t":{"o":"+","v":"abcPL"}}"#) == true)
    }
}

@Suite("Refusals, by code")
struct RefusalTests {
    private func refused(_ code: Int) throws -> (talk: Transcript, first: String, answer: [SyncAction]) {
        var talk: Transcript = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"abc"}"#), ("b", 1, #"{"t":"x"}"#)])
        let first: String = try #require(try talk.type("a", at: 3, "P").first)
        let answer: [SyncAction] = talk.actions([
            #"0:c:[{"clientid":"me","id":"a","error":\#(code),"ccids":["\#(ccid(first))"]}]"#
        ])
        return (talk, first, answer)
    }

    @Test(
        "400 and 413: told once, kept, not sent again until the next edit; other objects go on", arguments: [400, 413])
    func givenUp(code: Int) throws {
        var (talk, _, answer): (Transcript, String, [SyncAction]) = try refused(code)
        #expect(talk.sent(answer).isEmpty)
        let told: [Int?] = answer.compactMap { action -> Int?? in
            guard case .event(_, .refused(let edit)) = action else { return nil }
            return .some(edit.error.number)
        }
        #expect(told == [code])
        #expect(try talk.local("a") == #"{"t":"abcP"}"#)
        #expect(try talk.type("b", at: 0, "y").count == 1)
        let again: [String] = try talk.type("a", at: 4, "Q")
        #expect(again.first?.contains(#""v":{"t":{"o":"d","v":"=3\t+PQ"}}"#) == true)
        var restarted: Transcript = try Transcript(store: talk.store)
        #expect(try restarted.local("a") == #"{"t":"abcPQ"}"#)
    }

    @Test("a refused edit is not sent by a restart either, and still rides over foreign changes")
    func stalled() throws {
        let (talk, _, _): (Transcript, String, [SyncAction]) = try refused(413)
        var again: Transcript = try Transcript(store: talk.store)
        _ = again.connect()
        let sent: [String] = again.hear(
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
        "what the server refused can be given up: the object is as the server has it, and edits go on from there",
        arguments: [400, 401, 413])
    func discarded(code: Int) throws {
        var (talk, _, _): (Transcript, String, [SyncAction]) = try refused(code)
        let key: EntityKey = try EntityKey("a")
        #expect(try talk.machine.isRefused(talk.notes, key))
        let told: [SyncAction] = try talk.machine.discard(talk.notes, key, now: talk.now)
        #expect(told.contains { if case .event(_, .changed(let change)) = $0 { change.key == "a" } else { false } })
        #expect(try talk.local("a") == #"{"t":"abc"}"#)
        #expect(talk.machine.unconfirmed(talk.notes) == (0, 0) && talk.machine.isSynced(talk.notes))
        #expect(try talk.machine.isRefused(talk.notes, key) == false)
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        _ = talk.connect()
        #expect(talk.hear("0:auth:user@example.com", "0:c:[]").isEmpty, "it is not sent again")
        let next: [String] = try talk.type("a", at: 0, "x")
        #expect(next.first?.contains(#""sv":1,"o":"M","v":{"t":{"o":"d","v":"+x\t=3"}}"#) == true)
    }

    @Test("an edit whose fate is open cannot be given up", arguments: [500, 503, 405, 440])
    func notDiscarded(code: Int) throws {
        var (talk, _, _): (Transcript, String, [SyncAction]) = try refused(code)
        #expect(try talk.machine.isRefused(talk.notes, try EntityKey("a")) == false)
        _ = try talk.type("b", at: 0, "y")
        #expect(try talk.machine.isRefused(talk.notes, try EntityKey("b")) == false)
    }

    @Test("440: the whole object goes along, under a new ccid")
    func invalidDiff() throws {
        let (talk, first, answer): (Transcript, String, [SyncAction]) = try refused(440)
        let next: [String] = talk.sent(answer)
        #expect(next.first?.contains(#""sv":1,"o":"M","v":{"t":{"o":"d","v":"=3\t+P"}},"d":{"t":"abcP"}"#) == true)
        #expect(ccid(next.first) != ccid(first))
    }

    @Test("405 on our newest version: look into the index, send again, then as a whole, then give up")
    func badVersion() throws {
        var (talk, _, answer): (Transcript, String, [SyncAction]) = try refused(405)
        #expect(talk.sent(answer) == ["0:i:1:::1000"])
        var sent: [String] = []
        for round: Int in 0..<8 {
            let page: [String] = talk.hear(
                #"0:i:{"current":"c9","index":[{"id":"a","v":1,"d":{"t":"abc"}},{"id":"b","v":1,"d":{"t":"x"}}]}"#)
            guard page == ["0:cv:c9"] else { break }
            let change: [String] = talk.hear("0:c:[]")
            guard let last: String = change.last else { break }
            #expect(change.count == 1, "round \(round)")
            sent.append(last)
            _ = talk.hear(#"0:c:[{"clientid":"me","id":"a","error":405,"ccids":["\#(ccid(last))"]}]"#)
        }
        try #require(sent.count == 4)
        #expect(!sent[0].contains("\"d\":{"))
        #expect(sent[1].contains("\"d\":{"))
        #expect(Set(sent.map(ccid)).count == 4)
        #expect(try talk.local("a") == #"{"t":"abcP"}"#)
        #expect(talk.machine.unconfirmed(talk.notes) == (1, 1))
    }

    @Test("412: the server has it like that already")
    func empty() throws {
        let (talk, _, answer): (Transcript, String, [SyncAction]) = try refused(412)
        #expect(talk.sent(answer).isEmpty)
        #expect(talk.machine.status == .upToDate)
    }

    @Test("500, 503 and unknown 5xx: the same bytes again after a pause that grows", arguments: [500, 503, 599])
    func later(code: Int) throws {
        var (talk, first, answer): (Transcript, String, [SyncAction]) = try refused(code)
        #expect(talk.sent(answer).isEmpty)
        var pauses: [Int64] = []
        for _: Int in 0..<4 {
            let due: Int64 = try #require(talk.machine.deadline)
            pauses.append(due - talk.now)
            talk.now = due
            #expect(talk.sent(talk.machine.tick(now: due)) == [first])
            _ = talk.hear(#"0:c:[{"clientid":"me","id":"a","error":\#(code),"ccids":["\#(ccid(first))"]}]"#)
        }
        #expect(pauses.allSatisfy { (500...8_000).contains($0) })
        #expect(pauses[3] > pauses[0])
    }

    @Test("401: told once; nothing is sent on this connection, all of it on the next")
    func readOnly() throws {
        var (talk, first, answer): (Transcript, String, [SyncAction]) = try refused(401)
        #expect(answer.contains { if case .event(_, .refused) = $0 { true } else { false } })
        #expect(try talk.type("b", at: 0, "y").isEmpty)
        #expect(talk.machine.isReadOnly(talk.notes))
        _ = talk.machine.closed(LinkClosure(detail: "cut"), now: talk.now)
        _ = talk.connect()
        let sent: [String] = talk.hear("0:auth:user@example.com", "0:c:[]")
        #expect(sent.first == first)
        #expect(sent.count == 2)
    }

    @Test("a connection closed because of a too large message: the largest change waits, the rest goes")
    func messageTooBig() throws {
        var talk: Transcript = try Transcript()
        _ = talk.live()
        _ = try talk.set("small", "{\"n\":1}")
        _ = try talk.set("large", "{\"t\":\"\(String(repeating: "x", count: 100_000))\"}")
        let told: [SyncAction] = talk.machine.closed(LinkClosure(code: 1009, detail: "too big"), now: talk.now)
        #expect(told.contains { if case .event(_, .refused(let edit)) = $0 { edit.key == "large" } else { false } })
        _ = talk.connect()
        let sent: [String] = talk.hear("0:auth:user@example.com", "0:c:[]")
        #expect(sent.count == 1)
        #expect(sent[0].contains("small"))
    }
}

@Suite("The connection")
struct LinkTests {
    @Test("a heartbeat after 20 s of silence; without an answer the connection is given up")
    func heartbeat() throws {
        var talk: Transcript = try Transcript()
        _ = talk.live()
        #expect(talk.machine.deadline == talk.now + 20_000)
        talk.now += 20_000
        #expect(talk.sent(talk.machine.tick(now: talk.now)) == ["h:0"])
        #expect(talk.hear("h:1").isEmpty)
        talk.now += 20_000
        #expect(talk.sent(talk.machine.tick(now: talk.now)) == ["h:2"])
        talk.now += 10_000
        #expect(talk.machine.tick(now: talk.now).contains(.disconnect))
    }

    @Test("pauses between attempts grow, vary, and stay bounded")
    func backoff() throws {
        var talk: Transcript = try Transcript()
        var pauses: [Int64] = []
        for _: Int in 0..<14 {
            talk.now = max(talk.now, talk.machine.deadline ?? talk.now)
            #expect(talk.machine.tick(now: talk.now).contains(.connect))
            _ = talk.machine.closed(LinkClosure(detail: "refused"), now: talk.now)
            pauses.append(try #require(talk.machine.deadline) - talk.now)
        }
        #expect(pauses[0] <= 250)
        #expect(pauses.allSatisfy { $0 <= 60_000 })
        #expect(pauses.suffix(3).allSatisfy { $0 >= 30_000 })
        #expect(Set(pauses.suffix(3)).count > 1, "jitter")
        #expect(talk.machine.status == .offline(.unreachable("refused")))
    }

    @Test("an attempt that hangs is given up")
    func hangs() throws {
        var talk: Transcript = try Transcript()
        _ = talk.machine.goOnline(now: talk.now)
        talk.now += 30_000
        #expect(talk.machine.tick(now: talk.now).first == .disconnect)
    }

    @Test("offline means offline until asked; edits wait and go out then")
    func switches() throws {
        var talk: Transcript = try Transcript()
        _ = talk.live()
        #expect(talk.machine.goOffline(now: talk.now) == [.disconnect, .status(.offline(.requested))])
        #expect(talk.machine.deadline == nil)
        #expect(try talk.set("a", "{\"n\":1}").isEmpty)
        _ = talk.connect()
        #expect(talk.hear("0:auth:user@example.com", "0:c:[]").count == 1)
    }

    @Test("a request that is never answered ends the connection")
    func unanswered() throws {
        var talk: Transcript = try Transcript()
        _ = talk.connect()
        talk.now += 20_000
        _ = talk.machine.tick(now: talk.now)
        _ = talk.hear("h:1")
        talk.now += 20_000
        _ = talk.machine.tick(now: talk.now)
        _ = talk.hear("h:3")
        talk.now += 20_001
        #expect(talk.machine.tick(now: talk.now).contains(.disconnect))
    }

    @Test("the server gets the state it asks for, without content")
    func state() throws {
        var talk: Transcript = try Transcript()
        _ = talk.live([("a", 3, #"{"t":"secret"}"#)])
        let id: String = ccid(try talk.type("a", at: 0, "x").first)
        let answer: [String] = talk.hear("0:index")
        #expect(answer.count == 1)
        #expect(
            answer[0].hasPrefix(
                #"0:index:{"current":"cv1","index":[{"id":"a","v":3}],"pending":[{"id":"a","sv":3,"ccid":"\#(id)"}]"#))
        #expect(!answer[0].contains("secret"))
    }

    @Test("log lines go out only while the server wants them")
    func log() throws {
        var talk: Transcript = try Transcript()
        _ = talk.live()
        #expect(talk.hear("log:1").first?.hasPrefix("log:{\"log\":") == true)
        #expect(talk.hear("0:c:nonsense").contains { $0.hasPrefix("log:") })
        #expect(talk.hear("log:0").isEmpty)
    }

    @Test(
        "what cannot be read leads to the index, since its content is lost",
        arguments: [
            "0:c:{", "0:c:[{}]", #"0:c:[{"id":"a","o":"M","ev":"x","cv":"1","ccids":[]}]"#,
        ])
    func unreadable(text: String) throws {
        var talk: Transcript = try Transcript()
        _ = talk.live([("a", 1, "{}")])
        #expect(talk.hear(text).contains("0:i:1:::1000"))
    }

    @Test(
        "nonsense that concerns no bucket of ours is ignored",
        arguments: [
            "", "x", "h:", "h:x", "99:c:[]", "0:?", "0:o:{}", "0:zzz:1", "log:", ":::", "0:e:a.1\n?",
            "0:e:a.1\n{\"data\":{}}",
        ])
    func nonsense(text: String) throws {
        var talk: Transcript = try Transcript()
        _ = talk.live([("a", 1, "{}")])
        #expect(talk.hear(text).isEmpty)
        #expect(try talk.set("a", #"{"n":1}"#).count == 1)
    }

    @Test("a position that the server does not know leads to the index, also when a late answer came before")
    func lateUnknownPosition() throws {
        var talk: Transcript = try Transcript()
        _ = talk.live([("a", 1, "{}")])
        let change: String = try #require(try talk.set("a", #"{"n":1}"#).first)
        let ccid: String = try #require(
            try JSONValue(parsing: String(change.dropFirst("0:c:".count)))["ccid"]?.stringValue)
        let other: String = try #require(try talk.set("b", "{}").first)
        let known: String = try #require(
            try JSONValue(parsing: String(other.dropFirst("0:c:".count)))["ccid"]?.stringValue)
        // 409 leads to the index; the other change is still in flight when that is read.
        let again: [String] = talk.hear(
            #"0:c:[{"clientid":"x","id":"b","error":409,"ccids":["\#(known)"]}]"#)
        #expect(again == ["0:i:1:::1000"])
        #expect(talk.hear(#"0:i:{"current":"cv1","index":[{"id":"a","v":1,"d":{}}]}"#) == ["0:cv:cv1"])
        let diff: String = #"{"n":{"o":"+","v":1}}"#
        let late: [String] = talk.hear(
            #"0:c:[{"clientid":"x","cv":"cv2","id":"a","o":"M","v":\#(diff),"sv":1,"ev":2,"ccids":["\#(ccid)"]}]"#)
        #expect(late == ["0:cv:cv1"])
        #expect(talk.hear("0:cv:?").isEmpty, "the second index in a row waits a moment")
        talk.now = try #require(talk.machine.deadline)
        #expect(talk.sent(talk.machine.tick(now: talk.now)) == ["0:i:1:::1000"])
        #expect(!talk.machine.isSynced(talk.notes))
    }

    @Test("members stand in the server's order once an edit is confirmed")
    func memberOrder() throws {
        var talk: Transcript = try Transcript()
        _ = talk.live()
        let change: String = try #require(try talk.set("a", #"{"l":[2],"t":"x"}"#).first)
        let ccid: String = try #require(
            try JSONValue(parsing: String(change.dropFirst("0:c:".count)))["ccid"]?.stringValue)
        let diff: String = #"{"t":{"o":"+","v":"x"},"l":{"o":"+","v":[2]}}"#
        _ = talk.hear(#"0:c:[{"clientid":"x","cv":"cv2","id":"a","o":"M","v":\#(diff),"ev":1,"ccids":["\#(ccid)"]}]"#)
        #expect(try talk.local("a") == #"{"t":"x","l":[2]}"#)
        #expect(try talk.ghost("a").json == #"{"t":"x","l":[2]}"#)
    }

    @Test("a deletion stays one when the object is read anew, with little left of the text around it")
    func deletionOverGap() throws {
        var talk: Transcript = try Transcript()
        _ = talk.live([("a", 1, #"{"t":"abc"}"#)])
        _ = talk.machine.goOffline(now: talk.now)
        _ = try talk.type("a", at: 1, "", deleting: 1)
        _ = talk.connect()
        // Others typed around every character meanwhile, and the log that tells how is gone.
        _ = talk.hear("0:auth:user@example.com", "0:cv:?")
        _ = talk.hear(#"0:i:{"current":"cv9","index":[{"id":"a","v":9,"d":{"t":"1a2b3c4"}}]}"#)
        #expect(try talk.local("a") == #"{"t":"1a23c4"}"#)
    }
}
