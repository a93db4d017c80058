import Testing
import ThicketProtocol

@Suite struct ChangeRequestTests {
    private func change(_ json: String) throws -> ChangeRequest {
        guard case .channel(0, .change(let change)) = try client("0:c:" + json) else {
            Issue.record("not a change")
            return ChangeRequest(key: "", ccid: "", operation: .drop)
        }
        return change
    }

    @Test("a change keeps its diff as it came, and is written as it was")
    func faithful() throws {
        let message = #"0:c:{"id":"a.b","o":"M","ccid":"c-1","sv":3,"v":{"n":{"o":"I","v":1.00}}}"#
        guard case .channel(0, .change(let change)) = try client(message) else {
            Issue.record("not a change")
            return
        }
        #expect(change.key == "a.b")
        #expect(change.ccid == "c-1")
        #expect(change.sv == 3)
        #expect(change.operation == .modify)
        #expect(change.problems.isEmpty)
        #expect(change.diff?.bytes == Array(#"{"n":{"o":"I","v":1.00}}"#.utf8))
        #expect(change.object == nil)
        #expect(try client(message).text == message)
    }

    @Test("whole is true or absent, also when escaped, and is written as it came")
    func wholeMark() throws {
        let message = #"0:c:{"id":"k","o":"M","ccid":"c","sv":3,"v":{"n":{"o":"r","v":1}},"whole":true}"#
        guard case .channel(0, .change(let sent)) = try client(message) else {
            Issue.record("not a change")
            return
        }
        #expect(sent.isWhole)
        #expect(try client(message).text == message)
        #expect(try change(#"{"id":"k","o":"M","ccid":"c","v":{},"\u0077hole":true}"#).isWhole)
        for value in ["false", "1", #""true""#, "null", "{}"] {
            let sent = try change(#"{"id":"k","o":"M","ccid":"c","v":{},"whole":\#(value)}"#)
            #expect(!sent.isWhole && sent.problems.isEmpty)
        }
        #expect(try !change(#"{"id":"k","o":"M","ccid":"c","v":{"whole":true}}"#).isWhole)
    }

    @Test("a version is a number or a string, and absent in every way that clients leave it out")
    func versions() throws {
        let table: [(String, Version?, Bool)] = [
            (#""sv":12"#, 12, true), (#""sv":"12""#, 12, true), (#""sv":12.0"#, 12, true), (#""sv":0"#, 0, true),
            (#""sv":"0""#, 0, true), (#""sv":null"#, nil, true), (#""sv":"""#, nil, true), (#""x":1"#, nil, true),
            (#""sv":-1"#, nil, false), (#""sv":1.5"#, nil, false), (#""sv":"x""#, nil, false),
            (#""sv":[1]"#, nil, false), (#""sv":true"#, nil, false), (#""sv":1e30"#, nil, false),
            (#""sv":" 1""#, nil, false), (#""sv":99999999999999999999"#, nil, false),
        ]
        for (field, version, isGood) in table {
            let change = try change(#"{"id":"k","o":"-","ccid":"c",\#(field)}"#)
            #expect(change.sv == version, "\(field)")
            #expect(change.problems.isEmpty == isGood, "\(field)")
            #expect(change.key == "k")
            #expect(change.ccid == "c")
        }
    }

    @Test("operations are read by their names, and only by these")
    func operations() throws {
        let table: [(String, ChangeRequest.Operation)] = [
            ("M", .modify), ("-", .remove), ("EMPTY", .empty), ("DROP", .drop), ("m", .other("m")), ("", .other("")),
        ]
        for (name, operation) in table {
            let change = try change(#"{"id":"k","o":"\#(name)","ccid":"c"}"#)
            #expect(change.operation == operation)
            #expect(change.operation.name == name)
            #expect(change.problems.isEmpty)
        }
    }

    @Test("a change with a whole object carries it, with or without a diff")
    func whole() throws {
        let ios = try change(#"{"id":"k","o":"M","ccid":"c","sv":"3","d":{"a":1}}"#)
        #expect(ios.diff == nil)
        #expect(ios.object?.value == ["a": 1])
        let android = try change(
            #"{"id":"k","o":"M","ccid":"c","sv":3,"v":{"a":{"o":"r","v":1}},"d":{"a":1}}"#)
        #expect(android.diff?.value == ["a": ["o": "r", "v": 1]])
        #expect(android.object?.value == ["a": 1])
        #expect(try change(#"{"id":"k","o":"M","ccid":"c","v":null,"d":null}"#).diff == nil)
        #expect(try change(#"{"id":"k","o":"M","ccid":"c","v":null,"d":null}"#).object == nil)
    }

    @Test("a fault in one field does not hide which change it was")
    func problems() throws {
        let table = [
            (#"{"o":"M","ccid":"c"}"#, "", "c", 1), (#"{"id":"k","o":"M"}"#, "k", "", 1),
            (#"{"id":"k","ccid":"c"}"#, "k", "c", 1), (#"{"id":7,"ccid":"c","o":"M"}"#, "", "c", 1),
            (#"{"id":"k","ccid":["c"],"o":1,"sv":{}}"#, "k", "", 3), ("{}", "", "", 3), ("7", "", "", 1),
            ("null", "", "", 1), (#""text""#, "", "", 1),
        ]
        for (json, key, ccid, problems) in table {
            let change = try change(json)
            #expect(change.key == key, "\(json)")
            #expect(change.ccid == ccid, "\(json)")
            #expect(change.problems.count == problems, "\(json)")
        }
    }

    @Test("JSON that does not parse still gives the change's key and ccid, as far as it can be read")
    func salvage() throws {
        let table = [
            (#"{"id":"k","ccid":"c","v":{"a":{"o":"d","v":"\ud83d"}},"o":"M"}"#, "k", "c"),
            (#"{"o":"M","v":{"a":1,"a":2},"id":"k","ccid":"c"}"#, "k", "c"),
            (#"{"v":{"a":[{"b":"}\""}]},"id":"k","ccid":"c\n","sv":01}"#, "k", "c\n"),
            (#"{"id":"k","ccid":"c","v":{"a":"#, "k", "c"), (#"{"id":"k","cc"#, "k", ""), (#"{"id":"k"#, "", ""),
            (#"{"v":tru,"id":"k","sv":-,"ccid":"c"}"#, "k", "c"), (#"{ "id" : "k" , "ccid" : "c" } x"#, "k", "c"),
            (#"{"id":"\ud800","ccid":"c"}"#, "", "c"), (#"{"data":{"id":"inner","ccid":"inner"},"x":}"#, "", ""),
            (#"{"id":"k","ccid":"c",}"#, "k", "c"), ("", "", ""), ("{", "", ""), ("nothing", "", ""),
            (#"[{"id":"k","ccid":"c"},]"#, "", ""), (#"{"a":]]]]}},"id":"k","ccid":"c"}"#, "", ""),
        ]
        for (json, key, ccid) in table {
            let change = try change(json)
            #expect(change.key == key, "\(json)")
            #expect(change.ccid == ccid, "\(json)")
            #expect(change.problems.count == 1, "\(json)")
        }
        let deep = #"{"id":"k","v":"# + String(repeating: "[", count: 5_000) + #","ccid":"c"}"#
        #expect(try change(deep).key == "k")
    }

    @Test("an array of changes is read element by element, also a bad one among good ones")
    func arrays() throws {
        guard
            case .channel(0, .changes(let changes)) = try client(
                #"0:c:[{"id":"a","o":"-","ccid":"1"},7,{"id":"b","o":"M","ccid":"2","v":{}}]"#)
        else {
            Issue.record("not an array")
            return
        }
        #expect(changes.map(\.key) == ["a", "", "b"])
        #expect(changes.map(\.problems.count) == [0, 1, 0])
        #expect(try client("0:c:[]") == .channel(0, .changes([])))
        #expect(ChangeRequest.parse(Array(#"{"id":"a"}"#.utf8)[...]).many == nil)
        let pair = #"0:c:[{"id":"a","o":"-","ccid":"1"},{"id":"b","o":"-","ccid":"2"}]"#
        #expect(try client(pair).text == pair)
    }

    @Test("an array of more changes than a message may hold is one request, which is refused")
    func longArrays() throws {
        for (count, expected) in [
            (Limits.changesPerMessageMax, Limits.changesPerMessageMax), (Limits.changesPerMessageMax + 1, 1),
            (100_000, 1),
        ] {
            let json = "0:c:[" + repeatElement("0", count: count).joined(separator: ",") + "]"
            guard case .channel(0, .changes(let changes)) = try client(json) else {
                Issue.record("not an array")
                return
            }
            #expect(changes.count == expected)
            #expect(changes.allSatisfy { $0.problems.count == 1 })
        }
    }

    @Test("nothing of a too long array is read beyond the last change that it may hold")
    func longArraysUnread() {
        let zeros = repeatElement("0", count: Limits.changesPerMessageMax).joined(separator: ",")
        // If the rest were read, it would not be JSON, and the answer would be one for a single change.
        let tooMany = ChangeRequest.parse(Array("[\(zeros),0 }{ no JSON".utf8)[...])
        #expect(tooMany.many?.map(\.problems) == [["too many changes"]])
        #expect(ChangeRequest.parse(Array("[\(zeros)] }{".utf8)[...]).many == nil)
        let nested = "[[\(zeros),0],{\"id\":[\(zeros),0]}]"
        #expect(ChangeRequest.parse(Array(nested.utf8)[...]).many?.count == 2, "only the outermost array counts")
    }

    @Test("names that are too long however they are escaped are not copied; the rest of the change is read")
    func longNames() throws {
        let long = String(repeating: "x", count: 1 << 20)
        let escaped = String(repeating: "\\u0041", count: Limits.entityKeyBytesMax)
        let node = try change(#"{"id":"\#(long)","o":"M","ccid":"c","v":{}}"#)
        #expect(node.key.isEmpty)
        #expect(node.ccid == "c")
        #expect(node.problems == ["id is too long"])
        #expect(try change(#"{"id":"k","o":"\#(long)","ccid":"c"}"#).problems == ["o is too long"])
        #expect(try change(#"{"id":"k","o":"M","ccid":"\#(long)"}"#).problems == ["ccid is too long"])
        let key = try change(#"{"id":"\#(escaped)","o":"M","ccid":"c","v":{}}"#)
        #expect(key.key == String(repeating: "A", count: Limits.entityKeyBytesMax))
        #expect(key.problems.isEmpty)
    }

    @Test("a pretty-printed diff is sent on one line")
    func oneLine() throws {
        let message = try client(
            "0:c:{\"id\":\"k\",\"o\":\"M\",\"ccid\":\"c\",\n\"v\":{\r\n  \"a\": {}\n}}")
        #expect(message.text == #"0:c:{"id":"k","o":"M","ccid":"c","v":{  "a": {}}}"#)
    }

    @Test("a diff is read from a node, a tree and bytes alike")
    func diffs() throws {
        let json: [UInt8] = Array(#"{"a":{"o":"+","v":1},"b":{"o":"-"}}"#.utf8)
        let node = JSONFragment.node(try JSONDocument(parsing: json).root)
        let forms = [node, .value(node.value), .bytes(json)]
        for form in forms {
            #expect(form == node)
            #expect(form.bytes == json)
            #expect(try ObjectDiff(form) == ObjectDiff(node))
        }
        #expect(throws: DiffError.self) { try ObjectDiff(JSONFragment.bytes(Array("[".utf8))) }
    }
}

extension ChangeRequest.Sent {
    /// The changes of an array; nil when it was not an array.
    fileprivate var many: [ChangeRequest]? { if case .many(let changes) = self { changes } else { nil } }
}
