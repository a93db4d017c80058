import Testing
import ThicketCrypto
import ThicketTestSupport

@Suite("Pieces of a secret")
struct SecretShareTests {
    private static let secret = SecureBytes(copying: (0..<32).map { UInt8($0 * 7) })

    private static func bytes(_ share: SecretShare) -> [UInt8] { share.bytes.withUnsafeBytes { Array($0) } }
    private static func read(_ bytes: [UInt8]) throws(ShareFailure) -> SecretShare {
        try SecretShare(SecureBytes(copying: bytes))
    }

    @Test("any k of n pieces give the secret, in any order, and fewer do not")
    func anyOf() throws {
        let shares = try SecretShare.split(Self.secret, threshold: 3, count: 5)
        #expect(shares.map(\.index) == [1, 2, 3, 4, 5] && Set(shares.map(\.setID)).count == 1)
        for chosen in 0..<32 {
            let part: [SecretShare] = shares.filter { chosen >> ($0.index - 1) & 1 == 1 }.reversed()
            guard part.count >= 3 else {
                #expect(throws: ShareFailure.tooFew(has: part.count, needs: part.isEmpty ? 2 : 3)) {
                    try SecretShare.combine(part)
                }
                continue
            }
            #expect(try SecretShare.combine(part) == Self.secret)
        }
    }

    @Test(
        "dealings and secrets of all sizes are split and combined",
        arguments: [(2, 2), (2, 3), (16, 16), (5, 255), (128, 130)])
    func sizes(threshold: Int, count: Int) throws {
        let secret = SecureBytes.random(threshold == 2 ? 1 : 16)
        let shares = try SecretShare.split(secret, threshold: threshold, count: count)
        #expect(try SecretShare.combine(Array(shares.suffix(threshold))) == secret)
        let written = try shares.suffix(threshold).map { try SecretShare($0.bytes) }
        #expect(try SecretShare.combine(written) == secret)
    }

    @Test("a piece that is given twice counts once")
    func twice() throws {
        let shares = try SecretShare.split(Self.secret, threshold: 2, count: 3)
        #expect(throws: ShareFailure.tooFew(has: 1, needs: 2)) { try SecretShare.combine([shares[1], shares[1]]) }
        #expect(try SecretShare.combine([shares[1], shares[1], shares[0]]) == Self.secret)
    }

    @Test("pieces of another dealing are named, even of the same secret")
    func mixed() throws {
        let first = try SecretShare.split(Self.secret, threshold: 2, count: 3)
        let second = try SecretShare.split(Self.secret, threshold: 2, count: 3)
        #expect(throws: ShareFailure.mixed([1])) { try SecretShare.combine([first[0], second[1], first[2]]) }
        #expect(throws: ShareFailure.mixed([0, 2])) {
            try SecretShare.combine([first[0], second[1], first[2]], setID: second[0].setID)
        }
        #expect(try SecretShare.combine([second[1], second[2]], setID: second[0].setID) == Self.secret)
    }

    @Test("every flipped bit and every cut of a piece is noticed")
    func damage() throws {
        let bytes = Self.bytes(try SecretShare.split(Self.secret, threshold: 2, count: 3)[1])
        #expect(bytes.count == 4 + 32 + 16 + 2 + 32 + 2 * 32 + 4)
        for bit in 0..<bytes.count * 8 {
            var changed: [UInt8] = bytes
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(throws: bit < 8 ? ShareFailure.unreadable : .damaged) { try Self.read(changed) }
        }
        for count in 0..<bytes.count {
            #expect(throws: ShareFailure.self) { try Self.read(Array(bytes.prefix(count))) }
        }
        #expect(throws: ShareFailure.damaged) { try Self.read(bytes + [0]) }
        #expect(try Self.bytes(Self.read(bytes)) == bytes)
    }

    @Test("a made-up piece with a right checksum is named as foreign")
    func forged() throws {
        let bytes = Self.bytes(try SecretShare.split(Self.secret, threshold: 2, count: 3)[1])
        for place: Int in [1, 2, 3, 4, 40, 60, 90] {
            var changed: [UInt8] = bytes.dropLast(4)
            // Threshold 2 of 3 and index 2 stay possible numbers.
            changed[place] ^= 1
            changed += Hash.sha256([1] + changed).prefix(4)
            #expect(throws: ShareFailure.foreign, "byte \(place)") { try Self.read(changed) }
        }
    }

    /// A whole set as an attacker could make it up, with a right tree and right checksums.
    private static func madeUp(_ parts: [(threshold: UInt8, count: UInt8, piece: [UInt8])]) throws -> [SecretShare] {
        let blind = [UInt8](repeating: 9, count: 16)
        var tree = MerkleLog()
        for (place, part) in parts.enumerated() {
            let head = [0, part.threshold, part.count, UInt8(place + 1)]
            tree.append(MerkleTree.leafHash(Array("thicket/share/1".utf8) + head + blind + part.piece))
        }
        let root = try #require(tree.root())
        return try parts.enumerated().map { place, part in
            var bytes = [1, part.threshold, part.count, UInt8(place + 1)] + root.bytes + blind
            bytes += [UInt8(part.piece.count >> 8), UInt8(part.piece.count & 255)] + part.piece
            bytes += MerkleTree.bytes(of: try #require(tree.inclusionProof(index: place)))
            return try read(bytes + Hash.sha256([1] + bytes).prefix(4))
        }
    }

    @Test("unlike pieces of a made-up set are named, and nothing is read beyond the end of a short one")
    func unlike() throws {
        let (long, short): ([UInt8], [UInt8]) = (.init(repeating: 1, count: 32), [1])
        #expect(try SecretShare.combine(Self.madeUp([(2, 2, long), (2, 2, long)])).count == 32, "alike they are taken")
        for pieces in [
            try Self.madeUp([(2, 2, long), (2, 2, short)]), try Self.madeUp([(2, 2, short), (2, 2, long)]),
        ] {
            #expect(throws: ShareFailure.mixed([1])) { try SecretShare.combine(pieces) }
        }
        // The first asks for two, the second for three.
        let three = try Self.madeUp([(2, 3, long), (3, 3, long), (2, 3, long)])
        #expect(throws: ShareFailure.mixed([1])) { try SecretShare.combine(three) }
        #expect(throws: ShareFailure.mixed([1, 2])) { try SecretShare.combine([three[1], three[0], three[2]]) }
    }

    @Test("numbers out of bounds are refused")
    func bounds() throws {
        for (count, threshold, pieces): (Int, Int, Int) in [
            (0, 2, 3), (1_025, 2, 3), (32, 1, 3), (32, 0, 0), (32, 4, 3), (32, 2, 256), (32, -1, 3),
        ] {
            #expect(throws: ShareFailure.outOfBounds) {
                try SecretShare.split(SecureBytes.random(count), threshold: threshold, count: pieces)
            }
        }
        #expect(throws: ShareFailure.tooFew(has: 0, needs: 2)) { try SecretShare.combine([]) }
    }

    @Test("one piece fewer than needed reveals nothing: each value of the secret is as likely")
    func secrecy() throws {
        // With two pieces needed, the first piece of a one-byte secret takes all 256 values, one for each coefficient.
        var seen = Set<UInt8>()
        for coefficient: UInt8 in 0...255 {
            let shares: [SecretShare] = try SecretShare.split(
                SecureBytes(copying: [0x5A]), threshold: 2, count: 2,
                random: { SecureBytes(copying: .init(repeating: coefficient, count: $0)) })
            seen.insert(Self.bytes(shares[0])[54])
        }
        #expect(seen.count == 256)
    }

    @Test("a piece's description shows which piece it is, and nothing of its content")
    func description() throws {
        let share = try SecretShare.split(Self.secret, threshold: 2, count: 3)[1]
        #expect("\(share)" == "piece 2 of 3, 2 needed")
        var dumped = ""
        dump(share, to: &dumped)
        #expect(!dumped.contains("payload") && Mirror(reflecting: share).children.isEmpty)
    }
}
