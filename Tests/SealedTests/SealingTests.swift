import Testing
import ThicketCrypto
import ThicketNonces
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketSealed

@Suite("Sealing of objects", .noncesGiven)
struct SealingTests {
    private static func keys(epochs: UInt32 = 1, owner: String = "ann", bucket: String = "b") throws -> SealedBucketKeys
    {
        let vault = SecureBytes(copying: [UInt8](repeating: 7, count: 32))
        var secrets = [UInt32: SecureBytes]()
        for epoch in 0..<epochs {
            secrets[epoch] = try SealedBucketKeys.secret(vault: vault, app: "notes", bucket: bucket, epoch: epoch)
        }
        return try SealedBucketKeys(owner: owner, app: "notes", bucket: bucket, secrets: secrets)
    }

    private static let id = [UInt8](repeating: 5, count: 16)
    private static let nonce = [UInt8](repeating: 6, count: 12)

    @Test("a value of any length opens again; its size is a multiple of 64 or, in a snapshot, within Padmé's bound")
    func lengths() throws {
        let sealer = try Self.keys().sealer(serverKey: "k")
        for count in [0, 1, 59, 60, 61, 124, 1_000, 100_000] {
            let clear = [UInt8](repeating: 9, count: count)
            let operation = sealer.seal(clear, kind: .operation, id: Self.id, position: 0, nonce: Self.nonce)
            #expect(operation.count == 50 + (count + 4 + 63) / 64 * 64)
            #expect(sealer.open(operation, kind: .operation, position: 0)?.clear == clear)
            #expect(sealer.open(operation, kind: .operation, position: 0)?.id == Self.id)
            let snapshot = sealer.seal(clear, kind: .snapshot, id: Self.id, position: 7, nonce: Self.nonce)
            #expect(snapshot.count - 50 >= count + 4 && (snapshot.count - 50) * 100 <= (count + 4) * 112 + 800)
            #expect(sealer.open(snapshot, kind: .snapshot, position: 7)?.clear == clear)
            #expect(SealedValue.canHave(operation.count, .operation) && SealedValue.canHave(snapshot.count, .snapshot))
        }
    }

    @Test("a sealed value does not open as another kind, at another position or place, cut, or with one bit changed")
    func bound() throws {
        let sealer = try Self.keys().sealer(serverKey: "k")
        let sealed = sealer.seal([1, 2, 3], kind: .snapshot, id: Self.id, position: 64, nonce: Self.nonce)
        #expect(sealer.open(sealed, kind: .snapshot, position: 64) != nil)
        #expect(sealer.open(sealed, kind: .snapshot, position: 128) == nil)
        #expect(sealer.open(sealed, kind: .operation, position: 64) == nil)
        #expect(sealer.open(sealed, kind: .snapshot, position: -1) == nil)
        for other in [
            try Self.keys().sealer(serverKey: "l"), try Self.keys(owner: "bob").sealer(serverKey: "k"),
            try Self.keys(bucket: "c").sealer(serverKey: "k"),
        ] { #expect(other.open(sealed, kind: .snapshot, position: 64) == nil) }
        for place in sealed.indices {
            var changed = sealed
            changed[place] ^= 1 << UInt8(place % 8)
            #expect(sealer.open(changed, kind: .snapshot, position: 64) == nil, "byte \(place)")
            #expect(sealer.open(Array(sealed[..<place]), kind: .snapshot, position: 64) == nil)
        }
    }

    @Test("a new epoch seals with another key, opens older values, and leaves names unchanged")
    func epochs() throws {
        let (old, new) = (try Self.keys(), try Self.keys(epochs: 2))
        #expect(old.serverKey(of: "note") == new.serverKey(of: "note") && old.serverKey(of: "note").utf8.count == 32)
        #expect(old.serverKey(of: "é") != old.serverKey(of: "e\u{301}"))
        let before = try old.sealer(serverKey: "k").seal(
            [1], kind: .operation, id: Self.id, position: 0, nonce: Self.nonce)
        let after = try new.sealer(serverKey: "k").seal(
            [1], kind: .operation, id: Self.id, position: 0, nonce: Self.nonce)
        #expect(try new.sealer(serverKey: "k").open(before, kind: .operation, position: 0)?.clear == [1])
        #expect(try old.sealer(serverKey: "k").open(after, kind: .operation, position: 0) == nil)
        #expect(SealedHeader(of: after)?.epoch == 1)
        #expect(throws: CryptoError.self) {
            try SealedBucketKeys(owner: "a", app: "b", bucket: "c", secrets: [1: .init(copying: [1])])
        }
    }

    @Test("one typed character is at most 640 bytes on the wire, whatever the object's size")
    func oneCharacter() throws {
        for length in [0, 1_000, 10_000_000] {
            let keys = try Self.keys()
            let serverKey = keys.serverKey(of: "note")
            var object = SealedObject(
                author: .init(rawValue: .max),
                log: SealedLog(
                    place: keys.place(serverKey: serverKey), appKey: "note", incarnation: Self.id,
                    object: ["content": .string(String(repeating: "x", count: length))]))
            try object.edit(
                ObjectDiff([
                    (key: "content", operation: .text(TextDelta([.retain(length), .insert([0x61])])))
                ]))
            let sealer = try keys.sealer(serverKey: serverKey)
            let sealed = object.seal(changeID: Self.id, nonce: Self.nonce, with: sealer)
            let made = try #require(sealed)
            var writer = JSONWriter()
            ChangeRequest(
                key: serverKey, ccid: Hex.encode(made.changeID), operation: .modify, sv: 1_000_000,
                diff: .value(SealedEntity.insertion(Base64.encodeURL(made.sealed)).json)
            ).write(to: &writer)
            #expect(writer.bytes.count + "0:c:".utf8.count <= 640, "\(writer.bytes.count)")
        }
    }
}

@Suite("Shape of sealed objects", .noncesGiven)
struct ShapeTests {
    private static func sealed(_ kind: SealedHeader.Kind, id: [UInt8] = .init(repeating: 5, count: 16)) throws -> String
    {
        let vault = SecureBytes(copying: [UInt8](repeating: 7, count: 32))
        let keys = try SealedBucketKeys(owner: "o", app: "a", bucket: "b", secrets: [0: vault])
        return Base64.encodeURL(
            try keys.sealer(serverKey: "k").seal(
                [1, 2, 3], kind: kind, id: id, position: 0, nonce: .init(repeating: 6, count: 12)))
    }

    private static let ccid = String(repeating: "05", count: 16)

    /// - Parameter v: with `§o` and `§s` for a sealed operation and snapshot.
    private static func request(
        _ v: String, sv: Int64? = 3, operation: String = "M", ccid: String = ccid
    ) throws -> ChangeRequest {
        let text = v.split(separator: "§o", omittingEmptySubsequences: false).joined(
            separator: try sealed(.operation)
        )
        .split(separator: "§s", omittingEmptySubsequences: false).joined(separator: try sealed(.snapshot))
        var json: JSONObject = ["id": "k", "ccid": .string(ccid), "o": .string(operation)]
        if let sv { json["sv"] = .number(JSONNumber(sv)) }
        if !text.isEmpty { json["v"] = try JSONValue(parsing: text) }
        return ChangeRequest(try JSONDocument(parsing: JSONValue.object(json).serialized()).root)
    }

    private static let creation =
        #"{"z":{"o":"+","v":1},"s":{"o":"+","v":{"0":"§s"}},"d":{"o":"+","v":[]}}"#
    private static let insertion = #"{"d":{"o":"L","v":{"0":{"o":"+","v":"§o"}}}}"#
    private static let compaction =
        #"{"s":{"o":"O","v":{"66":{"o":"+","v":"§s"},"64":{"o":"-"}}},"d":{"o":"L","v":{"3":{"o":"-"},"4":{"o":"-"}}}}"#

    @Test("creation, insertion at 0, compaction and removal are accepted")
    func taken() throws {
        #expect(
            try SealedShape.check(Self.request(Self.creation, sv: nil)) == .creation(snapshot: Self.sealed(.snapshot)))
        #expect(try SealedShape.check(Self.request(Self.insertion)) == .insertion(Self.sealed(.operation)))
        #expect(
            try SealedShape.check(Self.request(Self.compaction))
                == .compaction(
                    .init(
                        position: 66, snapshot: Self.sealed(.snapshot), removedSnapshots: [64], removedTail: 3..<5)))
        #expect(try SealedShape.check(Self.request("", operation: "-")) == .removal)
        #expect(try SealedShape.check(Self.request("", operation: "EMPTY")) == .removal)
    }

    @Test(
        "any other change is refused as an invalid request",
        arguments: [
            // Clear text, wherever it could be.
            #"{"title":{"o":"+","v":"hello"}}"#, #"{"d":{"o":"L","v":{"0":{"o":"+","v":"hello"}}}}"#,
            #"{"d":{"o":"L","v":{"0":{"o":"+","v":"§o"}}},"title":{"o":"+","v":1}}"#,
            #"{"d":{"o":"L","v":{"0":{"o":"+","v":"§o§o"}}}}"#, #"{"d":{"o":"L","v":{"0":{"o":"+","v":"§o "}}}}"#,
            #"{"d":{"o":"L","v":{"0":{"o":"+","v":7}}}}"#, #"{"d":{"o":"L","v":{"0":{"o":"+","v":"§s"}}}}"#,
            // Other places, other operations.
            #"{"d":{"o":"L","v":{"1":{"o":"+","v":"§o"}}}}"#, #"{"d":{"o":"L","v":{"0":{"o":"r","v":"§o"}}}}"#,
            #"{"d":{"o":"L","v":{"0":{"o":"+","v":"§o"},"1":{"o":"-"}}}}"#, #"{"d":{"o":"L","v":{}}}"#,
            #"{"d":{"o":"L","v":{"0":{"o":"-"}}}}"#, #"{"d":{"o":"dL","v":"+x"}}"#, #"{"d":{"o":"r","v":[]}}"#,
            #"{"z":{"o":"r","v":2}}"#, #"{"z":{"o":"-"}}"#, #"{"s":{"o":"-"}}"#, #"{"d":{"o":"-"}}"#, "{}", "",
            // Compactions that lie about what they cover.
            #"{"s":{"o":"O","v":{"66":{"o":"+","v":"§s"},"64":{"o":"-"}}},"d":{"o":"L","v":{"3":{"o":"-"}}}}"#,
            #"{"s":{"o":"O","v":{"66":{"o":"+","v":"§s"},"64":{"o":"-"}}},"d":{"o":"L","v":{"3":{"o":"-"},"5":{"o":"-"}}}}"#,
            #"{"s":{"o":"O","v":{"66":{"o":"+","v":"§s"}}},"d":{"o":"L","v":{"3":{"o":"-"},"4":{"o":"-"}}}}"#,
            #"{"s":{"o":"O","v":{"66":{"o":"+","v":"§s"},"68":{"o":"-"}}},"d":{"o":"L","v":{"3":{"o":"-"},"4":{"o":"-"}}}}"#,
            #"{"s":{"o":"O","v":{"66":{"o":"+","v":"§o"},"64":{"o":"-"}}},"d":{"o":"L","v":{"3":{"o":"-"},"4":{"o":"-"}}}}"#,
            #"{"s":{"o":"O","v":{"066":{"o":"+","v":"§s"},"64":{"o":"-"}}},"d":{"o":"L","v":{"3":{"o":"-"},"4":{"o":"-"}}}}"#,
            #"{"s":{"o":"O","v":{"64":{"o":"-"}}},"d":{"o":"L","v":{"3":{"o":"-"},"4":{"o":"-"}}}}"#,
            #"{"s":{"o":"O","v":{"66":{"o":"+","v":"§s"},"64":{"o":"-"}}}}"#,
        ])
    func refused(v: String) throws {
        let request = try Self.request(v)
        #expect(throws: SealedShapeError.self) { try SealedShape.check(request) }
        do { _ = try SealedShape.check(request) } catch { #expect(error.code == .invalidRequest) }
    }

    @Test(
        "creations with anything else in them are refused",
        arguments: [
            #"{"z":{"o":"+","v":1},"s":{"o":"+","v":{"1":"§s"}},"d":{"o":"+","v":[]}}"#,
            #"{"z":{"o":"+","v":1},"s":{"o":"+","v":{"0":"§o"}},"d":{"o":"+","v":[]}}"#,
            #"{"z":{"o":"+","v":2},"s":{"o":"+","v":{"0":"§s"}},"d":{"o":"+","v":[]}}"#,
            #"{"z":{"o":"+","v":1},"s":{"o":"+","v":{"0":"§s"}},"d":{"o":"+","v":["§o"]}}"#,
            #"{"z":{"o":"+","v":1},"s":{"o":"+","v":{"0":"§s"}},"d":{"o":"+","v":[]},"title":{"o":"+","v":"x"}}"#,
            #"{"z":{"o":"+","v":1},"s":{"o":"+","v":{"0":"§s","1":"§s"}},"d":{"o":"+","v":[]}}"#,
            #"{"title":{"o":"+","v":"hello"}}"#, insertion, compaction,
        ])
    func creations(v: String) throws {
        let request = try Self.request(v, sv: nil)
        #expect(throws: SealedShapeError.self) { try SealedShape.check(request) }
    }

    @Test("whole objects, another ccid than the operation names, and other requests are refused")
    func others() throws {
        var whole = try Self.request(Self.insertion)
        whole.object = .value(["title": "hello"])
        #expect(throws: SealedShapeError(.wholeObject)) { try SealedShape.check(whole) }
        let other = String(repeating: "06", count: 16)
        #expect(throws: SealedShapeError(.otherChangeID)) {
            try SealedShape.check(Self.request(Self.insertion, ccid: other))
        }
        #expect(throws: SealedShapeError(.otherChange)) {
            try SealedShape.check(Self.request(Self.insertion, operation: "DROP"))
        }
    }

    @Test("a compaction must remove what it covers of the object that its author knew")
    func compactions() throws {
        guard case .compaction(let compaction) = try SealedShape.check(Self.request(Self.compaction)) else {
            return #expect(Bool(false))
        }
        let snapshot = try Self.sealed(.snapshot)
        try compaction.check(on: .init(snapshots: [64: snapshot], tail: .init(repeating: "x", count: 5)))
        for entity: SealedEntity in [
            .init(snapshots: [64: snapshot], tail: .init(repeating: "x", count: 6)),
            .init(snapshots: [60: snapshot], tail: .init(repeating: "x", count: 5)),
            .init(snapshots: [64: snapshot, 65: snapshot], tail: .init(repeating: "x", count: 5)),
            .init(snapshots: [64: snapshot, 66: snapshot], tail: .init(repeating: "x", count: 5)),
        ] { #expect(throws: SealedShapeError(.badCompaction)) { try compaction.check(on: entity) } }
    }

    @Test(
        "client changes and their object have the shape, also when compactions race on an ordinary server"
    )
    func entity() throws {
        var random = SeededRandom(seed: 33)
        for _ in 0..<40 {
            let base = try JSONDiff.apply(SealedEntity.creation(Self.sealed(.snapshot)), to: [:])
            var object = base
            for _ in 0..<(3 + random.below(20)) {
                object = try JSONDiff.apply(SealedEntity.insertion(Self.sealed(.operation)), to: object)
            }
            let seen = try SealedShape.check(object: object)
            let (one, two) = (1 + random.below(seen.position), 1 + random.below(seen.position))
            let first = try #require(seen.compaction(Self.sealed(.snapshot), at: one))
            let second = try #require(seen.compaction(Self.sealed(.snapshot), at: two))
            let insertion = SealedEntity.insertion(try Self.sealed(.operation))
            guard case .compaction(let known) = try SealedShape.check(first, changeID: "", isCreation: false) else {
                return #expect(Bool(false))
            }
            try known.check(on: seen)
            // An insertion comes in between, and both compactions were made without it.
            let middle = try JSONDiff.apply(insertion, to: object)
            let moved = try JSONDiff.transform(
                first, over: insertion, base: object, rule: .exact(tie: .after))
            let third = try JSONDiff.apply(moved, to: middle)
            let again = try JSONDiff.transform(
                second, over: insertion, base: object, rule: .exact(tie: .after))
            let last = try JSONDiff.transform(again, over: moved, base: middle, rule: .exact(tie: .after))
            let end = try SealedShape.check(object: JSONDiff.apply(last, to: third))
            #expect(end.newest?.position == max(one, two) && end.position == seen.position + 1)
            #expect(end.tail.count == seen.position + 1 - max(one, two))
        }
    }

    @Test("the tail refuses an operation beyond its limits with 413")
    func room() throws {
        try SealedShape.checkRoom(for: "abc", operations: 1_023, bytes: (1 << 20) - 3)
        #expect(throws: SealedShapeError(.tailTooLong)) {
            try SealedShape.checkRoom(for: "abc", operations: 1_024, bytes: 0)
        }
        #expect(SealedShapeError(.tailTooLong).code == .tooLarge)
        #expect(throws: SealedShapeError(.tailTooLong)) {
            try SealedShape.checkRoom(for: "abc", operations: 0, bytes: (1 << 20) - 2)
        }
    }
}
