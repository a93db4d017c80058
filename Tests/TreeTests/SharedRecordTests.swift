import Testing
import ThicketCrypto
import ThicketNonces
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape

/// Records of the roots of shared branches (treesystem 4.3, 4.10; SP5).
@Suite("Records of shared branches", .nonceWatch)
struct SharedRecordTests {
    private static let user = "ben"
    private let place: ShareList.Place
    private let bare: NodeRecord

    init() throws {
        let trees = try TreeCase(seed: 5)
        let id = trees.newID()
        place = ShareList.Place(trees.tree, root: id)
        bare = try trees.sealer.create(NodeDraft(try NodeName("album")), id, below: trees.home)
    }

    private func signature() throws -> RecordSignature {
        try RecordSignature(author: place.tree.owner, keyID: "k1", octets: [UInt8](repeating: 7, count: 64))
    }

    private func list(_ letters: String = "rw", epoch: UInt32 = 0, commitment: [UInt8]? = nil) throws -> ShareList {
        ShareList(
            version: 1, epoch: epoch, commitment: commitment ?? bare.commitment,
            members: [
                ShareList.Member(
                    try UserID(Self.user), try #require(SharePermissions(text: letters)), keyID: "b1")
            ],
            signature: try signature())
    }

    private func wrap(_ user: String = user, keyID: String = "b1") throws -> RecordWrap {
        RecordWrap(
            .user(try UserID(user), keyID: keyID), sealed: [1] + [UInt8](repeating: 0, count: KeyWrap.bytesCount - 1))
    }

    private func shared(_ list: ShareList, wraps: [RecordWrap]) throws -> NodeRecord {
        var record = bare
        record.shareList = list
        record.wraps += wraps
        record.signature = try signature()
        return record
    }

    private func fault(_ record: NodeRecord) -> RecordFault? {
        do throws(RecordFault) {
            _ = try NodeRecord(record.object, from: .device)
            return nil
        } catch { return error }
    }

    @Test("a record with a list is read as it was written")
    func roundTrip() throws {
        let record = try shared(list(), wraps: [wrap()])
        #expect(try NodeRecord(record.object, from: .device) == record)
        let text = JSONValue.object(record.object).serialized()
        #expect(try NodeRecord(parsing: text, from: .server).shareList == record.shareList)
    }

    @Test("a root is signed, and its list is for its own key")
    func root() throws {
        var unsigned = try shared(list(), wraps: [wrap()])
        unsigned.signature = nil
        #expect(fault(unsigned) == .unsigned)
        #expect(fault(try shared(list(epoch: 1), wraps: [wrap()])) == .otherShareKey)
        let other = try list(commitment: [UInt8](repeating: 9, count: 32))
        #expect(fault(try shared(other, wraps: [wrap()])) == .otherShareKey)
    }

    @Test("SP5: the key of a root is wrapped for the readers in its list and for no other user")
    func readers() throws {
        #expect(fault(try shared(list(), wraps: [])) == .otherReaders)
        #expect(fault(try shared(list(), wraps: [wrap("cleo")])) == .otherReaders)
        #expect(fault(try shared(list(), wraps: [wrap(), wrap("cleo")])) == .otherReaders)
        #expect(fault(try shared(list(), wraps: [wrap(keyID: "b2")])) == .otherReaders)
        // A member that only deposits has no key.
        #expect(fault(try shared(list("W"), wraps: [])) == nil)
        #expect(fault(try shared(list("W"), wraps: [wrap()])) == .otherReaders)
    }

    @Test("signature and seal cover the list with its signature")
    func covered() throws {
        let record = try shared(list(), wraps: [wrap()])
        for form: CanonicalForm in [.signing, .sealing] {
            let bytes = form.bytes(of: record, place.root, in: place.tree)
            var changes = [NodeRecord]()
            var other = record
            other.shareList = nil
            changes.append(other)
            other.shareList = try list("r")
            changes.append(other)
            other.shareList = record.shareList
            other.shareList?.signature = try RecordSignature(
                author: place.tree.owner, keyID: "k1", octets: [UInt8](repeating: 8, count: 64))
            changes.append(other)
            for changed in changes { #expect(form.bytes(of: changed, place.root, in: place.tree) != bytes) }
            // The list is bound to its place.
            #expect(form.bytes(of: record, NodeID(99), in: place.tree) != bytes)
        }
    }

    @Test("a branch has a name that no bucket has, whatever the owner's name is")
    func branchNames() throws {
        for owner in ["ann", "ann@example.com", "a~b", "tree@x~y", "ü"] {
            let name = BranchName(of: try UserID(owner), root: place.root)
            #expect(BranchName(name.text) == name)
            #expect(throws: IdentifierError.self) { try BucketName(name.text) }
        }
        let root = place.root.text
        for text in [
            "", "tree", "tree@", "tree@~\(root)", "tree@ann", "tree@ann~", "tree@ann~\(root)x",
            "tree@ann~\(root.dropLast())",
            "Tree@ann~\(root)", "tree@ann~home", "tree@an\u{1}n~\(root)", "tree@ann\(root)",
        ] {
            #expect(BranchName(text) == nil, "\(text)")
        }
    }
}
