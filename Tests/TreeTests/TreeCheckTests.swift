import Testing
import ThicketProtocol
import ThicketTestSupport
import ThicketTreeShape

@Suite("Checks of a write against the tree")
struct TreeCheckTests {
    private static func id(_ number: Int) -> NodeID { NodeID(UInt128(number)) }

    private static func tag(_ name: String) throws -> NodeTag { try NodeTag(of: Array(name.utf8), salt: []) }

    private static func record(_ parent: NodeParent, _ name: String, base: Version) throws -> NodeRecord {
        NodeRecord(parent: parent, tag: try tag(name), epoch: 0, wraps: [], commitment: [], base: base)
    }

    /// A chain of this many nodes below home; node n is at depth n.
    private static func chain(_ count: Int) throws -> TreeModel {
        var model = TreeModel()
        for number in 1...count {
            let parent: NodeParent = number == 1 ? .trunk(.home) : .node(id(number - 1))
            model.write(try record(parent, "n", base: 0), id(number))
        }
        return model
    }

    private static func refusal(
        _ model: TreeModel, _ number: Int, _ parent: NodeParent, _ name: String = "n", base: Version
    ) throws -> TreeRefusal? {
        TreeCheck.refusal(of: try record(parent, name, base: base), at: id(number), replacing: base, in: model)
    }

    @Test("a chain of 64 nodes fits, one more does not, neither new nor moved, nor with what hangs below")
    func depth() throws {
        let model = try Self.chain(64)
        #expect(try Self.refusal(model, 100, .node(Self.id(63)), "other", base: 0) == nil)
        #expect(try Self.refusal(model, 100, .node(Self.id(64)), base: 0) == .tooDeep)
        var wide = model
        wide.write(try Self.record(.trunk(.home), "a", base: 0), Self.id(200))
        wide.write(try Self.record(.node(Self.id(200)), "b", base: 0), Self.id(201))
        #expect(try Self.refusal(wide, 200, .node(Self.id(62)), "a", base: 1) == nil)
        #expect(try Self.refusal(wide, 200, .node(Self.id(63)), "a", base: 1) == .tooDeep)
        #expect(try Self.refusal(wide, 201, .node(Self.id(63)), "a", base: 1) == nil)
    }

    @Test("a node does not go below itself, nor below what is below it")
    func cycle() throws {
        let model = try Self.chain(64)
        for number in 1...64 {
            #expect(try Self.refusal(model, 1, .node(Self.id(number)), base: 1) == .cycle)
        }
        #expect(try Self.refusal(model, 7, .node(Self.id(7)), base: 1) == .cycle)
    }

    @Test("a write on another version is stale, one of a node that does not exist says so")
    func versions() throws {
        let model = try Self.chain(2)
        #expect(try Self.refusal(model, 1, .trunk(.home), base: 0) == .stale(current: 1))
        #expect(try Self.refusal(model, 1, .trunk(.home), base: 5) == .stale(current: 1))
        #expect(try Self.refusal(model, 9, .trunk(.home), base: 3) == .nodeMissing)
        let record = try Self.record(.trunk(.home), "n", base: 1)
        #expect(TreeCheck.refusal(of: record, at: Self.id(1), replacing: 2, in: model) == .otherBase)
    }

    @Test("a name is taken by another node in the same place only, and a node may keep its own")
    func names() throws {
        let model = try Self.chain(2)
        #expect(try Self.refusal(model, 9, .trunk(.home), base: 0) == .nameTaken(by: Self.id(1)))
        #expect(try Self.refusal(model, 9, .trunk(.prefs), base: 0) == nil)
        #expect(try Self.refusal(model, 1, .trunk(.home), base: 1) == nil)
        #expect(try Self.refusal(model, 2, .trunk(.home), base: 1) == .nameTaken(by: Self.id(1)))
    }

    @Test("a parent must exist, in the whole chain up to a trunk")
    func parents() throws {
        var model = try Self.chain(3)
        #expect(try Self.refusal(model, 9, .node(Self.id(50)), base: 0) == .parentMissing)
        model.nodes[Self.id(2)] = nil
        #expect(try Self.refusal(model, 9, .node(Self.id(3)), base: 0) == .parentMissing)
    }

    @Test("a node in the inbox has the tag of its id")
    func inbox() throws {
        let (model, node) = (TreeModel(), Self.id(4))
        #expect(try Self.refusal(model, 4, .trunk(.inbox), "hello", base: 0) == .inboxName)
        let right = NodeRecord(
            parent: .trunk(.inbox), tag: NodeTag(inInbox: node), epoch: 0, wraps: [], commitment: [], base: 0)
        #expect(TreeCheck.refusal(of: right, at: node, replacing: 0, in: model) == nil)
        #expect(TreeCheck.refusal(of: right, at: Self.id(5), replacing: 0, in: model) == .inboxName)
        #expect(
            NodeTag(inInbox: NodeID(0x0001_0203_0405_0607_0809_0A0B_0C0D_0E0F)).text
                == "porqyt5sy25smaycgtfaayiguwn4bl5o")
    }

    @Test("a trunk is not a key that can be written, and other keys that are not ids are refused")
    func keys() throws {
        for trunk in Trunk.allCases {
            #expect(throws: TreeRefusal.trunkIsFixed) { try TreeCheck.node(of: trunk.rawValue) }
        }
        for key in ["", "Home", "homes", "aaaqeayeaudaocajbifqydiob5"] {
            #expect(throws: TreeRefusal.badKey) { try TreeCheck.node(of: key) }
        }
        #expect(try TreeCheck.node(of: Self.id(7).text) == Self.id(7))
    }

    @Test("a damaged tree with a cycle ends the check")
    func damaged() throws {
        var model = try Self.chain(3)
        model.nodes[Self.id(1)]?.parent = .node(Self.id(3))
        #expect(try Self.refusal(model, 9, .node(Self.id(2)), base: 0) == .tooDeep)
    }

    @Test("each refusal has its word, and each word its code")
    func words() {
        let all: [(TreeRefusal, String, ErrorCode)] = [
            (.trunkIsFixed, "trunk", .invalidRequest), (.badKey, "bad-record", .invalidRequest),
            (.otherBase, "bad-record", .invalidRequest), (.stale(current: 3), "stale", .badVersion),
            (.nodeMissing, "node-missing", .notFound), (.parentMissing, "parent-missing", .invalidRequest),
            (.cycle, "cycle", .invalidRequest), (.tooDeep, "depth", .invalidRequest),
            (.inboxName, "bad-record", .invalidRequest), (.nameTaken(by: NodeID(1)), "name-taken", .invalidRequest),
        ]
        for (refusal, word, code) in all {
            #expect(refusal.reason.rawValue == word && refusal.reason.code == code && !refusal.description.isEmpty)
        }
        #expect(RecordFault.tooLarge.reason == .record && RefusalReason.record.code == .tooLarge)
    }

    @Test("random writes into random trees: refused exactly when the whole tree would be harmed", arguments: 1...6)
    func model(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var model = TreeModel()
        var counts = [RefusalReason?: Int]()
        for _ in 0..<1_500 {
            let known = model.nodes.keys.sorted()
            let isNew = known.count < 90 && Int.random(in: 0..<3, using: &random) == 0
            let id = isNew ? NodeID(UInt128(random.next() % 200)) : known.randomElement(using: &random) ?? NodeID(1)
            let record = try Self.record(
                Self.parent(model, known, &random), "n\(random.next() % 4)",
                base: random.next() % 16 == 0 ? Version(random.next() % 3) : model.version(of: id))
            let refusal = TreeCheck.refusal(of: record, at: id, replacing: record.base, in: model)
            let reasons = model.reasons(record, id)
            #expect(
                refusal.map { reasons.contains($0.reason) } ?? reasons.isEmpty,
                "\(String(describing: refusal)) \(reasons)")
            counts[refusal?.reason, default: 0] += 1
            if refusal == nil { model.write(record, id) }
            #expect(refusal != nil || model.harms.isEmpty)
        }
        let met: [RefusalReason?] = [nil, .stale, .parentMissing, .cycle, .depth, .nameTaken]
        for reason in met where seed == 1 || reason != .depth {
            #expect(counts[reason, default: 0] > 0, "\(String(describing: reason)): \(counts)")
        }
    }

    /// Mostly the deepest node, so that trees become deep.
    private static func parent(
        _ model: TreeModel, _ known: [NodeID], _ random: inout SeededRandom
    ) -> NodeParent {
        switch random.next() % 10 {
        case 0: return .trunk(Trunk.allCases.filter { $0 != .inbox }.randomElement(using: &random) ?? .home)
        case 1: return .node(NodeID(UInt128(random.next() % 200)))
        case 2, 3: return known.randomElement(using: &random).map { .node($0) } ?? .trunk(.home)
        default:
            func depth(_ id: NodeID) -> Int {
                guard case .node(let parent)? = model.parent(of: id) else { return 1 }
                return 1 + depth(parent)
            }
            return known.max { (depth($0), $0) < (depth($1), $1) }.map { .node($0) } ?? .trunk(.home)
        }
    }
}
