import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketTreeShape

/// The signed list on the root of a shared branch (SP5): one form, a signature of the owner or of a member with the
/// owner's grant, and one list that may follow another.
@Suite("Lists of shared branches")
struct ShareListTests {
    /// Three accounts and a branch of the first.
    private struct World {
        let place: ShareList.Place
        let owner: UserID
        let keys: [UserID: Ed25519.SigningKey]

        init() throws {
            owner = try UserID("ann")
            place = ShareList.Place(
                TreePlace(app: try AppID("notes"), owner: owner), root: NodeID(0x0102_0304_0506_0708))
            var keys = [UserID: Ed25519.SigningKey]()
            for name in ["ann", "ben", "cleo"] { keys[try UserID(name)] = .random() }
            self.keys = keys
        }

        static func keyID(_ user: UserID) -> String { "key-" + user.text }

        func member(_ name: String, _ letters: String) throws -> ShareList.Member {
            let user = try UserID(name)
            return ShareList.Member(
                user, try #require(SharePermissions(text: letters)), keyID: Self.keyID(user))
        }

        func grant(_ name: String, from epoch: UInt32 = 0, by signer: String = "ann") throws -> ShareList.Grant {
            let user = try UserID(name)
            var grant = ShareList.Grant(
                user, keyID: Self.keyID(user), fromEpoch: epoch, ownerKeyID: Self.keyID(owner), signature: [])
            grant.signature = try #require(keys[UserID(signer)])
                .signature(of: ShareList.grantForm(grant, at: place))
            return grant
        }

        /// A list, signed.
        func list(
            _ members: [ShareList.Member], after before: ShareList? = nil, epoch: UInt32? = nil,
            grants: [ShareList.Grant] = [], by author: String = "ann"
        ) throws -> ShareList {
            let user = try UserID(author)
            let epoch = epoch ?? before?.epoch ?? 0
            var list = ShareList(
                version: (before?.version ?? 0) + 1, epoch: epoch,
                commitment: [UInt8](repeating: UInt8(epoch + 1), count: 32), members: members, grants: grants,
                previous: before?.digest(at: place),
                signature: try RecordSignature(
                    author: user, keyID: Self.keyID(user), octets: [UInt8](repeating: 0, count: 64)))
            try sign(&list)
            return list
        }

        func sign(_ list: inout ShareList) throws {
            let key = try #require(keys[list.signature.author])
            list.signature = try RecordSignature(
                author: list.signature.author, keyID: list.signature.keyID,
                octets: key.signature(of: list.form(at: place)))
        }

        func error(_ list: ShareList, after before: ShareList? = nil) -> ShareListError? {
            do throws(ShareListError) {
                try list.checkSignatures(at: place) { user, keyID in
                    keyID == Self.keyID(user) ? keys[user]?.verifyingKey : nil
                }
                try list.checkFollows(before, at: place)
                return nil
            } catch { return error }
        }
    }

    @Test("a list is written and read back, with grants and without; it has the signature's bytes in one form")
    func roundTrip() throws {
        let world = try World()
        let first = try world.list([world.member("ben", "rw"), world.member("cleo", "r")])
        let second = try world.list(
            [world.member("ben", "rws"), world.member("cleo", "r")], after: first, grants: [world.grant("ben")])
        for list in [first, second] {
            #expect(try ShareList(JSONValue(parsing: Array(list.json.serialized()))) == list)
        }
        #expect(world.error(first) == nil)
        #expect(world.error(second, after: first) == nil)
    }

    @Test("each changed member of the JSON is refused, by the reader or by the signature")
    func changed() throws {
        let world = try World()
        let first = try world.list([world.member("ben", "rw")])
        let list = try world.list(
            [world.member("ben", "rws"), world.member("cleo", "rWB")], after: first, grants: [world.grant("ben")])
        let text = Array(list.json.serialized())
        var refused = 0
        for place in text.indices {
            for bit in 0..<7 {
                var changed = text
                changed[place] ^= 1 << bit
                guard let value = try? JSONValue(parsing: changed), let read = try? ShareList(value), read != list
                else { continue }
                refused += 1
                #expect(world.error(read, after: first) != nil, "byte \(place), bit \(bit)")
            }
        }
        #expect(refused > 500)
    }

    @Test("a list of another branch, tree or app does not verify")
    func otherPlace() throws {
        let world = try World()
        let list = try world.list([world.member("ben", "r")])
        let other = try World()
        let places = [
            ShareList.Place(world.place.tree, root: NodeID(7)),
            ShareList.Place(TreePlace(app: try AppID("other"), owner: world.owner), root: world.place.root),
        ]
        for place in places {
            #expect(throws: ShareListError.notSigned) {
                try list.checkSignatures(at: place) { user, _ in world.keys[user]?.verifyingKey }
            }
        }
        #expect(other.error(list) == .notSigned)
    }

    @Test("the owner is not a member; members and grants are in order and not repeated")
    func order() throws {
        let world = try World()
        let owned = try world.list([world.member("ann", "rws")])
        #expect(world.error(owned) == .ownerListed)
        let unordered = try world.list([world.member("cleo", "r"), world.member("ben", "r")])
        #expect(throws: ShareListFault.badOrder) { try ShareList(unordered.json) }
        let repeated = try world.list([world.member("ben", "r"), world.member("ben", "rw")])
        #expect(throws: ShareListFault.badOrder) { try ShareList(repeated.json) }
        let many = try world.list((0...TreeLimits.shareMembersMax).map { try world.member("u\(1_000 + $0)", "r") })
        #expect(throws: ShareListFault.tooManyMembers) { try ShareList(many.json) }
    }

    @Test("A10: a list that names a reader and is not signed by the owner or with a grant is refused")
    func strangers() throws {
        let world = try World()
        let first = try world.list([world.member("ben", "rw")])
        let raised = try world.list([world.member("ben", "rws")], after: first, by: "ben")
        #expect(world.error(raised, after: first) == .noGrant)
        let added = try world.list([world.member("ben", "rw"), world.member("cleo", "r")], after: first, by: "cleo")
        #expect(world.error(added, after: first) == .noGrant)
        let forged = try world.list(
            [world.member("ben", "rws")], after: first, grants: [world.grant("ben", by: "ben")], by: "ben")
        #expect(world.error(forged, after: first) == .noGrant)
    }

    @Test("a member with a grant adds and removes readers, but gives no grant and no right to share")
    func delegated() throws {
        let world = try World()
        let grants = [try world.grant("ben")]
        let first = try world.list([world.member("ben", "rws")], grants: grants)
        let added = try world.list(
            [world.member("ben", "rws"), world.member("cleo", "rw")], after: first, grants: grants, by: "ben")
        #expect(world.error(added, after: first) == nil)
        let raised = try world.list(
            [world.member("ben", "rws"), world.member("cleo", "rws")], after: first, grants: grants, by: "ben")
        #expect(world.error(raised, after: first) == .beyondGrant)
        let dropped = try world.list([world.member("ben", "rws")], after: first, by: "ben")
        #expect(world.error(dropped, after: first) == .noGrant)
        let late = try world.list([world.member("ben", "rws")], grants: [world.grant("ben", from: 4)], by: "ben")
        #expect(world.error(late) == .noGrant)
    }

    @Test("a removed reader, or other keys of one, need another epoch; an epoch is never skipped or gone back to")
    func epochs() throws {
        let world = try World()
        let first = try world.list([world.member("ben", "rw"), world.member("cleo", "r")])
        #expect(world.error(try world.list([world.member("ben", "rw")], after: first), after: first) == .badEpoch)
        let removed = try world.list([world.member("ben", "rw")], after: first, epoch: 1)
        #expect(world.error(removed, after: first) == nil)
        #expect(
            world.error(try world.list([world.member("ben", "r")], after: first, epoch: 2), after: first) == .badEpoch)
        #expect(world.error(try world.list([], after: removed, epoch: 0), after: removed) == .badEpoch)
        var keys = try world.list(first.members, after: first)
        keys.members[0].keyID = "another"
        try world.sign(&keys)
        #expect(world.error(keys, after: first) == .badEpoch)
        let rights = try world.list([world.member("ben", "r"), world.member("cleo", "rw")], after: first)
        #expect(world.error(rights, after: first) == nil)
    }

    @Test("a list follows the one before it, and no other one")
    func follows() throws {
        let world = try World()
        let first = try world.list([world.member("ben", "rw")])
        let other = try world.list([world.member("ben", "r")])
        let second = try world.list([world.member("ben", "rw"), world.member("cleo", "r")], after: first)
        #expect(world.error(second, after: other) == .notNext)
        #expect(world.error(first, after: second) == .notNext)
        // A branch that is shared again: the server has no list to compare with, and a list names the one before it.
        #expect(world.error(second) == nil)
        for previous in [second.previous, nil] {
            var list = previous == nil ? second : first
            list.previous = previous
            try world.sign(&list)
            #expect(world.error(list) == .notNext)
        }
        var skipped = second
        skipped.version = 3
        try world.sign(&skipped)
        #expect(world.error(skipped, after: first) == .notNext)
    }
}
