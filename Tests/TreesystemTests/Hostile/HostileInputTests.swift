import Testing
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketTestServer
import ThicketTestSupport
import ThicketTree
import ThicketTreeShape

@testable import ThicketTreesystem

/// Inputs of extreme size and form, to a server and to a device.
@Suite("Trees under hostile input", .nonceWatch, .timeLimit(.minutes(5)))
struct HostileInputTests {
    private static let owner = "ann@example.com"

    /// Records as a device makes them: the server cannot open them anyway.
    private struct Maker {
        let keys: TreeKeys
        let sealer: NodeSealer

        init() throws {
            let place = TreePlace(app: try AppID("app"), owner: try UserID(HostileInputTests.owner))
            keys = TreeKeys(secret: .random(32), tree: place)
            sealer = NodeSealer(place, random: .system)
        }

        func record(_ id: NodeID, below parent: NodeParent = .trunk(.home), name: String) throws -> NodeRecord {
            var record = try sealer.create(NodeDraft(NodeName(name)), id, below: keys.parent(.home))
            record.parent = parent
            return record
        }
    }

    private static func body(_ operations: [TreeOperation]) -> String {
        String(decoding: TreeBatch(id: .random(), operations).object.serialized(), as: UTF8.self)
    }

    private static func put(_ record: some StringProtocol) -> String {
        #"{"id":"\#(BatchID.random().text)","ops":[{"op":"put","id":"\#(NodeID.random().text)","sv":0,"record":\#(record)}]}"#
    }

    // MARK: - The server

    @Test("A19: batches of extreme depth, size and form are refused with their code, and the connection goes on")
    func batches() throws {
        let bench = try TreeBench()
        let maker = try Maker()
        let http = try TestHTTP(port: bench.port)
        let path = "tree/\(Self.owner)/batch"
        let id = NodeID.random()
        let good = try maker.record(id, name: "a")
        let text = String(decoding: good.object.serialized(), as: UTF8.self)
        #expect(try http.ask("POST", path, body: Self.body([.put(id, source: 0, good)])).status == 200)
        func with(_ member: String, _ value: String) -> String {
            var object = good.object
            object[member] = nil
            let rest = String(decoding: object.serialized(), as: UTF8.self)
            return Self.put(String(rest.dropLast()) + ",\"\(member)\":\(value)}")
        }
        let wrap = #"{"t":"p","c":"\#(String(repeating: "A", count: 80))"}"#
        let deep = String(repeating: "[", count: 10_000)
        func closing(_ letter: String) -> String { String(repeating: letter, count: 10_000) }
        var cases = [
            ("nesting", #"{"id":"\#(BatchID.random().text)","ops":\#(deep)"#),
            ("closed nesting", with("w", deep + closing("]"))),
            ("objects", with("d", String(repeating: #"{"a":"#, count: 10_000) + "1" + closing("}"))),
            ("wraps", with("w", "[" + Array(repeating: wrap, count: 10_000).joined(separator: ",") + "]")),
            ("a wrap", with("w", #"[{"t":"p","c":"\#(String(repeating: "A", count: 1_000_000))"}]"#)),
            ("metadata", with("m", "\"" + String(repeating: "A", count: 1_500_000) + "\"")),
            (
                "a name of a member",
                Self.put(String(text.dropLast()) + ",\"\(String(repeating: "x", count: 1_000_000))\":1}")
            ),
        ]
        for number in ["-1", "1e400", "99999999999999999999", "1.5", "1e3", "0x1", "null", "[]"] {
            for member in ["s", "e", "x", "v"] { cases.append(("\(member) \(number)", with(member, number))) }
        }
        for (name, body) in cases {
            let start = ContinuousClock.now
            let answer = try http.ask("POST", path, body: body)
            #expect([400, 413].contains(answer.status), "\(name): \(answer.status) \(answer.body)")
            #expect(ContinuousClock.now - start < .seconds(30), "\(name)")
            #expect(try http.ask("GET", "tree/\(Self.owner)/children?parent=home").status == 200, "\(name)")
        }
        // Bytes that are not UTF-8, also inside of a text.
        for bytes: [UInt8] in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80]] {
            let answer = try http.ask(
                "POST", path, bytes: Array(Self.put(text).utf8.dropLast(3)) + bytes + Array("}]}".utf8))
            #expect(answer.status == 400, "\(answer.body)")
        }
        #expect(try http.ask("GET", "tree/\(Self.owner)/children?parent=home").body.contains(id.text))
    }

    @Test("A19: chains, cycles over two batches and too many operations are refused with their reason")
    func shapes() throws {
        let bench = try TreeBench()
        let maker = try Maker()
        let http = try TestHTTP(port: bench.port)
        func refusal(_ body: String) throws -> BatchRefusal? {
            let answer = try http.ask("POST", "tree/\(Self.owner)/batch", body: body)
            guard case .refused(let refusal)? = try? TreeBatchAnswer(parsing: Array(answer.body.utf8)) else {
                return nil
            }
            return refusal
        }
        var chain = [TreeOperation]()
        var parent = NodeParent.trunk(.home)
        for _ in 0..<1_000 {
            let id = NodeID.random()
            chain.append(.put(id, source: 0, try maker.record(id, below: parent, name: "n")))
            parent = .node(id)
        }
        let deep = try refusal(Self.body(chain))
        #expect(deep?.reason == .depth && deep?.operation == TreeLimits.depthMax)
        #expect(try refusal(Self.body(Array(chain[..<64]))) == nil, "64 levels are permitted")
        let more = NodeID.random()
        let tooMany = chain + [.put(more, source: 0, try maker.record(more, name: "x"))]
        #expect(try refusal(Self.body(tooMany))?.reason == .batch)
        // Each of two batches is right by itself; the second one would close a circle.
        let (one, two) = (NodeID.random(), NodeID.random())
        let made = [
            TreeOperation.put(one, source: 0, try maker.record(one, name: "one")),
            .put(two, source: 0, try maker.record(two, name: "two")),
        ]
        #expect(try refusal(Self.body(made)) == nil)
        var below = try maker.record(one, below: .node(two), name: "one")
        below.base = 1
        #expect(try refusal(Self.body([.put(one, source: 1, below)])) == nil)
        var above = try maker.record(two, below: .node(one), name: "two")
        above.base = 1
        #expect(try refusal(Self.body([.put(two, source: 1, above)]))?.reason == .cycle)
        let page = try http.ask("GET", "tree/\(Self.owner)/children?parent=home")
        #expect(page.body.contains(two.text) && !page.body.contains(one.text))
    }

    @Test("A19: lengths, numbers and ranges of blobs beyond all bounds are refused, and the upload goes on")
    func lengths() throws {
        let bench = try TreeBench()
        let http = try TestHTTP(port: bench.port)
        let json = [("content-type", "application/json")]
        for length in ["9223372036854775807", "-1", "0", "1e18", "18446744073709551616", "null", "\"7\""] {
            for body in [#"{"length":\#(length),"part":4194304}"#, #"{"length":5000000,"part":\#(length)}"#] {
                let answer = try http.ask("POST", "blob", body: body, fields: json)
                #expect([400, 413].contains(answer.status), "\(body): \(answer.status) \(answer.body)")
            }
        }
        let begun = try http.ask("POST", "blob", body: #"{"length":5000000,"part":4194304}"#, fields: json)
        #expect(begun.status == 200 || begun.status == 201, "\(begun.status)")
        let upload = (try? JSONValue(parsing: begun.body))?.objectValue?["upload"]?.stringValue ?? ""
        let hash = [("x-part-sha256", Hex64.zeros)]
        for number in ["0", "-1", "3", "10001", "9223372036854775808", "x", "1%00"] {
            // A refused part is not read: its connection ends.
            let part = try TestHTTP(port: bench.port)
            let answer = try part.ask("PUT", "blob/\(upload)/\(number)", body: "abc", fields: hash)
            #expect([400, 404].contains(answer.status), "\(number): \(answer.status)")
        }
        for range in ["bytes=18446744073709551616-", "bytes=0-,0-,0-", "bytes=-99999999999999999999", "bytes=5-1"] {
            let answer = try http.ask(
                "GET", "blob/\(upload)?node=\(Self.owner)/\(NodeID.random().text)", fields: [("range", range)])
            #expect(answer.status == 404, "\(range): \(answer.status)")
        }
        #expect(try http.ask("GET", "blob/\(upload)").status == 200)
    }

    // MARK: - The device

    /// A device that reads what a server has planted, and the time that this took.
    private static func read(
        _ planted: [NodeID: NodeRecord], _ genuine: (TreeWorld) throws -> Void = { _ in }
    ) throws -> (device: WorldDevice, world: TreeWorld, time: Duration) {
        let world = try TreeWorld(seed: 91, devices: 2, pageNodes: 1_000)
        world.isHostile = false
        let (ann, other) = (world.devices[0], world.devices[1])
        try ann.create("genuine", "content", in: world)
        try ann.run(world)
        world.server.plant(planted)
        let start = ContinuousClock.now
        try other.tick(world)
        try world.settleDown()
        return (other, world, ContinuousClock.now - start)
    }

    @Test("A19: a chain of 1,500 forged nodes, and circles of them, are kept apart, and the device goes on")
    func chain() throws {
        let maker = try Maker()
        let template = try maker.record(NodeID.random(), name: "n")
        var planted = [NodeID: NodeRecord]()
        let ids = (0..<1_500).map { _ in NodeID.random() }
        for (place, id) in ids.enumerated() {
            var record = template
            // A chain of 1,200 from the top, and circles of 10.
            let above = place < 1_200 ? place - 1 : place % 10 == 0 ? place + 9 : place - 1
            record.parent = above < 0 ? .trunk(.home) : .node(ids[above])
            planted[id] = record
        }
        let (device, world, time) = try Self.read(planted)
        #expect(time < .seconds(120), "\(time)")
        #expect(try device.paths() == ["home/genuine"])
        let faults = try device.store.faults()
        #expect(faults.count { $0.kind == .seal } == 1, "the first of the chain; the others wait for it")
        #expect(faults.count { $0.kind == .parentMissing } == 300 && faults.count == 301, "all nodes of the circles")
        #expect(try device.store.row(ids[1_499])?.state == .unopened)
        try device.create("later", "more", in: world)
        try world.settleDown()
        #expect(try world.devices[0].paths() == ["home/genuine", "home/later"])
    }

    @Test("A19: a message that is not UTF-8, is cut, or nests 10,000 levels ends the connection, not the device")
    func messages() throws {
        let world = try TreeWorld(seed: 92, devices: 1)
        world.isHostile = false
        let ann = world.devices[0]
        try ann.create("a", "1", in: world)
        try world.settleDown()
        let deep = String(repeating: "[", count: 10_000)
        let texts: [[UInt8]] = [
            [0x30, 0x3A, 0x63, 0x3A, 0xFF, 0xFE], Array("0:c:\(deep)".utf8), Array("0:i:{\"index\":\(deep)".utf8),
            Array("0:c:[{\"cv\":".utf8), Array("0:e:\(NodeID(1).text).99999999999999999999\n{}".utf8), [], [0],
            Array("99999999999999999999:c:[]".utf8), Array("0:c:[{}]".utf8), Array("0:o:\(deep)".utf8),
        ]
        for text in texts {
            ann.receive(text, world)
            try world.settleDown()
            #expect(try ann.paths() == ["home/a"], "\(text.prefix(20))")
        }
        try ann.write("a", "2", in: world)
        try world.settleDown()
        #expect(try ann.content("a") == "2" && ann.machine.queue.isEmpty)
    }
}

private enum Hex64 {
    static let zeros = String(repeating: "0", count: 64)
}
