import Testing
import ThicketProtocol

/// Sessions of real clients (wire contract, sections 4 to 6): each line is read by our side as it must be.
@Suite struct ExchangeTests {
    @Test("node: init, index with data, a change, its acknowledgement, versions on request")
    func node() throws {
        guard
            case .channel(0, .initialize(let initial)) = try client(
                #"0:init:{"name":"note","clientid":"node-1","api":"1.1","token":"t","app_id":"a","library":"node-simperium","version":"0.0.1"}"#
            )
        else { throw Mismatch() }
        #expect(initial.library == "node-simperium")
        #expect(try client("0:i:1:::10") == .channel(0, .index(IndexRequest(wantsData: true, limit: 10))))
        #expect(try client("0:i:1:m7::10") == .channel(0, .index(IndexRequest(wantsData: true, mark: "m7", limit: 10))))
        guard
            case .channel(0, .change(let change)) = try client(
                #"0:c:{"o":"M","id":"k1","ccid":"7d9e5c4f-2b1a-48d6-a3c2-e1f0b9a87654","v":{"content":{"o":"d","v":"=5\t+ world"}},"sv":2}"#
            )
        else { throw Mismatch() }
        #expect(change.problems.isEmpty)
        #expect(try ChangeID(change.ccid).text == "7d9e5c4f-2b1a-48d6-a3c2-e1f0b9a87654")
        guard case .channel(0, .change(let removal)) = try client(#"0:c:{"o":"-","id":"k1","ccid":"c2"}"#) else {
            throw Mismatch()
        }
        #expect(removal.operation == .remove)
        #expect(removal.sv == nil)
        let acknowledgement = AppliedChange(
            clientID: "node-1", cv: try ChangeVersion("64f0"), key: try EntityKey(change.key), operation: .modify,
            diff: change.diff, sv: change.sv, ev: 3, ccids: [change.ccid])
        // Numbers are numbers: this client compares with ===.
        #expect(
            ServerMessage.channel(0, .changes([.applied(acknowledgement)])).text
                == #"0:c:[{"clientid":"node-1","cv":"64f0","id":"k1","o":"M","v":{"content":{"o":"d","v":"=5\t+ world"}},"sv":2,"ev":3,"ccids":["7d9e5c4f-2b1a-48d6-a3c2-e1f0b9a87654"]}]"#
        )
        // The retry after a 405 sends its ghost record in `d`; the server has to recognize that.
        guard
            case .channel(0, .change(let retry)) = try client(
                #"0:c:{"o":"M","id":"k1","ccid":"c","v":{},"sv":2,"d":{"version":2,"data":{"content":"x"}}}"#
            )
        else { throw Mismatch() }
        #expect(retry.object?.value["data"]?["content"] == "x")
        #expect(try client("h:17") == .heartbeat(17))
    }

    @Test("iOS: a number for the API, strings for versions, a constant heartbeat, EMPTY, pendings")
    func ios() throws {
        #expect(try client("h:1") == .heartbeat(1))
        #expect(try client("0:i::::500") == .channel(0, .index(IndexRequest(limit: 500))))
        #expect(try client("0:e:dotted.key.12") == .channel(0, .entity(key: "dotted.key", version: 12)))
        guard
            case .channel(0, .change(let change)) = try client(
                #"0:c:{"clientid":"ios-1","id":"k","o":"M","ccid":"c","sv":"12","v":{"a":{"o":"r","v":1}}}"#
            ),
            case .channel(0, .change(let whole)) = try client(
                #"0:c:{"clientid":"ios-1","id":"k","o":"M","ccid":"d","sv":"12","d":{"a":1}}"#
            ), case .channel(0, .change(let empty)) = try client(#"0:c:{"id":"note","o":"EMPTY","ccid":"e"}"#)
        else { throw Mismatch() }
        #expect(change.sv == 12)
        #expect(whole.sv == 12)
        #expect(whole.diff == nil)
        #expect(whole.object?.value == ["a": 1])
        #expect(empty.operation == .empty)
        #expect(
            try server(#"0:o:{"namespace":"n","expose_namespace":true}"#)
                == .channel(0, .options(["namespace": "n", "expose_namespace": true])))
    }

    @Test("Android: a command with the init, v and d together, entities as two lines")
    func android() throws {
        guard
            case .channel(1, .change(let change)) = try client(
                #"1:c:{"id":"k","o":"M","ccid":"c","sv":4,"v":{"a":{"o":"r","v":2}},"d":{"a":2}}"#
            )
        else { throw Mismatch() }
        #expect(change.diff != nil)
        #expect(change.object?.value == ["a": 2])
        let reply = ServerMessage.channel(
            1, .entity(EntityReply(key: "k", version: 4, data: .value(["a": "x\ny"])))
        ).text
        let lines: [Substring] = reply.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.map(String.init) == ["1:e:k.4", #"{"data":{"a":"x\ny"}}"#])
        // It drops elements without clientid, id, ccids, and changes without cv and o.
        let refusal = try JSONValue(
            parsing: String(
                ServerMessage.channel(
                    0, .changes([.refused(RefusedChange(clientID: "c", key: "k", error: 409, ccids: ["x"]))])
                ).text.dropFirst(4)))
        #expect(refusal[0]?.objectValue?.keys == ["clientid", "id", "error", "ccids"])
        #expect(refusal[0]?["error"] == 409)
    }

    @Test("browser: no API version, heartbeats that repeat, cv:0, a version on removals")
    func browser() throws {
        #expect(try client("h:5") == client("h:5"))
        #expect(try client("0:cv:0") == .channel(0, .changesSince("0")))
        guard case .channel(0, .change(let removal)) = try client(#"0:c:{"id":"k","o":"-","ccid":"c","sv":9}"#) else {
            throw Mismatch()
        }
        #expect(removal.sv == 9)
        #expect(try client("0:i:1:m::100") == .channel(0, .index(IndexRequest(wantsData: true, mark: "m", limit: 100))))
    }

    @Test("the exchange printed in the public notes is read, and the answers are the same except for white space")
    func notes() throws {
        guard
            case .channel(0, .initialize(let initial)) = try client(
                #"0:init:{"api":1,"client_id":"android-1.0","token":"abc123","app_id":"abusers-headset","name":"notes"}"#
            )
        else { throw Mismatch() }
        #expect(initial.clientID == "android-1.0")
        #expect(initial.expectsExpired)
        #expect(
            try server(#"0:auth:{"msg":"Token invalid", "code":401}"#)
                == .channel(0, .authFailed(code: 401, message: "Token invalid")))
        guard
            case .channel(0, .entity(let reply)) = try server(
                "0:e:keyname.1\n{\"data\": {\"1\": 2, \"0\": 1, \"2\": \"Three\"}}"
            )
        else { throw Mismatch() }
        #expect(reply.data?.value == ["0": 1, "1": 2, "2": "Three"])
        guard
            case .channel(0, .changes(let events)) = try server(
                #"0:c:[{"clientid": "sjs-2012121301-9af05b4e9a95132f614c", "id": "newobject", "o": "M", "v": {"new": {"o": "+", "v": "object"}}, "ev": 1, "cv": "511aa58737a401031d57db90", "ccids": ["3a5cbd2f0a71fca4933fff5a54d22b60"]}]"#
            ), case .applied(let change)? = events.first
        else { throw Mismatch() }
        #expect(change.key.text == "newobject")
        #expect(change.sv == nil)
        #expect(change.ccids == ["3a5cbd2f0a71fca4933fff5a54d22b60"])
    }

    struct Mismatch: Error {}
}
