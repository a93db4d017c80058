import Testing
import ThicketCrypto
import ThicketNonces
import ThicketSealed

@testable import ThicketSharing

@Suite("Secrets of a shared bucket, wrapped for its readers", .nonceWatch)
struct SecretWrapTests {
    private static func circle() throws -> Circle { try Circle(["ben": .writes, "cleo": .reads]) }

    @Test("each reader of the list opens the secrets and derives the owner's keys from them")
    func opens() throws {
        var circle = try Self.circle()
        try circle.change(to: ["ben": .writes, "cleo": .reads], newEpoch: true)
        #expect(circle.wraps.count == 6)
        let keys = try circle.secrets.keys()
        for user in ["ann", "ben", "cleo"] {
            let opened = try circle.opened(by: user)
            #expect(opened == circle.secrets && opened.epoch == 1)
            #expect(try opened.keys().serverKey(of: "note") == keys.serverKey(of: "note"))
        }
        for wrap in circle.wraps { #expect(try SecretWrap(parsing: wrap.bytes) == wrap) }
    }

    @Test(
        "secrets are wrapped only for the verified keys that a verified list names"
    )
    func verifiedOnly() throws {
        let circle = try Self.circle()
        let list = try circle.checked()
        let known = circle.members.mapValues(\.keys)
        #expect(throws: SharingError.unverified("cleo")) {
            _ = try circle.secrets.wraps(
                for: list, keys: VerifiedKeys { $0.utf8.elementsEqual("cleo".utf8) ? nil : known[$0] })
        }
        // The server shows other keys of cleo, or another account's under her name.
        for other in [try Member("cleo").keys, try Member("eve").keys] {
            #expect(throws: SharingError.self) {
                _ = try circle.secrets.wraps(
                    for: list, keys: VerifiedKeys { $0.utf8.elementsEqual("cleo".utf8) ? other : known[$0] })
            }
        }
        let wraps = try circle.secrets.wraps(for: list, keys: circle.verified)
        #expect(wraps.map(\.user) == ["ann", "ben", "cleo"])
        // Of an account's verified keys, only the present ones get a wrap.
        let renewed = try Member("cleo").keys
        let past = VerifiedKeys(
            { $0.utf8.elementsEqual("cleo".utf8) ? renewed : known[$0] }, past: { (user, _) in known[user] })
        #expect(throws: SharingError.otherKeys("cleo")) { _ = try circle.secrets.wraps(for: list, keys: past) }
    }

    @Test("a wrap with any bit flipped, cut, or longer by one byte does not open")
    func flipped() throws {
        let circle = try Self.circle()
        let ben = try circle.member("ben")
        let wrap = try #require(circle.wraps.first { $0.user == "ben" })
        for (bit, changed) in wrap.bytes.flipped.enumerated() {
            #expect(throws: SharingError.self, "bit \(bit)") {
                _ = try BucketSecrets.opened(
                    [SecretWrap(parsing: changed)], for: circle.checked(), as: ben.keys, with: ben.opening)
            }
        }
        for count in wrap.bytes.indices {
            #expect(throws: SharingError.malformed) { _ = try SecretWrap(parsing: Array(wrap.bytes.prefix(count))) }
        }
        #expect(throws: SharingError.malformed) { _ = try SecretWrap(parsing: wrap.bytes + [0]) }
    }

    @Test("a wrap opens only for its reader, bucket and epoch, whatever reader it names")
    func moved() throws {
        var circle = try Self.circle()
        try circle.change(to: ["ben": .writes, "cleo": .reads], newEpoch: true)
        let cleo = try circle.member("cleo")
        func opened(_ wraps: [SecretWrap]) throws -> BucketSecrets {
            try BucketSecrets.opened(wraps, for: circle.checked(), as: cleo.keys, with: cleo.opening)
        }
        let own = circle.wraps.filter { $0.user == "cleo" }
        #expect(try opened(own) == circle.secrets)
        // Ben's, as hers.
        let bens = circle.wraps.filter { $0.user == "ben" }.map {
            SecretWrap(epoch: $0.epoch, user: "cleo", keyID: cleo.keys.id, sealed: $0.sealed)
        }
        #expect(throws: SharingError.missing(epoch: 0)) { _ = try opened(bens) }
        // One epoch's as another's.
        let swapped = own.map {
            SecretWrap(epoch: 1 - $0.epoch, user: $0.user, keyID: $0.keyID, sealed: $0.sealed)
        }
        #expect(throws: SharingError.missing(epoch: 0)) { _ = try opened(swapped) }
        #expect(throws: SharingError.missing(epoch: 1)) { _ = try opened(own.filter { $0.epoch == 0 }) }
        // Another bucket's, of the same owner and readers.
        var other = try Circle([:], bucket: "other")
        other.members = circle.members
        try other.change(to: ["ben": .writes, "cleo": .reads], newEpoch: true)
        #expect(throws: SharingError.missing(epoch: 0)) { _ = try opened(other.wraps) }
        // An account that is not in the list, or has other keys than the list names.
        let eve = try Member("eve")
        #expect(throws: SharingError.notAReader) {
            _ = try BucketSecrets.opened(circle.wraps, for: circle.checked(), as: eve.keys, with: eve.opening)
        }
        #expect(throws: SharingError.unusableKey) {
            _ = try BucketSecrets.opened(own, for: circle.checked(), as: cleo.keys, with: eve.opening)
        }
    }

    @Test("all readers get one secret: one that the list does not commit to is neither opened nor wrapped")
    func committed() throws {
        let circle = try Self.circle()
        let cleo = try circle.member("cleo")
        let secret = SecureBytes.random(32)
        let sealed = try SecretWrap.place(circle.bucket, epoch: 0, cleo.listed(.reads)).seal(
            secret, to: cleo.keys.encryption)
        let false_ = SecretWrap(epoch: 0, user: "cleo", keyID: cleo.keys.id, sealed: sealed)
        func opened(_ wraps: [SecretWrap]) throws -> BucketSecrets {
            try BucketSecrets.opened(wraps, for: circle.checked(), as: cleo.keys, with: cleo.opening)
        }
        #expect(throws: SharingError.notCommitted(epoch: 0)) { _ = try opened([false_]) }
        // Beside the true wrap a false one is skipped; of many false ones, not all are tried.
        #expect(try opened([false_] + circle.wraps) == circle.secrets)
        #expect(throws: SharingError.notCommitted(epoch: 0)) {
            _ = try opened(.init(repeating: false_, count: 4) + circle.wraps)
        }
        // An owner does not wrap a secret to which its own list does not commit.
        let others = try BucketSecrets(of: circle.bucket, secret: secret)
        #expect(throws: SharingError.notCommitted(epoch: 0)) {
            _ = try others.wraps(for: circle.checked(), keys: circle.verified)
        }
        #expect(throws: SharingError.notCommitted(epoch: 1)) {
            _ = try circle.secrets.beginning(.random(32)).wraps(for: circle.checked(), keys: circle.verified)
        }
        #expect(throws: SharingError.notCommitted(epoch: 0)) {
            _ = try BucketSecrets.opened([], for: circle.checked(), known: others, as: cleo.keys, with: cleo.opening)
        }
    }

    @Test("a new reader gets all epochs, an existing reader only the new one, and a removed reader none")
    func changes() throws {
        var circle = try Self.circle()
        let old = try circle.opened(by: "ben")
        try circle.change(to: ["cleo": .reads, "dora": .writes], newEpoch: true)
        let new = circle.wraps[3...]
        #expect(new.map(\.user) == ["ann", "cleo", "dora", "dora"])
        #expect(new.map(\.epoch) == [1, 1, 0, 1])
        #expect(try circle.opened(by: "dora") == circle.secrets)
        #expect(throws: SharingError.notAReader) { _ = try circle.opened(by: "ben", known: old) }
        let before = old
        #expect(before.epoch == 0)
        // A device that has the older secrets needs only the wraps of the new one.
        let cleo = try circle.member("cleo")
        let more: BucketSecrets = try .opened(
            Array(new), for: circle.checked(), known: before, as: cleo.keys, with: cleo.opening)
        #expect(more == circle.secrets)
    }

    @Test("a bucket secret has 32 bytes, is not printed, and derives no key that equals its commitment")
    func secrets() throws {
        let circle = try Self.circle()
        for count: Int in [0, 31, 33] {
            #expect(throws: SharingError.outOfBounds) {
                _ = try BucketSecrets(of: circle.bucket, secret: .random(count))
            }
        }
        #expect("\(circle.secrets)".contains("(secret)"))
        // The commitment equals none of the keys that are derived from the secret.
        let secret = SecureBytes.random(32)
        let commitment = try BucketSecrets.commitment(of: secret).bytes
        for label in ["name", "seal"] {
            let key = try HKDF.derive(
                .sha256, secret: secret, info: Array("thicket/bucket-key/1".utf8) + [0] + Array(label.utf8))
            #expect(key.withUnsafeBytes { Array($0) } != commitment)
        }
    }
}
