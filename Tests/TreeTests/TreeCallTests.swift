import Testing
import ThicketCrypto
import ThicketNonces
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape

/// Random calls and answers, from a seed.
struct CallMaker {
    var random: SeededRandom
    let trees: TreeCase
    private let records: [NodeRecord]
    /// Records as copies have them: below a node, and in the inbox.
    private let copied: [NodeRecord]

    init(seed: UInt64) throws {
        random = SeededRandom(seed: seed)
        trees = try TreeCase(seed: seed)
        let trees = trees
        let contents: [DraftContent] = [.none, .inline(NodeContent(data: [1, 2, 3]))]
        var records = [NodeRecord]()
        for content in contents {
            records.append(
                try trees.sealer.create(
                    NodeDraft(NodeName("n"), content: content, burnTime: 1_900_000_000_000), trees.newID(),
                    below: trees.home))
        }
        self.records = records
        copied = try [NodeParent.node(NodeID(7)), .trunk(.inbox)].map { (parent) throws in
            try Self.copied(records[1], below: parent, in: trees.tree)
        }
    }

    private static func copied(_ made: NodeRecord, below parent: NodeParent, in tree: TreePlace) throws -> NodeRecord {
        var record = made
        record.parent = parent
        if parent == .trunk(.inbox) {
            let sealed = [UInt8](repeating: 1, count: KeyWrap.bytesCount)
            record.wraps = [RecordWrap(.user(tree.owner, keyID: "k"), sealed: sealed)]
        }
        record.signature = try RecordSignature(pending: tree.owner, keyID: "k")
        try RecordSignature.sign(&record, NodeID(8), in: tree, with: .random())
        return record
    }

    mutating func number(_ bounds: ClosedRange<Int64>) -> Int64 { Int64.random(in: bounds, using: &random) }
    mutating func flip() -> Bool { Bool.random(using: &random) }

    mutating func operation() -> TreeOperation {
        let (node, sv) = (trees.newID(), number(1...TreeLimits.versionMax))
        switch random.next() % 5 {
        case 0: return .put(node, source: flip() ? 0 : sv, records[flip() ? 0 : 1])
        case 1: return .delete(node, source: sv)
        case 2: return .burn(node, to: trees.tree.owner)
        case 3:
            let source = flip() ? CopySource(trees.newID(), version: sv) : nil
            return .copy(TreeCopy(node, to: trees.tree.owner, source: source, copied[flip() ? 0 : 1]))
        default:
            var branch = BranchRemoval(node, source: sv, includesOutdated: flip(), includesUnknown: flip())
            for _ in 0..<number(0...5) { branch.known[trees.newID()] = number(1...TreeLimits.versionMax) }
            return .deleteTree(branch)
        }
    }

    mutating func batch() -> TreeBatch {
        TreeBatch(id: BatchID.random(trees.random.bytes), (0..<number(1...6)).map { _ in operation() })
    }

    mutating func answer() throws -> TreeBatchAnswer {
        if flip() {
            return .refused(
                BatchRefusal(
                    ErrorCode.allCases.randomElement(using: &random) ?? .notFound,
                    RefusalReason.allCases.randomElement(using: &random), operation: flip() ? 0 : nil,
                    current: flip() ? number(1...TreeLimits.versionMax) : nil))
        }
        let results: [TreeOperationResult] = (0..<number(1...4)).map { _ in
            if flip() { return .version(number(1...99)) }
            let kept = (0..<number(0...4)).map { _ in trees.newID() }
            return .branch(
                BranchOutcome(removed: Int(number(0...9)), left: kept.count, kept: kept, hasMore: flip()))
        }
        return .made(position: try ChangeVersion("0f"), results: results)
    }

    mutating func page() throws -> ChildrenPage {
        let lists = (0..<number(0...3)).map { _ in
            let nodes = (0..<number(0...3)).map { _ in
                var record = records[flip() ? 0 : 1]
                record.stamps = RecordStamps(changed: 5, created: 4)
                if flip() { record.data = record.data?.withoutInline }
                let stats = ChildStats(count: 3, newest: 7)
                return ListedNode(
                    trees.newID(), version: number(1...99), record,
                    stats: flip() ? nil : flip() ? stats : ChildStats(count: 0, newest: nil))
            }
            return ChildList(
                of: flip() ? .trunk(.inbox) : .node(trees.newID()), nodes, next: flip() ? "cursor" : nil)
        }
        return ChildrenPage(current: try ChangeVersion("ff"), lists)
    }

    /// The same object with one change somewhere: a member that is missing, added or has another value.
    mutating func damaged(_ value: JSONValue) -> JSONValue {
        let others: [JSONValue] = [nil, true, -1, 1.5, "x", [], [:], .string("\u{0}")]
        let other = others[Int(random.next() % UInt64(others.count))]
        switch value {
        case .object(var object) where !object.isEmpty:
            let key = object.keys[Int(random.next() % UInt64(object.count))]
            switch random.next() % 4 {
            case 0: object.remove(key)
            case 1: object["other"] = other
            case 2: object[key] = other
            default: object[key] = object[key].map { damaged($0) }
            }
            return .object(object)
        case .array(var list) where !list.isEmpty:
            let place = Int(random.next() % UInt64(list.count))
            list[place] = damaged(list[place])
            return .array(list)
        default: return other
        }
    }
}

@Suite("Calls to a tree as JSON", .noncesGiven)
struct TreeCallTests {
    private static let id = "aaaqeayeaudaocajbifqydiob4"

    private static func fault(_ text: String) -> BatchFault? {
        do throws(BatchFault) {
            _ = try TreeBatch(parsing: Array(text.utf8))
            return nil
        } catch { return error }
    }

    @Test("2,000 random batches, answers, queries and pages are read as they were written, in one form")
    func roundTrip() throws {
        var maker = try CallMaker(seed: 1)
        for _ in 0..<2_000 {
            let (batch, answer, page) = (maker.batch(), try maker.answer(), try maker.page())
            let text = JSONValue.object(batch.object).serialized()
            let read = try TreeBatch(parsing: text)
            #expect(read == batch && JSONValue.object(read.object).serialized() == text)
            let answered = JSONValue.object(answer.object).serialized()
            #expect(try TreeBatchAnswer(parsing: answered) == answer)
            let listed = JSONValue.object(page.object).serialized()
            let again = try ChildrenPage(parsing: listed)
            #expect(again == page && JSONValue.object(again.object).serialized() == listed)
        }
    }

    @Test("20,000 damaged calls are refused or are other calls in their one form, and nothing traps")
    func damage() throws {
        var maker = try CallMaker(seed: 2)
        var refused = 0
        for _ in 0..<10_000 {
            let batch = maker.damaged(.object(maker.batch().object)).serialized()
            if let read = try? TreeBatch(parsing: batch) {
                #expect(try TreeBatch(parsing: JSONValue.object(read.object).serialized()) == read)
            } else {
                refused += 1
            }
            let page = maker.damaged(.object(try maker.page().object)).serialized()
            if let read = try? ChildrenPage(parsing: page) {
                #expect(try ChildrenPage(parsing: JSONValue.object(read.object).serialized()) == read)
            } else {
                refused += 1
            }
        }
        #expect(refused > 10_000)
    }

    @Test("the written form of a batch has its members in order")
    func form() throws {
        let node = try #require(NodeID(text: Self.id))
        let batch = TreeBatch(
            id: BatchID(0),
            [
                .delete(node, source: 7),
                .deleteTree(
                    BranchRemoval(node, source: 1, known: [NodeID(2): 2, NodeID(1): 9], includesUnknown: true)),
            ])
        #expect(
            JSONValue.object(batch.object).serializedText == """
                {"id":"aaaaaaaaaaaaaaaaaaaaaaaaaa","ops":[{"op":"delete","id":"\(Self.id)","sv":7},\
                {"op":"deleteTree","id":"\(Self.id)","sv":1,"known":{"aaaaaaaaaaaaaaaaaaaaaaaaae":9,\
                "aaaaaaaaaaaaaaaaaaaaaaaaai":2},"outdated":false,"unknown":true}]}
                """)
    }

    @Test("a batch is refused with the reason and the index of the operation that is at fault")
    func faults() {
        let good = "{\"op\":\"delete\",\"id\":\"\(Self.id)\",\"sv\":1}"
        let wrong: [(String, RefusalReason)] = [
            ("{\"op\":\"copy\",\"id\":\"\(Self.id)\",\"sv\":1}", .badBatch), ("[]", .badBatch),
            ("{\"op\":\"delete\",\"id\":\"\(Self.id)\",\"sv\":0}", .badBatch),
            ("{\"op\":\"delete\",\"id\":\"\(Self.id)\",\"sv\":1.0}", .badBatch),
            ("{\"op\":\"delete\",\"id\":\"home\",\"sv\":1}", .trunk),
            ("{\"op\":\"delete\",\"id\":\"\(String(repeating: "a", count: 100_000))\",\"sv\":1}", .badRecord),
            ("{\"op\":\"put\",\"id\":\"\(Self.id)\",\"sv\":0,\"record\":{}}", .badRecord),
            (
                "{\"op\":\"put\",\"id\":\"\(Self.id)\",\"sv\":0,\"record\":{\"m\":\"\(String(repeating: "a", count: 70_000))\"}}",
                .record
            ),
            ("{\"op\":\"put\",\"id\":\"\(Self.id)\",\"sv\":0}", .badBatch),
            (
                "{\"op\":\"deleteTree\",\"id\":\"\(Self.id)\",\"sv\":1,\"known\":{},\"outdated\":true,\"unknown\":true}",
                .badBatch
            ),
        ]
        for (operation, reason) in wrong {
            for place in 0..<3 {
                var operations = [good, good]
                operations.insert(operation, at: place)
                let fault = Self.fault("{\"id\":\"\(Self.id)\",\"ops\":[\(operations.joined(separator: ","))]}")
                #expect(fault?.reason == reason && fault?.operation == place, "\(operation.prefix(90))")
            }
        }
        for text in ["", "[]", "{}", "{\"id\":\"\(Self.id)\",\"ops\":[]}", "{\"id\":\"home\",\"ops\":[\(good)]}"] {
            #expect(Self.fault(text)?.reason == .badBatch && Self.fault(text)?.operation == nil)
        }
    }

    @Test(
        "a batch is bounded: bytes, depth, operations, and nodes in known; bad UTF-8 and repeated members are refused")
    func bounds() {
        let good = "{\"op\":\"delete\",\"id\":\"\(Self.id)\",\"sv\":1}"
        func batch(_ count: Int) -> String {
            "{\"id\":\"\(Self.id)\",\"ops\":[\([String](repeating: good, count: count).joined(separator: ","))]}"
        }
        #expect(Self.fault(batch(1_000)) == nil)
        #expect(Self.fault(batch(1_001))?.kind == .tooManyOperations)
        #expect(Self.fault(batch(10_000))?.reason == .batch)
        #expect(Self.fault(batch(1) + String(repeating: " ", count: 2_097_152))?.kind == .form(.tooLarge))
        let deep = String(repeating: "[", count: 100_000)
        #expect(Self.fault("{\"id\":\"\(Self.id)\",\"ops\":\(deep)")?.kind == .form(.notJSON))
        #expect(Self.fault("{\"id\":\"\(Self.id)\",\"id\":\"\(Self.id)\",\"ops\":[\(good)]}")?.kind == .form(.notJSON))
        #expect(throws: BatchFault.self) { try TreeBatch(parsing: Array("{\"id\":\"".utf8) + [0xFF, 0x22, 0x7D]) }
        let known = (0..<16_385).map { "\"\(NodeID(UInt128($0)).text)\":1" }.joined(separator: ",")
        let branch = """
            {"id":"\(Self.id)","ops":[{"op":"deleteTree","id":"\(Self.id)","sv":1,"known":{\(known)},\
            "outdated":true,"unknown":true}]}
            """
        #expect(Self.fault(branch)?.kind == .tooManyKnown)
    }

    @Test("the mark of a batch is in the ccid of each change, and no other ccid has one")
    func marks() throws {
        let mark = BatchMark(BatchID(5), index: 3, of: 10)
        #expect(mark.ccid == "aaaaaaaaaaaaaaaaaaaaaaaaau-3-10" && BatchMark(ccid: mark.ccid) == mark)
        #expect(try BatchMark(mark.json) == mark && !mark.isLast && BatchMark(BatchID(5), index: 9, of: 10).isLast)
        let id = BatchID(5).text
        for other in [
            id, "\(id)-1", "\(id)-1-1", "\(id)-0-0", "\(id)-01-2", "\(id)--1-2", "\(id)-0-1001", "\(id)-0-2-", "x-0-1",
            "\(id)-+0-1", "\(id)-0-2 ", "\(id.uppercased())-0-1", "", "\(id)-0-99999999999999999999",
        ] {
            #expect(BatchMark(ccid: other) == nil, "\(other)")
        }
        #expect(throws: TreeCallFault.self) { try BatchMark(["id": .string(id), "i": 2, "n": 2]) }
    }

    @Test("a query for children is read from parameters and from a body, and everything else is refused")
    func queries() throws {
        func read(_ text: String) throws -> ChildrenQuery {
            let pairs = text.split(separator: "&").map { $0.split(separator: "=", omittingEmptySubsequences: false) }
            return try ChildrenQuery { name in
                pairs.last { "\(name)" == $0[0] }.map { String($0[1]) }
            }
        }
        var query = ChildrenQuery(of: [.trunk(.home)])
        #expect(query.limit == 100 && ChildrenQuery(of: [NodeParent](repeating: .trunk(.home), count: 100)).limit == 10)
        #expect(try read("parent=home") == query)
        (query.order, query.before, query.isSkeleton, query.wantsStats) = (.tag, "abc", true, true)
        #expect(query.parameters == "parent=home&limit=100&order=tag&before=abc&fields=skeleton&stats=1")
        #expect(try read(query.parameters) == query)
        query.before = nil
        query.parents = [.trunk(.home), .node(NodeID(9))]
        #expect(try ChildrenQuery(parsing: JSONValue.object(query.object).serialized()) == query)
        for wrong in [
            "", "parent=x", "parent=home&limit=0", "parent=home&limit=1001", "parent=home&limit=+1",
            "parent=home&order=x",
            "parent=home&fields=x", "parent=home&stats=yes", "limit=1",
        ] {
            #expect(throws: TreeCallFault.self, "\(wrong)") { try read(wrong) }
        }
        let ids = (0..<101).map { "\"\(NodeID(UInt128($0)).text)\"" }
        for wrong in [
            "", "[]", "{}", "{\"parents\":[]}", "{\"parents\":[1]}", "{\"parents\":[\"home\",\"home\"]}",
            "{\"parents\":[\(ids.joined(separator: ","))]}", "{\"parents\":[\"home\",\"inbox\"],\"limit\":501}",
            "{\"parents\":[\"home\"],\"before\":\"x\"}", "{\"parents\":[\"home\"],\"stats\":1}",
            "{\"parents\":[\"home\"]}" + String(repeating: " ", count: 16_384),
        ] {
            #expect(throws: TreeCallFault.self) { try ChildrenQuery(parsing: Array(wrong.utf8)) }
        }
    }

    @Test("a node whose content was left out opens: its name is read, its content is not, and no device may store it")
    func withheld() throws {
        let trees = try TreeCase(seed: 3)
        let node = try trees.node("foo", below: trees.home, content: .inline(NodeContent(data: [1, 2, 3])))
        var record = node.record
        record.data = record.data?.withoutInline
        let sent = try NodeRecord(parsing: record.object.serialized(), from: .server)
        let opened = try trees.opener.open(sent, node.id, below: trees.home)
        #expect(opened.metadata == node.metadata && sent.data?.plainLength == node.record.data?.plainLength)
        #expect(throws: NodeFault.self) { try opened.inlineContent() }
        #expect(throws: RecordFault.badData) { try NodeRecord(record.object, from: .device) }
        guard case .withheld(let id, let length, var digest) = record.data else { return #expect(Bool(false)) }
        digest[0] ^= 1
        for data: RecordData in [
            .withheld(id, length: length + 64, digest: record.data.map { _ in digest } ?? []),
            .withheld(id, length: length, digest: digest), .withheld(DataID(1), length: length, digest: digest),
        ] {
            var other = record
            other.data = data
            #expect(throws: NodeFault.self) { try trees.opener.open(other, node.id, below: trees.home) }
        }
    }

    @Test("every fault of a call has a sentence")
    func sentences() {
        let faults: [TreeCallFault] = [
            .notJSON, .tooLarge, .notObject, .unknownMember, .missing("a"), .badValue("a"),
        ]
        #expect(Set(faults.map(\.description)).count == faults.count)
        let kinds: [BatchFault.Kind] = [
            .form(.notJSON), .record(.noWraps), .refusal(.trunkIsFixed), .tooManyOperations, .tooManyKnown,
        ]
        #expect(Set(kinds.map { BatchFault($0).description }).count == kinds.count)
    }
}
