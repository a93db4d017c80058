import Testing
import ThicketClient
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

/// The layer between a test of open buckets and a machine of a sealed one must be as strict as a server, or a test of
/// both kinds proves nothing for the second.
@Suite("A script of an open bucket, translated to a sealed one", .noncesGiven)
struct SealedScriptTests {
    private let page = #"0:i:{"current":"cv1","index":[{"id":"diary","v":1,"d":{"t":"secret"}}]}"#
    private let edit =
        #"0:c:[{"clientid":"x","cv":"cv2","id":"diary","o":"M","v":{"t":{"o":"d","v":"=6\t+ plan"}},"sv":1,"ev":2,"ccids":["q"]}]"#

    private func said(_ script: SealedScript, _ text: String) -> String {
        String(decoding: script.said(Array(text.utf8)), as: UTF8.self)
    }

    private func reply(_ text: String) throws -> ServerReply {
        guard case .channel(0, let reply) = try ServerMessage(parsing: Array(text.utf8)) else { throw NotAnObject() }
        return reply
    }

    @Test("translated objects and changes have the shape that a server accepts, and contain no plaintext")
    func shape() throws {
        let script = try SealedScript(seed: 1)
        guard case .index(let index) = try reply(said(script, page)), let entry = index.entries.first,
            case .changes(let changes) = try reply(said(script, edit)), case .applied(let change)? = changes.first
        else { throw NotAnObject() }
        try SealedShape.check(key: entry.key.text)
        let object = try #require(entry.data?.object)
        #expect(try SealedShape.check(object: object).tail.isEmpty)
        let diff = try ObjectDiff(change.diff?.value ?? .null)
        guard case .insertion = try SealedShape.check(diff, changeID: change.ccids[0], isCreation: false) else {
            throw NotAnObject()
        }
        #expect(change.key == entry.key && (change.sv, change.ev) == (1, 2) && change.cv.text == "cv2")
        for text in [said(script, page), said(script, edit)] {
            for clear in ["diary", "secret", "plan"] { #expect(text.range(of: clear) == nil) }
        }
        #expect(said(script, page) == said(script, page), "a second translation is the same")
        for text in ["0:c:[]", "0:cv:?", "h:1", "0:zzz:1", "0:c:{", "1:i:{}", ""] {
            #expect(said(script, text) == text)
        }
    }

    @Test("a removal is translated to a tombstone and the removal after it, in two versions")
    func removal() throws {
        let script = try SealedScript(seed: 1)
        _ = said(script, page)
        let removal = #"0:c:[{"clientid":"x","cv":"cv2","id":"diary","o":"-","ev":2,"ccids":["q"]}]"#
        guard case .changes(let changes) = try reply(said(script, removal)), changes.count == 2,
            case .applied(let tombstone) = changes[0], case .applied(let last) = changes[1]
        else { throw NotAnObject() }
        #expect(tombstone.operation == .modify && tombstone.sv == 1 && tombstone.ev == 2)
        #expect(last.operation == .remove && last.ev == 3 && last.cv.text == "cv2")
        #expect(script.object("diary").script(3) == 2 && script.object("diary").wire(2) == 3)
    }

    @Test(
        "a change sent in the clear is recorded as an issue in a sealed bucket",
        arguments: ["diary", "a key of its own"])
    func clear(key: String) throws {
        let script = try SealedScript(seed: 1)
        _ = said(script, page)
        let name = key == "diary" ? script.object("diary").key.text : key
        let sent = #"0:c:{"id":"\#(name)","ccid":"q","sv":1,"o":"M","v":{"t":{"o":"r","v":"x"}}}"#
        withKnownIssue { _ = script.shown(Array(sent.utf8)) }
        withKnownIssue { _ = script.shown(Array(#"0:init:{"name":"notes","clientid":"c","api":"1.1"}"#.utf8)) }
    }

    @Test("an operation on another version, or under another one's ccid, is recorded as an issue")
    func bytes() throws {
        var talk = try Transcript(.sealed)
        _ = talk.live([("diary", 1, #"{"t":"secret"}"#)])
        let script = try #require(talk.script)
        let sent = try #require(try talk.type("diary", at: 6, "!").first)
        #expect(sent.contains(#""sv":1,"o":"M","v":{"t":{"o":"d","v":"=6\t+!"}}"#))
        func change(_ id: [UInt8], _ source: Version) throws -> [UInt8] {
            var other = script.object("diary")
            var random = SeededRandom(seed: 5)
            let diff = try ObjectDiff(JSONValue(parsing: #"{"t":{"o":"d","v":"=6\t+?"}}"#))
            _ = try other.write(diff, by: AuthorID(rawValue: 2), on: 1, at: 2, id: id, &random)
            let operation: String = try #require(other.states[2]?.entity?.tail.first)
            let change: JSONObject = [
                "id": .string(other.key.text), "ccid": .string(Hex.encode(id)),
                "sv": .number(JSONNumber(source)), "o": "M", "v": SealedEntity.insertion(operation).json,
            ]
            return Array("0:c:".utf8) + change.serialized()
        }
        let mine = try #require(Hex.decode(ccid(sent)))
        _ = script.shown(try change(Array(repeating: 3, count: 16), 1))
        withKnownIssue { _ = script.shown(try change(Array(repeating: 4, count: 16), 7)) }
        withKnownIssue { _ = script.shown(try change(mine, 1)) }
    }

    @Test("an acknowledgement of a change that was not sent, or of another object, is recorded as an issue")
    func acknowledgement() throws {
        func acknowledged(_ id: String, _ diff: String) throws {
            var talk = try Transcript(.sealed)
            _ = talk.live([("diary", 1, #"{"t":"secret"}"#)])
            let sent = try #require(try talk.type("diary", at: 6, "!").first)
            let name = id.isEmpty ? ccid(sent) : id
            _ = talk.hear(
                #"0:c:[{"clientid":"me","cv":"cv2","id":"diary","o":"M","v":{"t":{"o":"d","v":"\#(diff)"}},"sv":1,"ev":2,"ccids":["\#(name)"]}]"#
            )
        }
        try acknowledged("", #"=6\t+!"#)
        withKnownIssue { try acknowledged("", #"=6\t+?"#) }
        withKnownIssue { try acknowledged(String(repeating: "a", count: 32), #"=6\t+!"#) }
    }

    @Test("an alarm of the machine about an honest script is recorded as an issue")
    func alarm() throws {
        var talk = try Transcript(.sealed)
        _ = talk.live([("diary", 1, #"{"t":"secret"}"#)])
        let key = try #require(talk.script?.object("diary").key.text)
        // Past the script: the object was not deleted.
        let bare = #"0:c:[{"clientid":"x","cv":"cv2","id":"\#(key)","o":"-","ev":2,"ccids":["q"]}]"#
        let batch = ServerBatch([Array(bare.utf8)])
        withKnownIssue { _ = talk.receive(batch) }
        #expect(try talk.local("diary") == #"{"t":"secret"}"#)
    }
}
