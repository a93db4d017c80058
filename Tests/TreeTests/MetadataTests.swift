import Testing
import ThicketCrypto
import ThicketNonces
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape

@Suite("Metadata of a node", .noncesGiven)
struct MetadataTests {
    private static let salt = SecureBytes(copying: [UInt8](repeating: 5, count: 32))

    private static func metadata() throws -> NodeMetadata {
        NodeMetadata(
            name: try NodeName("é/x"), childSalt: salt,
            content: ContentAccess(
                .chaCha20Poly1305, key: SecureBytes(copying: [UInt8](repeating: 6, count: 32)),
                sizes: try SectionSizes(metadata: 1, thumbnail: 2, data: 1 << 40)),
            modified: -2,
            appTags: [try #require(NodeMetadata.AppTag("a", [7])), try #require(NodeMetadata.AppTag("b", []))])
    }

    private static func bytes(_ metadata: NodeMetadata) -> [UInt8] { metadata.octets.withUnsafeBytes { Array($0) } }

    private static func read(_ bytes: [UInt8]) throws(NodeMetadata.Fault) -> NodeMetadata {
        try NodeMetadata(octets: SecureBytes(copying: bytes))
    }

    private static func field(_ number: UInt16, _ content: [UInt8]) -> [UInt8] {
        number.octets + UInt32(content.count).octets + content
    }

    private static let name = field(1, [0x61])
    private static let saltField = field(2, [UInt8](repeating: 5, count: 32))

    @Test("the written form has the bytes of its table")
    func form() throws {
        let content: [UInt8] =
            [2] + [UInt8](repeating: 6, count: 32) + UInt64(1).octets + UInt64(2).octets + (UInt64(1) << 40).octets
        let expected =
            [1] + Self.field(1, Array("é/x".utf8)) + Self.saltField + Self.field(3, content)
            + Self.field(4, Int64(-2).octets) + Self.field(5, [0, 1, 0x61, 0, 1, 7, 0, 1, 0x62, 0, 0])
        #expect(Self.bytes(try Self.metadata()) == expected)
        let read = try Self.read(expected)
        #expect(try read == Self.metadata() && read.content?.sizes.data == 1 << 40 && read.modified == -2)
        let least = try Self.read([1] + Self.name + Self.saltField)
        #expect(least.content == nil && least.modified == nil && least.appTags.isEmpty)
        #expect(Self.bytes(least) == [1] + Self.name + Self.saltField)
    }

    @Test("fields of a newer version survive an edit by this one, with the newer version's number")
    func unknown() throws {
        let newer =
            [3] + Self.name + Self.saltField + Self.field(6, [1, 2, 3]) + Self.field(700, []) + Self.field(0x7FFF, [9])
        var metadata = try Self.read(newer)
        #expect(Self.bytes(metadata) == newer)
        metadata.name = try NodeName("b")
        metadata.modified = 1
        let expected =
            [3] + Self.field(1, [0x62]) + Self.saltField + Self.field(4, Int64(1).octets) + Self.field(6, [1, 2, 3])
            + Self.field(700, []) + Self.field(0x7FFF, [9])
        #expect(Self.bytes(metadata) == expected)
    }

    @Test("fields of a newer version survive sealing, opening, editing and moving of the record")
    func survives() throws {
        let trees = try TreeCase(seed: 31)
        let node = try trees.node("a", below: trees.home)
        let salt = node.metadata.childSalt.withUnsafeBytes { Array($0) }
        let newer = try Self.read([2] + Self.field(1, [0x61]) + Self.field(2, salt) + Self.field(1_000, [1, 2, 3]))
        let written = OpenedNode(tree: trees.tree, id: node.id, record: node.record, metadata: newer, key: node.key)
        let first = try trees.sealer.edit(written, below: trees.home, replacing: 1)
        let read = try trees.opener.open(first.sent(), node.id, below: trees.home)
        let prefs = trees.keys.parent(.prefs)
        let moved = try trees.sealer.move(read, below: prefs, named: NodeName("b"), replacing: 2)
        let last = try trees.opener.open(moved.sent(), node.id, below: prefs).metadata
        #expect(Self.bytes(last) == [2] + Self.field(1, [0x62]) + Self.field(2, salt) + Self.field(1_000, [1, 2, 3]))
    }

    @Test("a field that must be understood and is not known refuses the whole, as does an unknown suite")
    func critical() throws {
        for number: UInt16 in [0x8000, 0x8001, 0xFFFF] {
            let bytes = [1] + Self.name + Self.saltField + Self.field(number, [])
            #expect(throws: NodeMetadata.Fault.newerFormat) { try Self.read(bytes) }
        }
        let content: [UInt8] = [9] + [UInt8](repeating: 6, count: 56)
        #expect(throws: NodeMetadata.Fault.newerFormat) {
            try Self.read([1] + Self.name + Self.saltField + Self.field(3, content))
        }
    }

    @Test("there is one written form: everything else is damaged, whichever byte is missing or too many")
    func strict() throws {
        let whole = Self.bytes(try Self.metadata())
        for count in 0..<whole.count {
            // A whole number of fields may be complete; then a required one or none is missing.
            if let read = try? Self.read(Array(whole[..<count])) { #expect(Self.bytes(read) == Array(whole[..<count])) }
        }
        let wrong: [[UInt8]] = [
            [], [0] + Self.name + Self.saltField, [1], [1] + Self.name, [1] + Self.saltField,
            [1] + Self.saltField + Self.name, [1] + Self.name + Self.name + Self.saltField,
            [1] + Self.field(0, []) + Self.name + Self.saltField, [1] + Self.name + Self.saltField + [0],
            [1] + Self.field(1, []) + Self.saltField, [1] + Self.field(1, [0]) + Self.saltField,
            [1] + Self.field(1, [0xFF]) + Self.saltField,
            [1] + Self.field(1, [UInt8](repeating: 0x61, count: 256)) + Self.saltField,
            [1] + Self.name + Self.field(2, [UInt8](repeating: 5, count: 31)),
            [1] + Self.name + Self.saltField + Self.field(3, [1]),
            [1] + Self.name + Self.saltField + Self.field(3, [1] + [UInt8](repeating: 255, count: 56)),
            [1] + Self.name + Self.saltField + Self.field(3, [1] + [UInt8](repeating: 0, count: 57)),
            [1] + Self.name + Self.saltField + Self.field(4, [1]),
            [1] + Self.name + Self.saltField + Self.field(5, []),
            [1] + Self.name + Self.saltField + Self.field(5, [0, 1, 0x61, 0, 0, 0, 1, 0x61, 0, 0]),
            [1] + Self.name + Self.saltField + Self.field(5, [0, 1, 0x62, 0, 0, 0, 1, 0x61, 0, 0]),
            [1] + Self.name + Self.saltField + Self.field(5, [0, 0, 0, 0]),
            [1] + Self.name + Self.saltField + Self.field(5, [0, 1, 0xFF, 0, 0]),
            [1] + Self.name + Self.saltField + Self.field(5, [0, 9, 0x61]),
            [1] + Self.name + Self.saltField + UInt16(6).octets + [0xFF, 0xFF, 0xFF, 0xFF],
        ]
        for (place, bytes) in wrong.enumerated() {
            #expect(throws: NodeMetadata.Fault.damaged, "case \(place)") { try Self.read(bytes) }
        }
    }

    @Test("random bytes are metadata that is written the same, or a fault")
    func random() throws {
        var random = SeededRandom(seed: 33)
        let whole = Self.bytes(try Self.metadata())
        for _ in 0..<20_000 {
            var bytes = whole
            for _ in 0...random.next() % 2 {
                bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(
                    truncatingIfNeeded: random.next() % 8 == 0 ? random.next() : random.next() % 9)
            }
            if let read = try? Self.read(bytes) { #expect(Self.bytes(read) == bytes) }
        }
    }
}
