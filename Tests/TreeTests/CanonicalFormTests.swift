import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

@testable import ThicketTreeShape

/// Bytes that another program computed from the table of `CanonicalForm`.
@Suite("Canonical form of a record")
struct CanonicalFormTests {
    private static func tree() throws -> TreePlace {
        TreePlace(app: try AppID("notes"), owner: try UserID("ann\u{E9}"))
    }

    private static let node = NodeID(0x0001_0203_0405_0607_0809_0A0B_0C0D_0E0F)

    /// A record with every member.
    private static func full() throws -> NodeRecord {
        var record = NodeRecord(
            parent: .node(NodeID(0x1011_1213_1415_1617_1819_1A1B_1C1D_1E1F)),
            tag: try #require(NodeTag(text: "beeqscijbeeqscijbeeqscijbeeqscij")), epoch: 3,
            wraps: [
                RecordWrap(
                    .user(try UserID("bob"), keyID: "k1"), sealed: [1] + [UInt8](repeating: 2, count: 80)),
                RecordWrap(.parent, sealed: [1] + [UInt8](repeating: 0, count: 60)),
            ],
            commitment: [UInt8](repeating: 7, count: 32), metadata: [1] + [UInt8](repeating: 8, count: 92),
            data: .blob(
                try #require(DataID(octets: [UInt8](repeating: 4, count: 16))), length: 200_000,
                blob: try #require(BlobID(octets: [UInt8](repeating: 5, count: 16)))),
            burnTime: 1_700_000_000_000, base: 41)
        record.signature = try RecordSignature(
            author: UserID("ann\u{E9}"), keyID: "k2", octets: [UInt8](repeating: 9, count: 64))
        return record
    }

    /// A record with the required members and content inside.
    private static func small() throws -> NodeRecord {
        NodeRecord(
            parent: .trunk(.home), tag: try #require(NodeTag(text: "beeqscijbeeqscijbeeqscijbeeqscij")), epoch: 0,
            wraps: [RecordWrap(.parent, sealed: [1] + [UInt8](repeating: 0, count: 60))],
            commitment: [UInt8](repeating: 7, count: 32), metadata: [1] + [UInt8](repeating: 8, count: 92),
            data: .inline(
                try #require(DataID(octets: [UInt8](repeating: 4, count: 16))),
                sealed: [UInt8](repeating: 6, count: 80)),
            base: 0)
    }

    @Test("the sealing form of a record with every member has the bytes of the table")
    func vector() throws {
        let bytes = CanonicalForm.sealing.bytes(of: try Self.full(), Self.node, in: try Self.tree())
        #expect(Hex.encode(bytes) == Self.expected)
    }

    @Test("the signing form contains the metadata too, and the small record has its published digests")
    func digests() throws {
        let (full, small, tree) = (try Self.full(), try Self.small(), try Self.tree())
        func digest(_ form: CanonicalForm, _ record: NodeRecord) -> String {
            Hex.encode(Hash.sha256(form.bytes(of: record, Self.node, in: tree)))
        }
        #expect(digest(.signing, full) == "13a4e44d0bbb9bea65b56212108d568f23c0119b0cd77f12504825b1c439a0c2")
        #expect(digest(.signing, small) == "f267342796e543158d223e3e3da2eb67ecbede88451bbf207437528582d3e3cd")
        #expect(digest(.sealing, small) == "a1bec8ef33cbed76d2333d04068f41686881fdbaaf621756d738d1344c5be7ca")
    }

    @Test("the order of members and of wraps in the JSON does not change the form")
    func order() throws {
        let (record, tree) = (try Self.full(), try Self.tree())
        var object = record.object
        let wraps = try #require(object["w"]?.arrayValue)
        object["w"] = .array(wraps.reversed())
        let read = try NodeRecord(JSONObject(object.pairs.reversed()), from: .device)
        #expect(read == record && read.object.serialized() == record.object.serialized())
        #expect(
            CanonicalForm.signing.bytes(of: read, Self.node, in: tree)
                == CanonicalForm.signing.bytes(of: record, Self.node, in: tree))
    }

    @Test("every member but the signature and the stamps changes the form, as do the node, the app and the owner")
    func covers() throws {
        let (record, tree) = (try Self.full(), try Self.tree())
        var forms: Set<[UInt8]> = [CanonicalForm.signing.bytes(of: record, Self.node, in: tree)]
        func add(_ change: (inout NodeRecord) throws -> Void) rethrows {
            var changed = record
            try change(&changed)
            forms.insert(CanonicalForm.signing.bytes(of: changed, Self.node, in: tree))
        }
        add { $0.parent = .trunk(.home) }
        try add { $0.tag = try #require(NodeTag(text: "ceeqscijbeeqscijbeeqscijbeeqscij")) }
        add { $0.epoch = 4 }
        add { $0.wraps = [$0.wraps[0]] }
        add { $0.wraps[0] = RecordWrap(.password, sealed: $0.wraps[0].sealed) }
        add { $0.commitment[31] ^= 1 }
        add { $0.metadata[92] ^= 1 }
        add { $0.data = nil }
        add { $0.burnTime = nil }
        add { $0.burnTime = 0 }
        add { $0.base = 42 }
        add { $0.signature = nil }
        try add {
            $0.signature = try RecordSignature(author: UserID("bob"), keyID: "k2", octets: $0.signature?.octets ?? [])
        }
        try add {
            $0.signature = try RecordSignature(
                author: UserID("ann\u{E9}"), keyID: "k3", octets: $0.signature?.octets ?? [])
        }
        for (app, owner, node) in [
            ("other", "ann\u{E9}", Self.node), ("notes", "ann", Self.node), ("notes", "ann\u{E9}", NodeID(1)),
        ] {
            forms.insert(
                CanonicalForm.signing.bytes(
                    of: record, node, in: TreePlace(app: try AppID(app), owner: try UserID(owner))))
        }
        #expect(forms.count == 18)
        add { $0.stamps = RecordStamps(changed: 1, created: 2, sender: $0.signature?.author) }
        try add {
            $0.signature = try RecordSignature(
                author: UserID("ann\u{E9}"), keyID: "k2", octets: [UInt8](repeating: 1, count: 64))
        }
        #expect(forms.count == 18)
    }

    private static let expected = """
        746869636b65742f7265636f72642f310001000000056e6f7465730200000005616e6ec3a9030000001a6161617165617965\
        617564616f63616a626966717964696f623404000000080000000000000001050000001a636169726565797563756c626f67\
        617a64696e727968693664340600000020626565717363696a626565717363696a626565717363696a626565717363696a07\
        000000040000000308000000a20001700000003d010000000000000000000000000000000000000000000000000000000000\
        000000000000000000000000000000000000000000000000000000000000000005753a626f6200026b310051010202020202\
        0202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202020202\
        0202020202020202020202020202020202020202020202020209000000200707070707070707070707070707070707070707\
        0707070707070707070707070b0000002902040404040404040404040404040404040000000000030d400505050505050505\
        05050505050505050d000000080000018bcfe568000e0000000800000000000000290f00000005616e6ec3a910000000026b\
        32
        """
}
