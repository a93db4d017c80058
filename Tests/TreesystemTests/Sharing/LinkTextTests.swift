import Testing
import ThicketClient
import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol
import ThicketTreeShape

@testable import ThicketTreesystem

/// The text of a link, which people send and cut.
@Suite("Links: the text")
struct LinkTextTests {
    private func link(secret: SecureBytes?) throws -> BranchLink {
        let signing = Ed25519.SigningKey.random()
        let keys = try PublicKeys(
            user: "ann", identity: signing.verifyingKey, encryption: X25519.PrivateKey.random().publicKey)
        let name = GuestName.of(String(repeating: "7", count: 32))
        let root = try #require(NodeID(text: String(repeating: "a", count: 26)))
        let guest = try #require(
            GuestAccount(["name": .string(name), "kind": .string("read"), "root": .string(root.text)]))
        return try BranchLink(("https://sync.example.com", "notes", "0123"), keys, root, guest, secret: secret)
    }

    @Test("a link is read as it was written, with a secret and without one")
    func roundTrip() throws {
        for secret in [SecureBytes.random(BranchLink.secretBytes), nil] {
            let link = try link(secret: secret)
            let read = try BranchLink(link.text)
            #expect(read.text == link.text && read.needsPassphrase == (secret == nil) && read.purpose == .reading)
            #expect(read.server == link.server && read.app == link.app && read.apiKey == link.apiKey)
            #expect(read.owner == link.owner && read.root == link.root && read.guest == link.guest)
            #expect(read.ownerDigest == link.ownerDigest && read.secret == secret)
            #expect(!"\(read)".contains(link.text.suffix(20)))
        }
    }

    @Test("A19: a link that was cut, lengthened or changed in any letter is refused as malformed")
    func damaged() throws {
        let text = try link(secret: .random(BranchLink.secretBytes)).text
        var letters = Array(text)
        var damaged = [
            String(text.dropLast()), text + "A", "", "thicket-link-1.", String(repeating: "x", count: 10_000),
        ]
        for place in letters.indices {
            let kept = letters[place]
            letters[place] = kept == "B" ? "C" : "B"
            damaged.append(String(letters))
            letters[place] = kept
        }
        for text in damaged {
            let error = #expect(throws: TreeError.self) { try BranchLink(text) }
            #expect(error?.code == .link && error?.reason == "malformed", "\(text)")
        }
    }
}
