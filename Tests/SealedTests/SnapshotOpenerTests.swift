import Testing
import ThicketCrypto
import ThicketNonces
import ThicketProtocol

@testable import ThicketSealed

/// The opener of many snapshots of a bucket must accept exactly the snapshots that are accepted one by one.
@Suite("Opening many snapshots", .noncesGiven)
struct SnapshotOpenerTests {
    private static let nonce = [UInt8](repeating: 6, count: 12)
    private static let id = [UInt8](repeating: 5, count: 16)

    private static func keys(epochs: UInt32 = 1, owner: String = "ann", bucket: String = "b") throws -> SealedBucketKeys
    {
        let vault = SecureBytes(copying: [UInt8](repeating: 7, count: 32))
        var secrets = [UInt32: SecureBytes]()
        for epoch in 0..<epochs {
            secrets[epoch] = try SealedBucketKeys.secret(vault: vault, app: "notes", bucket: bucket, epoch: epoch)
        }
        return try SealedBucketKeys(owner: owner, app: "notes", bucket: bucket, secrets: secrets)
    }

    /// A snapshot of an object, whatever it calls itself, under a server key.
    private static func snapshot(
        _ appKey: String, under serverKey: String, _ keys: SealedBucketKeys, object: JSONObject? = ["t": "x"],
        position: Int = 0
    ) throws -> [UInt8] {
        var log = SealedLog(
            place: keys.place(serverKey: serverKey), appKey: appKey, incarnation: .init(repeating: 3, count: 16),
            object: object ?? [:])
        for number in 0..<position { _ = log.append([UInt8(number)], clear: nil) }
        log.object = object
        return try keys.sealer(serverKey: serverKey).seal(
            SealedSnapshot.clearBytes(of: log), kind: .snapshot, id: id, position: position, nonce: nonce)
    }

    private func look(
        _ opener: SnapshotOpener, _ sealed: [UInt8], _ serverKey: String, position: Int = 0
    ) -> SnapshotOpener.Look? {
        sealed.withUnsafeBytes { sealed in
            Array(serverKey.utf8).withUnsafeBytes { opener.look(at: sealed, position: position, serverKey: $0) }
        }
    }

    @Test("an opener reports the name of one object after the other and whether the object is live")
    func opens() throws {
        let keys = try Self.keys()
        let opener = keys.snapshotOpener()
        for name in ["a", "key1", "ein Schlüssel", String(repeating: "k", count: 200)] {
            let key = keys.serverKey(of: name)
            for object: JSONObject? in [["t": "x"], [:], nil] {
                for position: Int in [0, 1, 64, 130] {
                    let sealed: [UInt8] = try Self.snapshot(name, under: key, keys, object: object, position: position)
                    let wanted = SnapshotOpener.Look(appKey: name, isLive: object != nil)
                    #expect(look(opener, sealed, key, position: position) == wanted)
                    #expect(look(opener, sealed, key, position: position + 1) == nil)
                    #expect(look(opener, sealed, key, position: -1) == nil)
                }
            }
        }
    }

    @Test("a snapshot does not open with one bit changed, cut, of another kind, in another place or under another name")
    func bound() throws {
        let keys = try Self.keys()
        let opener = keys.snapshotOpener()
        let (key, other) = (keys.serverKey(of: "a"), keys.serverKey(of: "b"))
        let sealed = try Self.snapshot("a", under: key, keys)
        for place in sealed.indices {
            var changed = sealed
            changed[place] ^= 1 << UInt8(place % 8)
            #expect(look(opener, changed, key) == nil, "byte \(place)")
            #expect(look(opener, Array(sealed[..<place]), key) == nil, "\(place) bytes")
        }
        #expect(look(opener, sealed, other) == nil)
        for key in ["", "k", key + "a", String(key.dropLast()), key.uppercased()] {
            #expect(look(opener, sealed, key) == nil)
        }
        #expect(look(opener, try Self.snapshot("b", under: key, keys), key) == nil, "it calls itself by another name")
        let operation = try keys.sealer(serverKey: key).seal(
            [1], kind: .operation, id: Self.id, position: 0, nonce: Self.nonce)
        #expect(look(opener, operation, key) == nil)
        for others in [try Self.keys(owner: "bob"), try Self.keys(bucket: "c")] {
            #expect(look(others.snapshotOpener(), sealed, key) == nil)
        }
        #expect(look(opener, sealed, key) != nil, "a failed attempt leaves no state behind")
    }

    @Test("a sealed text that opens and is not a snapshot is rejected")
    func clear() throws {
        let keys = try Self.keys()
        let key = keys.serverKey(of: "a")
        let sealer = try keys.sealer(serverKey: key)
        let opener = keys.snapshotOpener()
        for text in ["", "{}", "[]", "null", "x", #"{"k":"a"}"#] {
            let sealed = sealer.seal(
                Array(text.utf8), kind: .snapshot, id: Self.id, position: 0, nonce: Self.nonce)
            #expect(look(opener, sealed, key) == nil)
        }
    }

    @Test("a snapshot that is sealed by hand to the rules opens, and one with other padding does not")
    func padding() throws {
        let keys = try Self.keys()
        let (name, vault): (String, SecureBytes) = (
            keys.serverKey(of: "a"), .init(copying: .init(repeating: 7, count: 32))
        )
        let secret = try SealedBucketKeys.secret(vault: vault, app: "notes", bucket: "b", epoch: 0)
        let root = try HKDF.derive(
            .sha256, secret: secret, info: Array("thicket/bucket-key/1".utf8) + [0] + Array("seal".utf8))
        let key = try HKDF.derive(
            .sha256, secret: root, info: Array("thicket/sealed-object/1".utf8) + [0, 0, 32] + Array(name.utf8))
        let header = [1, 1, 0, 0, 0, 0] + Self.id
        var data = Array("thicket/sealed/1".utf8) + [0] + header
        for part in ["ann", "notes", "b", name] { data += [0, UInt8(part.utf8.count)] + Array(part.utf8) }
        data += .init(repeating: 0, count: 8)
        let log = SealedLog(
            place: keys.place(serverKey: name), appKey: "a", incarnation: .init(repeating: 3, count: 16), object: [:])
        let padded = try #require(Padding.padme.pad(SealedSnapshot.clearBytes(of: log)))
        for (text, isGood) in [(padded, true), (padded + [0], false), (padded.dropLast() + [1], padded.last == 1)] {
            let sealed = try SealRecorder.$current.withValue(SealRecorder()) {
                header + Self.nonce
                    + (try AEAD(.aes256GCM, key: key).seal(text, nonce: try AEADNonce(Self.nonce), data: data))
            }
            #expect((look(keys.snapshotOpener(), sealed, name) != nil) == isGood)
        }
    }

    @Test("an opener opens snapshots of older epochs, and none of an epoch whose secret it lacks")
    func epochs() throws {
        let (old, new) = (try Self.keys(), try Self.keys(epochs: 2))
        let key = old.serverKey(of: "a")
        let (first, second) = (
            try Self.snapshot("a", under: key, old), try Self.snapshot("a", under: key, new)
        )
        let opener = new.copied.snapshotOpener()
        for sealed in [first, second, first] { #expect(look(opener, sealed, key)?.appKey == "a") }
        #expect(look(old.snapshotOpener(), first, key) != nil)
        #expect(look(old.snapshotOpener(), second, key) == nil)
    }
}
