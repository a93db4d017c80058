import Testing
import ThicketCrypto
import ThicketNonces
import ThicketProtocol

@testable import ThicketSealed

/// What opens many snapshots of a bucket must take exactly what is taken one by one.
@Suite("Opening many snapshots", .noncesGiven)
struct SnapshotOpenerTests {
    private static let nonce: [UInt8] = .init(repeating: 6, count: 12)
    private static let id: [UInt8] = .init(repeating: 5, count: 16)

    private static func keys(epochs: UInt32 = 1, owner: String = "ann", bucket: String = "b") throws -> SealedBucketKeys
    {
        let vault: SecureBytes = .init(copying: [UInt8](repeating: 7, count: 32))
        var secrets: [UInt32: SecureBytes] = [:]
        for epoch: UInt32 in 0..<epochs {
            secrets[epoch] = try SealedBucketKeys.secret(vault: vault, app: "notes", bucket: bucket, epoch: epoch)
        }
        return try SealedBucketKeys(owner: owner, app: "notes", bucket: bucket, secrets: secrets)
    }

    /// A snapshot of an object, whatever it calls itself, under a server key.
    private static func snapshot(
        _ appKey: String, under serverKey: String, _ keys: SealedBucketKeys, object: JSONObject? = ["t": "x"],
        position: Int = 0
    ) throws -> [UInt8] {
        var log: SealedLog = .init(
            place: keys.place(serverKey: serverKey), appKey: appKey, incarnation: .init(repeating: 3, count: 16),
            object: object ?? [:])
        for number: Int in 0..<position { _ = log.append([UInt8(number)], clear: nil) }
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

    @Test("tells the name and whether it is there, of one object after the other")
    func opens() throws {
        let keys: SealedBucketKeys = try Self.keys()
        let opener: SnapshotOpener = keys.snapshotOpener()
        for name: String in ["a", "key1", "ein Schlüssel", String(repeating: "k", count: 200)] {
            let key: String = keys.serverKey(of: name)
            for object: JSONObject? in [["t": "x"], [:], nil] {
                for position: Int in [0, 1, 64, 130] {
                    let sealed: [UInt8] = try Self.snapshot(name, under: key, keys, object: object, position: position)
                    let wanted: SnapshotOpener.Look = .init(appKey: name, isLive: object != nil)
                    #expect(look(opener, sealed, key, position: position) == wanted)
                    #expect(look(opener, sealed, key, position: position + 1) == nil)
                    #expect(look(opener, sealed, key, position: -1) == nil)
                }
            }
        }
    }

    @Test("nothing opens with one bit changed, cut, of another kind, in another place or under another name")
    func bound() throws {
        let keys: SealedBucketKeys = try Self.keys()
        let opener: SnapshotOpener = keys.snapshotOpener()
        let (key, other): (String, String) = (keys.serverKey(of: "a"), keys.serverKey(of: "b"))
        let sealed: [UInt8] = try Self.snapshot("a", under: key, keys)
        for place: Int in sealed.indices {
            var changed: [UInt8] = sealed
            changed[place] ^= 1 << UInt8(place % 8)
            #expect(look(opener, changed, key) == nil, "byte \(place)")
            #expect(look(opener, Array(sealed[..<place]), key) == nil, "\(place) bytes")
        }
        #expect(look(opener, sealed, other) == nil)
        for key: String in ["", "k", key + "a", String(key.dropLast()), key.uppercased()] {
            #expect(look(opener, sealed, key) == nil)
        }
        #expect(look(opener, try Self.snapshot("b", under: key, keys), key) == nil, "it calls itself by another name")
        let operation: [UInt8] = try keys.sealer(serverKey: key).seal(
            [1], kind: .operation, id: Self.id, position: 0, nonce: Self.nonce)
        #expect(look(opener, operation, key) == nil)
        for others: SealedBucketKeys in [try Self.keys(owner: "bob"), try Self.keys(bucket: "c")] {
            #expect(look(others.snapshotOpener(), sealed, key) == nil)
        }
        #expect(look(opener, sealed, key) != nil, "what did not open leaves nothing behind")
    }

    @Test("what opens and is no snapshot is none")
    func clear() throws {
        let keys: SealedBucketKeys = try Self.keys()
        let key: String = keys.serverKey(of: "a")
        let sealer: ObjectSealer = try keys.sealer(serverKey: key)
        let opener: SnapshotOpener = keys.snapshotOpener()
        for text: String in ["", "{}", "[]", "null", "x", #"{"k":"a"}"#] {
            let sealed: [UInt8] = sealer.seal(
                Array(text.utf8), kind: .snapshot, id: Self.id, position: 0, nonce: Self.nonce)
            #expect(look(opener, sealed, key) == nil)
        }
    }

    @Test("a snapshot that is padded otherwise is none: sealed by hand, as the rules have it")
    func padding() throws {
        let keys: SealedBucketKeys = try Self.keys()
        let (name, vault): (String, SecureBytes) = (
            keys.serverKey(of: "a"), .init(copying: .init(repeating: 7, count: 32))
        )
        let secret: SecureBytes = try SealedBucketKeys.secret(vault: vault, app: "notes", bucket: "b", epoch: 0)
        let root: SecureBytes = try HKDF.derive(
            .sha256, secret: secret, info: Array("thicket/bucket-key/1".utf8) + [0] + Array("seal".utf8))
        let key: SecureBytes = try HKDF.derive(
            .sha256, secret: root, info: Array("thicket/sealed-object/1".utf8) + [0, 0, 32] + Array(name.utf8))
        let header: [UInt8] = [1, 1, 0, 0, 0, 0] + Self.id
        var data: [UInt8] = Array("thicket/sealed/1".utf8) + [0] + header
        for part: String in ["ann", "notes", "b", name] { data += [0, UInt8(part.utf8.count)] + Array(part.utf8) }
        data += .init(repeating: 0, count: 8)
        let log: SealedLog = .init(
            place: keys.place(serverKey: name), appKey: "a", incarnation: .init(repeating: 3, count: 16), object: [:])
        let padded: [UInt8] = try #require(Padding.padme.pad(SealedSnapshot.clearBytes(of: log)))
        for (text, isGood) in [(padded, true), (padded + [0], false), (padded.dropLast() + [1], padded.last == 1)] {
            let sealed: [UInt8] = try SealRecorder.$current.withValue(SealRecorder()) {
                header + Self.nonce
                    + (try AEAD(.aes256GCM, key: key).seal(text, nonce: try AEADNonce(Self.nonce), data: data))
            }
            #expect((look(keys.snapshotOpener(), sealed, name) != nil) == isGood)
        }
    }

    @Test("opens what older epochs have sealed, and nothing of an epoch that it has no secret of")
    func epochs() throws {
        let (old, new): (SealedBucketKeys, SealedBucketKeys) = (try Self.keys(), try Self.keys(epochs: 2))
        let key: String = old.serverKey(of: "a")
        let (first, second): ([UInt8], [UInt8]) = (
            try Self.snapshot("a", under: key, old), try Self.snapshot("a", under: key, new)
        )
        let opener: SnapshotOpener = new.copied.snapshotOpener()
        for sealed: [UInt8] in [first, second, first] { #expect(look(opener, sealed, key)?.appKey == "a") }
        #expect(look(old.snapshotOpener(), first, key) != nil)
        #expect(look(old.snapshotOpener(), second, key) == nil)
    }
}
