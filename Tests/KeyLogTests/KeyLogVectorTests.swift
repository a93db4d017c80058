import Testing
import ThicketCrypto
import ThicketPlatform

@testable import ThicketKeyLog

/// A log of four entries whose bytes were computed by another program, from RFC 8032, RFC 7748, RFC 6962 and the
/// descriptions of the formats in the sources, with only SHA-256 and SHA-512 as primitives. All seeds and secrets are
/// one byte, 32 times.
@Suite("Known answers of the key log")
struct KeyLogVectorTests {
    private static let first = """
        746869636b65742f6b65792d656e7472792f31000004636861740003616e6e0008000000000000000000208a88e3dd7409f195fd52db2d3c\
        ba5d72ca6709bf1d94121bf3748801b40f6f5c0020ce8d3ad1ccb633ec7b70c17814a5c76ecd029685050d344745ba05870e587d59000800\
        00018bcfe568000000000100004024ca444a8027073778619b72ef171cc5c4eadf35a59232a1acad7fba71f7d040bd88715d41860636733d\
        cbd94af635853fe224412f17d6a57a9d176cdbdd5e090000
        """
    private static let head = """
        000000000000000877ef7f342982cdaf9bc2a36a5f3fe69f5b15d4ed2952d4dd2699e2dfce54ee100c5bb4e13942ce4a664eddf33d9befc2\
        e168218309aca1f78d77c887ed1076730000018bcfee8fc0ec05201c2fdf860862e0806b8dfc160027aa67d42ffd3e0378dc8a40870aba7e\
        4132f9e3853bbb321fa30c94512d46a74fd43c08c3d42c0a753af623574ea201
        """
    /// After each entry: size, root, root of the map.
    private static let roots: [(UInt64, String, String)] = [
        (
            2, "f6f03332f5496f8fd671041c64847e938c9f5e680f5f2d9ff5d996ef630af5a5",
            "be29619c17006c04021126acc91756f377b489116190d7c74567918a9f9b54f0"
        ),
        (
            4, "8cea70eddc949e349bc54062da8d5390ec57cf2cca8f9ee59af5ed427ea9b7ed",
            "25380ae52262e1c61ccdf33f1a36c36e4b261c6c5789ff488e020a61d2924e67"
        ),
        (
            6, "5bbeb56aafaa3cadecd7ceab3c22f5d6f08548553d6117e61b680f13dc61c53c",
            "ed054a74a766edd33a6b6f32f27fc9b87dd834bb1c93e1769df75161eeb626d5"
        ),
        (
            8, "77ef7f342982cdaf9bc2a36a5f3fe69f5b15d4ed2952d4dd2699e2dfce54ee10",
            "0c5bb4e13942ce4a664eddf33d9befc2e168218309aca1f78d77c887ed107673"
        ),
    ]
    private static let time: UInt64 = 1_700_000_000_000

    private static func seed(_ byte: UInt8) -> SecureBytes { .init(copying: .init(repeating: byte, count: 32)) }
    private static func signing(_ byte: UInt8) throws -> Ed25519.SigningKey { try .init(seed: seed(byte)) }
    private static func opening(_ byte: UInt8) throws -> X25519.PublicKey {
        try X25519.PrivateKey(seed(byte)).publicKey
    }

    /// Ann's first, ben's first, ann's rotation, ann's reset.
    private static func entries() throws -> [KeyLogEntry] {
        let ann: KeyLogEntry = try .first(
            app: "chat", user: "ann", identity: signing(1), encryption: opening(2), validFrom: time)
        let ben: KeyLogEntry = try .first(
            app: "chat", user: "ben", identity: signing(3), encryption: opening(4), validFrom: time + 1)
        let rotation = try ann.rotated(
            to: signing(5), encryption: opening(6), signedBy: signing(1), validFrom: time + 2)
        let reset = try rotation.reset(to: signing(7), encryption: opening(8), validFrom: time + 3)
        return [ann, ben, rotation, reset]
    }

    @Test("entries, leaves, roots, a head, a look-up and a proof have the bytes that another program computes")
    func bytes() throws {
        let entries = try Self.entries()
        #expect(Hex.encode(entries[0].bytes) == Self.first)
        #expect(
            entries.map(\.hash.description) == [
                "726a3588b4ff63678c276dd35d07d7cc0b8f38020203bbc5e80e5adb1dbd6005",
                "865692038280e37996fe7dd2583f1e32f9205eda81d9b85740605b0aa8d3716f",
                "dcc4331396ac4cd4cde3927f3b82baabc6a86add30ea385716155c67a0b9c320",
                "a47977fa50fcc316cd9168c29d4c52024ccaa1a137516e81ca100fd23139da2e",
            ])
        var log = try KeyLog(app: "chat")
        let key = try Self.signing(9)
        for (entry, (size, root, mapRoot)) in zip(entries, Self.roots) {
            _ = try log.append(entry, isResetAuthorised: true, now: Self.time)
            let head = try log.head(time: Self.time + 600_000, key: key)
            #expect(head.size == size && head.root.description == root && head.mapRoot.description == mapRoot)
        }
        let head = try log.head(time: Self.time + 600_000, key: key)
        #expect(Hex.encode(head.bytes) == Self.head)
        let lookup = try log.lookup("ann", known: 4, head: head)
        #expect(
            Digest256.of(lookup.bytes).description == "e7268f25e2d754a9eda5ca2efd28efe79505ca661a84e19370f28fba7e40c4aa"
        )
        #expect(
            Digest256.of(try log.consistency(older: 4, newer: 8).bytes).description
                == "a50fcaa73a641a1649bf91359b9586568507dc4e61149d4222f362c2acc4217b")
    }

    @Test("a safety number equals another program's, in twelve groups of five digits, and is the same on both sides")
    func safetyNumber() throws {
        let entries = try Self.entries()
        let (ann, ben) = (entries[3].keys, entries[1].keys)
        let number = try SafetyNumber(ann, ben)
        #expect(number.digits == "531774024112335924406367489454997280311760422294761410498355")
        #expect(number.description == "53177 40241 12335 92440 63674 89454 99728 03117 60422 29476 14104 98355")
        #expect(try SafetyNumber(ben, ann) == number)
    }

    @Test(
        "a safety number changes with either identity key or either user, and not with an encryption key"
    )
    func changedNumber() throws {
        func keys(_ user: String, _ identity: UInt8, _ encryption: UInt8) throws -> PublicKeys {
            try .init(user: user, identity: Self.signing(identity).verifyingKey, encryption: Self.opening(encryption))
        }
        let number = try SafetyNumber(keys("ann", 1, 2), keys("ben", 3, 4))
        for (ann, ben) in [
            (try keys("ann", 5, 2), try keys("ben", 3, 4)), (try keys("ann", 1, 2), try keys("ben", 5, 4)),
            (try keys("eve", 1, 2), try keys("ben", 3, 4)), (try keys("ann", 1, 2), try keys("eve", 3, 4)),
            (try keys("ann", 3, 2), try keys("ben", 1, 4)), (try keys("ann", 1, 2), try keys("ann", 1, 2)),
        ] {
            let other = try SafetyNumber(ann, ben)
            #expect(other != number && other.digits.utf8.count == SafetyNumber.digitsCount)
            #expect(other.digits.utf8.allSatisfy { (0x30...0x39).contains($0) })
        }
        #expect(try SafetyNumber(keys("ann", 1, 9), keys("ben", 3, 8)) == number)
        // One half of each number belongs to one user: with another partner only the other half changes.
        let with = try SafetyNumber(keys("ann", 1, 2), keys("carl", 6, 4))
        let halves: (SafetyNumber) -> Set<String> = { [String($0.digits.prefix(30)), String($0.digits.suffix(30))] }
        #expect(halves(with).intersection(halves(number)).count == 1)
    }
}
