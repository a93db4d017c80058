import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketTreeShape

@testable import ThicketTree

@Suite("Letters about shared branches")
struct BranchInviteTests {
    private static let place: ShareList.Place? = {
        guard let app = try? AppID("notes"), let owner = try? UserID("ann") else { return nil }
        return ShareList.Place(TreePlace(app: app, owner: owner), root: NodeID(7))
    }()

    private func list(version: Int64, epoch: UInt32 = 1, members: [ShareList.Member] = []) throws -> ShareList {
        let signature = try RecordSignature(
            author: try UserID("ann"), keyID: "key", octets: [UInt8](repeating: 1, count: 64))
        return ShareList(
            version: version, epoch: epoch, commitment: [UInt8](repeating: 2, count: 32), members: members,
            signature: signature)
    }

    @Test("an invitation and a request to leave are read as they were written, and nothing else is read")
    func forms() throws {
        let place = try #require(Self.place)
        let invite = BranchInvite(try list(version: 3), at: place)
        let letters = [BranchLetter.invite(invite), .leave(try UserID("ann"), root: NodeID(7))]
        for letter in letters {
            #expect(BranchLetter(octets: letter.octets) == letter)
            for count in 0..<letter.octets.count {
                #expect(BranchLetter(octets: Array(letter.octets.prefix(count))) == nil, "\(count) bytes")
            }
            #expect(BranchLetter(octets: letter.octets + [0]) == nil)
        }
        #expect(letters[0].octets != letters[1].octets)
        let start = Array("thicket/invite/1".utf8) + [0, 0, 3] + Array("ann".utf8) + NodeID(7).octets
        #expect(letters[0].octets.starts(with: start))
        #expect(
            Array(letters[0].octets.dropFirst(start.count)) == [0, 0, 0, 1] + [0, 0, 0, 0, 0, 0, 0, 3] + invite.digest)
    }

    @Test("A10: a list that is older than the invitation, or another one of its version, does not follow it")
    func lists() throws {
        let place = try #require(Self.place)
        let known = try list(version: 3)
        let invite = BranchInvite(known, at: place)
        #expect(invite.fault(of: known, at: place) == nil)
        #expect(invite.fault(of: try list(version: 4), at: place) == nil)
        #expect(invite.fault(of: try list(version: 9, epoch: 5), at: place) == nil)
        #expect(invite.fault(of: try list(version: 2), at: place) == .olderList)
        #expect(invite.fault(of: try list(version: 4, epoch: 0), at: place) == .olderList)
        let other = try list(version: 3, members: [ShareList.Member(try UserID("bob"), .read, keyID: "k")])
        #expect(invite.fault(of: other, at: place) == .forkedList)
    }
}
