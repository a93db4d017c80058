import Testing
import ThicketProtocol
@testable import ThicketScheduling

@testable import ThicketServer

/// `c` in both directions: acknowledgements, broadcasts, refusals (wire contract, section 6).
struct ChangeFlowTests {
    private func applied(
        _ harness: HubHarness, _ gid: GlobalID, by client: String, _ key: String, _ ccid: String, sv: Int? = nil,
        ev: Int,
        _ diff: String
    ) throws -> String {
        let source: String = sv.map { "\"sv\":\($0)," } ?? ""
        return
            "{\"clientid\":\"\(client)\",\"cv\":\"\(try harness.cv(gid))\",\"id\":\"\(key)\",\"o\":\"M\",\"v\":\(diff),"
            + "\(source)\"ev\":\(ev),\"ccids\":[\"\(ccid)\"]}"
    }

    @Test("a change is acknowledged to its sender and broadcast to channels that follow the bucket, in the same bytes")
    func acknowledged() throws {
        let harness = try HubHarness()
        let ann: Peer = harness.client("ann")
        let bob: Peer = harness.client("bob")
        let silent: Peer = harness.client("silent")
        let outsider: Peer = harness.client("stranger", token: "bob-token")
        let empty: String = try harness.cv(0)
        for peer: Peer in [ann, bob] { #expect(peer.ask("0:cv:\(empty)") == ["0:c:[]"]) }
        _ = outsider.ask("0:i::::10")
        ann.send(edit("k", "x1", to: "a"))
        let expected: String = try applied(harness, 1, by: "ann", "k", "x1", ev: 1, #"{"t":{"o":"+","v":"a"}}"#)
        #expect(ann.take() == ["0:c:[\(expected)]"])
        #expect(bob.take() == ["0:c:[\(expected)]"])
        #expect(silent.take().isEmpty, "a channel that never asked receives no changes of others")
        #expect(outsider.take().isEmpty, "another user's bucket of the same name is another bucket")
    }

    @Test("channels that asked for nothing receive all changes since their auth once they send a change")
    func unasked() throws {
        let harness = try HubHarness()
        let ann: Peer = harness.client("ann")
        let bob: Peer = harness.client("bob")
        harness.holdsCommits = true
        ann.send(edit("a", "x1", to: "a"))
        bob.send(edit("b", "x2", to: "b"))
        ann.send(edit("c", "x3", to: "c"))
        harness.commit()
        let first = try applied(harness, 1, by: "ann", "a", "x1", ev: 1, #"{"t":{"o":"+","v":"a"}}"#)
        let second = try applied(harness, 2, by: "bob", "b", "x2", ev: 1, #"{"t":{"o":"+","v":"b"}}"#)
        let third = try applied(harness, 3, by: "ann", "c", "x3", ev: 1, #"{"t":{"o":"+","v":"c"}}"#)
        #expect(ann.take() == ["0:c:[\(first),\(second),\(third)]"])
        #expect(bob.take() == ["0:c:[\(first),\(second),\(third)]"])
    }

    @Test("a commit group is one message: acknowledgement and broadcast together, in cv order")
    func groups() throws {
        let harness = try HubHarness()
        let ann: Peer = harness.client("ann")
        let bob: Peer = harness.client("bob")
        for peer: Peer in [ann, bob] { _ = peer.ask("0:cv:\(try harness.cv(0))") }
        harness.holdsCommits = true
        bob.send(edit("k", "b1", to: "one"))
        harness.commit()
        _ = (ann.take(), bob.take())
        ann.send(edit("k", "a1", sv: 1, field: "x", to: "ann"))
        bob.send(edit("k", "b2", sv: 1, field: "y", to: "bob"))
        harness.commit()
        let messages: [String] = ann.take()
        #expect(messages == bob.take())
        #expect(messages.count == 1)
        #expect(messages[0].allBetween(#""ccids":[""#, and: "\"") == ["a1", "b2"])
        #expect(messages[0].allBetween("\"sv\":", and: ",") == ["1", "2"], "the later change is rebased")
    }

    @Test("a tenant with a change or read in progress counts as waiting for other tenants, not for itself")
    func othersWait() throws {
        let harness = try HubHarness()
        let (ann, bob): (Peer, Peer) = (harness.client("ann"), harness.client("bob", token: "bob-token"))
        let (first, second): (TenantID, TenantID) = (harness.hub.tenant(of: ann.id), harness.hub.tenant(of: bob.id))
        func waits() -> [Bool] { [first, second, 0].map { harness.hub.othersWait(than: $0) } }
        #expect(waits() == [false, false, false])
        harness.holdsCommits = true
        ann.send(edit("k", "1", to: "a"))
        #expect(waits() == [false, true, true])
        bob.send(edit("k", "2", to: "b"))
        #expect(waits() == [true, true, true])
        harness.commit()
        #expect(waits() == [false, false, false])
        harness.holdsReads = true
        bob.send("0:i:1:::10")
        #expect(waits() == [true, false, true], "a read counts, too")
        harness.answerRead()
        #expect(waits() == [false, false, false])
    }

    @Test("nothing is acknowledged before it is committed")
    func afterCommit() throws {
        let harness = try HubHarness()
        let ann: Peer = harness.client("ann")
        harness.holdsCommits = true
        ann.send(edit("k", "x", to: "a"), edit("k", "x", to: "a"))
        #expect(ann.take().isEmpty)
        let group = harness.decide()
        #expect(ann.take().isEmpty)
        harness.publish(group)
        let answers: [String] = ann.take()
        #expect(answers.count == 2)
        #expect(answers.last == #"0:c:[{"clientid":"ann","id":"k","error":409,"ccids":["x"]}]"#)
    }

    @Test("two channels of one connection on one bucket each get their copy, under their own number")
    func channels() throws {
        let harness = try HubHarness()
        let ann: Peer = harness.client("ann")
        _ = ann.ask(
            #"5:init:{"api":"1.1","clientid":"five","token":"ann-token","app_id":"app","name":"notes","#
                + #""cmd":"cv:\#(try harness.cv(0))"}"#)
        ann.send(edit("k", "x1", to: "a"))
        let answers: [String] = ann.take()
        #expect(answers.map { String($0.prefix(5)) }.sorted() == ["0:c:[", "5:c:["])
        #expect(Set(answers.map { String($0.dropFirst(2)) }).count == 1)
    }

    // MARK: Refusals

    @Test("each refusal code is caused by its change and goes to the sender only")
    func codes() throws {
        var limits = ServerLimits()
        limits.documentBytesMax = 1_000
        var shard = ShardSettings()
        shard.documentBytesMax = 1_000
        let harness = try HubHarness(limits: limits, shard: shard)
        let peer: Peer = harness.client("c")
        let other: Peer = harness.client("other")
        peer.send(edit("k", "first", to: "a"), edit("k", "second", sv: 1, to: "b"), edit("gone", "g1", to: "a"))
        peer.send(removal("gone", "g2"))
        _ = peer.take()
        _ = other.ask("0:cv:\(try harness.cv(4))")
        let long = String(repeating: "x", count: 2_000)
        let table: [(change: String, id: String, ccid: String, code: Int)] = [
            (#"{"id":"a b","o":"M","ccid":"e1","v":{}}"#, "a b", "e1", 400),
            (#"{"id":"k","o":"what","ccid":"e2","v":{}}"#, "k", "e2", 400),
            (#"{"id":"k","o":"M","ccid":"e3"}"#, "k", "e3", 400),
            (#"{"id":"k","o":"M","ccid":"e4","sv":"x","v":{}}"#, "k", "e4", 400),
            (#"{"id":"new","o":"M","ccid":"e5","sv":3,"v":{"t":{"o":"+","v":1}}}"#, "new", "e5", 404),
            (#"{"id":"never","o":"-","ccid":"e6"}"#, "never", "e6", 404),
            (#"{"id":"k","o":"M","ccid":"e7","sv":9,"v":{"t":{"o":"r","v":1}}}"#, "k", "e7", 405),
            (#"{"id":"k","o":"-","ccid":"e8","sv":1}"#, "k", "e8", 405),
            (#"{"id":"k","o":"M","ccid":"first","sv":2,"v":{"t":{"o":"r","v":"z"}}}"#, "k", "first", 409),
            (#"{"id":"k","o":"M","ccid":"e9","sv":2,"v":{"t":{"o":"r","v":"b"}}}"#, "k", "e9", 412),
            (#"{"id":"gone","o":"-","ccid":"e10"}"#, "gone", "e10", 412),
            (#"{"id":"k","o":"M","ccid":"e11","sv":2,"v":{"u":{"o":"+","v":"\#(long)"}}}"#, "k", "e11", 413),
            (#"{"id":"k","o":"M","ccid":"e12","sv":2,"v":{"t":{"o":"d","v":"=99"}}}"#, "k", "e12", 440),
        ]
        for (change, id, ccid, code) in table {
            let expected: String = #"0:c:[{"clientid":"c","id":"\#(id)","error":\#(code),"ccids":["\#(ccid)"]}]"#
            #expect(peer.ask("0:c:\(change)") == [expected])
        }
        #expect(
            peer.ask(#"0:c:{"id":"k","o":"M","v":{}}"#) == [#"0:c:[{"clientid":"c","id":"k","error":400,"ccids":[]}]"#])
        #expect(peer.ask("0:c:not json").first?.contains("\"error\":400") == true)
        #expect(other.take().isEmpty)
        #expect(harness.closed.isEmpty)
    }

    @Test("a read-only token reads everything and changes nothing: 401")
    func readOnly() throws {
        let harness = try HubHarness()
        let writer: Peer = harness.client("w")
        let reader: Peer = harness.client("r", token: "read-token")
        _ = reader.ask("0:cv:\(try harness.cv(0))")
        writer.send(edit("k", "x1", to: "a"))
        #expect(reader.take().count == 1)
        #expect(
            reader.ask(edit("k", "x2", sv: 1, to: "b"))
                == [#"0:c:[{"clientid":"r","id":"k","error":401,"ccids":["x2"]}]"#])
        #expect(reader.ask("0:e:k.1") == ["0:e:k.1\n{\"data\":{\"t\":\"a\"}}"])
    }

    @Test("a change that would create one bucket too many is refused with 500")
    func tooManyBuckets() throws {
        var shard = ShardSettings()
        shard.bucketsPerUserMax = 1
        let harness = try HubHarness(shard: shard)
        let first: Peer = harness.client("c")
        let second: Peer = harness.client("c", bucket: "tags")
        #expect(first.ask(edit("k", "x1", to: "a")).first?.contains("\"cv\"") == true)
        #expect(
            second.ask(edit("k", "x2", to: "a")) == [#"0:c:[{"clientid":"c","id":"k","error":500,"ccids":["x2"]}]"#])
    }

    @Test("a failing store refuses the whole group with 503 and nothing is broadcast; the same change succeeds later")
    func storeFailure() throws {
        let harness: HubHarness = try HubHarness(faults: { point in
            point.number == 2 ? .fail(StoreError(.full, "a test")) : .none
        })
        let ann: Peer = harness.client("ann")
        let bob: Peer = harness.client("bob")
        _ = bob.ask("0:cv:\(try harness.cv(0))")
        ann.send(edit("k", "x1", to: "a"))
        _ = (ann.take(), bob.take())
        let change: String = edit("k", "x2", sv: 1, to: "b")
        #expect(ann.ask(change) == [#"0:c:[{"clientid":"ann","id":"k","error":503,"ccids":["x2"]}]"#])
        #expect(bob.take().isEmpty)
        #expect(ann.ask(change).first?.contains("\"ev\":2") == true)
        #expect(bob.take().count == 1)
    }

    @Test("a refusal waits for the changes it was derived from")
    func heldRefusal() throws {
        var limits = ServerLimits()
        limits.tailChangesMax = 0
        let harness = try HubHarness(limits: limits)
        let ann: Peer = harness.client("ann")
        ann.send(edit("k", "x1", to: "a"))
        ann.close()
        let again: Peer = harness.client("ann")
        harness.holdsReads = true
        again.send("0:cv:\(try harness.cv(0))", edit("k", "x1", to: "a"))
        #expect(again.take().isEmpty)
        harness.answerRead()
        let answers: [String] = again.take()
        #expect(answers.count == 2)
        #expect(answers[0].contains("\"ccids\":[\"x1\"]") && answers[0].contains("\"cv\""))
        #expect(answers[1].contains("\"error\":409"))
    }

    @Test("a refusal on a channel in an index scan waits for the changes that the scan holds back")
    func refusalDuringScan() throws {
        let harness = try HubHarness()
        let bob: Peer = harness.client("bob")
        let ann: Peer = harness.client("ann", library: "ios")
        bob.send(edit("k", "b1", to: "a"))
        harness.holdsCommits = true
        bob.send(edit("k", "b2", sv: 1, to: "b"))
        ann.send(edit("k", "a1", sv: 1, to: "b"), "0:i::::10")
        // The change b1, which precedes ann's first change, and the page.
        #expect(ann.take().count == 2)
        harness.commit()
        #expect(ann.take().isEmpty, "the refusal depends on b2")
        let answers: [String] = ann.ask("0:cv:\(try harness.cv(1))")
        #expect(answers.count == 2)
        #expect(answers.first?.contains("\"ccids\":[\"b2\"]") == true)
        #expect(answers.last?.contains("\"error\":412,\"ccids\":[\"a1\"]") == true)
    }

    @Test("a channel that is opened again does not receive the outcomes of changes sent before")
    func outcomeOfAnOlderGeneration() throws {
        let harness = try HubHarness()
        let ann: Peer = harness.client("ann")
        harness.holdsCommits = true
        ann.send(edit("k", "x1", to: "a"), edit("k", "x1", to: "a"))
        #expect(
            ann.ask(#"0:init:{"api":"1.1","clientid":"ann","token":"ann-token","app_id":"app","name":"notes"}"#)
                == ["0:auth:ann@example.com"])
        harness.commit()
        #expect(ann.take().isEmpty)
        let missed: [String] = ann.ask("0:cv:\(try harness.cv(0))")
        #expect(missed.joined().countOf("\"x1\"") == 1)
    }

    @Test("the refusals of one message are sent as one message")
    func refusalsTogether() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c")
        let answers: [String] = peer.ask("0:c:[\(repeatElement("0", count: 50).joined(separator: ","))]")
        #expect(answers.count == 1)
        #expect(answers.first?.countOf("\"error\":400") == 50)
    }

    @Test("a message with too many changes is refused once, and none of its changes is applied")
    func tooManyChanges() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c")
        let change = String(edit("k", "x1", to: "a").dropFirst(4))
        let many: String = repeatElement(change, count: Limits.changesPerMessageMax + 1).joined(separator: ",")
        #expect(peer.ask("0:c:[\(many)]") == [#"0:c:[{"clientid":"c","id":"","error":400,"ccids":[]}]"#])
        #expect(peer.ask("0:e:k.1") == ["0:e:k.1\n?"])
        #expect(peer.ask("1:c:[\(many)]") == ["1:?"])
    }

    @Test("413: a d too large in bytes or in value; the connection continues and the stored object is intact")
    func hugeObject() throws {
        var shard = ShardSettings()
        shard.documentBytesMax = 1_000
        let harness = try HubHarness(shard: shard)
        let peer: Peer = harness.client("c")
        _ = peer.ask("0:i::::10")
        _ = peer.ask(edit("k", "x1", to: "a"))
        func whole(_ value: String, _ ccid: String) -> String {
            #"0:c:{"id":"k","o":"M","ccid":"\#(ccid)","sv":1,"d":{"t":\#(value)}}"#
        }
        let zeros: String = "[" + repeatElement("0", count: 200_000).joined(separator: ",") + "]"
        let text: String = "\"" + String(repeating: "x", count: 1_000) + "\""
        for (place, value): (Int, String) in [zeros, text].enumerated() {
            let ccid = "h\(place)"
            #expect(
                peer.ask(whole(value, ccid))
                    == [#"0:c:[{"clientid":"c","id":"k","error":413,"ccids":["\#(ccid)"]}]"#])
        }
        #expect(peer.ask("0:e:k.1") == ["0:e:k.1\n{\"data\":{\"t\":\"a\"}}"])
        #expect(peer.ask(whole("\"\\u0062\"", "x2")).first?.contains("\"ev\":2") == true)
    }

    @Test("several changes in one message are each answered")
    func changeArray() throws {
        let peer: Peer = try HubHarness().client("c")
        let changes: [String] = [edit("a", "x1", to: "1"), edit("b", "x2", to: "2")].map { String($0.dropFirst(4)) }
        let answers: [String] = peer.ask("0:c:[\(changes.joined(separator: ","))]")
        #expect(answers.joined().allBetween(#""ccids":[""#, and: "\"") == ["x1", "x2"])
        #expect(peer.ask("0:c:[]").isEmpty)
    }

    @Test("EMPTY removes every object, one removal each")
    func empty() throws {
        let harness = try HubHarness()
        let peer: Peer = harness.client("c")
        for number: Int in 1...5 { peer.send(edit("k\(number)", "x\(number)", to: "v")) }
        let other: Peer = harness.client("d")
        _ = other.ask("0:i::::10")
        peer.send(#"0:c:{"id":"notes","o":"EMPTY","ccid":"e"}"#)
        #expect(other.take().joined().countOf("\"o\":\"-\"") == 5)
        #expect(other.ask("0:i::::10").first?.hasSuffix("\"index\":[]}") == true)
    }

    // MARK: The echo of node-simperium

    @Test("the removal that node-simperium echoes does not delete an object that was created again meanwhile")
    func echo() throws {
        let harness = try HubHarness()
        let ann: Peer = harness.client("ann")
        let node: Peer = harness.client("node", library: "node-simperium")
        _ = node.ask("0:cv:\(try harness.cv(0))")
        ann.send(edit("k", "x1", to: "a"), removal("k", "x2"), edit("k", "x3", to: "new"))
        _ = node.take()
        #expect(node.ask(removal("k", "e1")) == [#"0:c:[{"clientid":"node","id":"k","error":412,"ccids":["e1"]}]"#])
        #expect(node.ask("0:e:k.3") == ["0:e:k.3\n{\"data\":{\"t\":\"new\"}}"])
        #expect(node.ask(removal("k", "e2")).first?.contains("\"o\":\"-\"") == true, "the next removal is not an echo")
    }

    @Test("an echo is expected after a catch-up too, from memory or from disk")
    func echoAfterCatchUp() throws {
        for tail: Int in [100, 0] {
            var limits = ServerLimits()
            limits.tailChangesMax = tail
            let harness = try HubHarness(limits: limits)
            let ann: Peer = harness.client("ann")
            ann.send(edit("k", "x1", to: "a"), removal("k", "x2"), edit("k", "x3", to: "new"))
            let node: Peer = harness.client("node", library: "node-simperium")
            _ = node.ask("0:cv:\(try harness.cv(1))")
            #expect(node.ask(removal("k", "e1")).first?.contains("\"error\":412") == true)
        }
    }

    @Test("removals of other libraries, after 61 s, or after an own edit are not treated as echoes")
    func noEcho() throws {
        for (library, wait, edits): (String, Double, Bool) in [
            ("ios", 0, false), ("node-simperium", 61, false), ("node-simperium", 0, true),
        ] {
            let harness = try HubHarness()
            let ann: Peer = harness.client("ann")
            let peer: Peer = harness.client("c", library: library)
            _ = peer.ask("0:cv:\(try harness.cv(0))")
            ann.send(edit("k", "x1", to: "a"), removal("k", "x2"), edit("k", "x3", to: "new"))
            harness.pass(seconds: wait)
            if edits { peer.send(edit("k", "x4", sv: 3, to: "newer")) }
            _ = peer.take()
            #expect(peer.ask(removal("k", "e1")).first?.contains("\"o\":\"-\"") == true)
        }
    }
}
