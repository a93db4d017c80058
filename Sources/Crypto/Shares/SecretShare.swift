/// One of n shares of a secret, any k of which reconstruct it while fewer reveal nothing about it (Shamir, How to share
/// a secret, CACM 1979, byte by byte over GF(2^8)).
///
/// The shares of one dealing are leaves of a Merkle tree whose root is the id of the set, and each carries its path. So
/// a single share proves that it belongs to its set: a changed share, or one of another dealing, is identified without
/// trying combinations. 16 random bytes in each leaf keep the tree from revealing short secrets.
///
/// Bytes: 0x01 ‖ k ‖ n ‖ index (1…n) ‖ set id (32) ‖ random (16) ‖ length (2) ‖ the share ‖ path (32 each) ‖ the first
/// 4 bytes of SHA-256 of everything before, which distinguish a writing error from a share of another set.
public struct SecretShare: Sendable {
    /// Bytes of a secret at most.
    public static let secretBytesMax = 1_024
    /// Shares at most, because GF(2^8) has 255 numbers besides zero.
    public static let sharesMax = 255
    /// Bytes of a share at most.
    public static let bytesMax: Int = headBytes + secretBytesMax + 8 * Digest256.byteCount + checkBytes

    private static let version: UInt8 = 1
    private static let blindBytes = 16
    private static let headBytes: Int = 4 + Digest256.byteCount + blindBytes + 2
    private static let checkBytes = 4

    /// Number of the share, 1…`count`.
    public let index: Int
    /// Number of shares that reconstruct the secret: k.
    public let threshold: Int
    /// Number of shares made: n.
    public let count: Int
    /// Identifies the dealing: equal for shares that belong together. Not secret.
    public let setID: Digest256
    /// 16 random bytes ‖ the share.
    let payload: SecureBytes
    let path: [Digest256]

    /// Reads a share.
    ///
    /// - Throws: `unreadable` for bytes in another format, `damaged` for changed bytes, `foreign` for a share that is
    ///   not part of the set that it names.
    public init(_ bytes: SecureBytes) throws(ShareFailure) {
        guard bytes.count > Self.headBytes + Self.checkBytes, bytes.count <= Self.bytesMax else { throw .unreadable }
        let end = bytes.count - Self.checkBytes
        let (head, check): ([UInt8], [UInt8]) = bytes.withUnsafeBytes {
            (Array($0[..<Self.headBytes]), Array($0[end...]))
        }
        guard head[0] == Self.version else { throw .unreadable }
        guard Self.check(bytes.part(0..<end)) == check else { throw .damaged }
        (threshold, count, index) = (Int(head[1]), Int(head[2]), Int(head[3]))
        let length = Int(head[Self.headBytes - 2]) << 8 | Int(head[Self.headBytes - 1])
        let pathStart = Self.headBytes + length
        guard threshold >= 2, threshold <= count, (1...count).contains(index), length > 0, pathStart <= end,
            let setID = Digest256(head[4..<36]),
            let path = MerkleTree.proof(bytes.withUnsafeBytes { Array($0[pathStart..<end]) })
        else { throw .unreadable }
        (self.setID, self.path) = (setID, path)
        payload = .joined([bytes.part(36..<52), bytes.part(Self.headBytes..<pathStart)])
        let leaf = Self.leaf(threshold, count, index, payload)
        guard
            MerkleTree.isIncluded(
                leaf, index: UInt64(index - 1), size: UInt64(count), root: setID, proof: path)
        else { throw .foreign }
    }

    /// The stored form of the share, as a secret.
    public var bytes: SecureBytes {
        let length = payload.count - Self.blindBytes
        let head = [Self.version, UInt8(threshold), UInt8(count), UInt8(index)] + setID.bytes
        let all = SecureBytes.joined([
            .init(copying: head), payload.part(0..<Self.blindBytes),
            .init(copying: [UInt8(length >> 8), UInt8(length & 255)]), payload.part(Self.blindBytes..<payload.count),
            .init(copying: MerkleTree.bytes(of: path)),
        ])
        return .joined([all, .init(copying: Self.check(all))])
    }

    private init(
        _ index: Int, _ threshold: Int, _ count: Int, _ payload: SecureBytes, _ setID: Digest256, _ path: [Digest256]
    ) {
        (self.index, self.threshold, self.count) = (index, threshold, count)
        (self.payload, self.setID, self.path) = (payload, setID, path)
    }

    private static func check(_ bytes: SecureBytes) -> [UInt8] {
        Array(Digest256.tagged(version, bytes).bytes.prefix(checkBytes))
    }

    private static func leaf(_ threshold: Int, _ count: Int, _ index: Int, _ payload: SecureBytes) -> Digest256 {
        let head: [UInt8] = Array("thicket/share/1".utf8) + [0, UInt8(threshold), UInt8(count), UInt8(index)]
        return .tagged(0, .joined([.init(copying: head), payload]))
    }
}

/// Why shares do not give a secret.
public enum ShareFailure: Error, Sendable, Hashable {
    /// The bytes are not a share of this format.
    case unreadable
    /// The bytes were a share, and some of them have changed.
    case damaged
    /// The share is not part of the set that it names: it is forged.
    case foreign
    /// The shares at these places of the list, counted from 0, belong to another set than the others.
    case mixed([Int])
    /// The number of different shares given, and the number needed.
    case tooFew(has: Int, needs: Int)
    /// A secret has 1…1,024 bytes; 2 ≤ k ≤ n ≤ 255.
    case outOfBounds
}

extension SecretShare {
    /// Splits a secret into `count` shares, `threshold` of which reconstruct it.
    ///
    /// - Parameters:
    ///   - secret: 1…1,024 bytes.
    ///   - threshold: number of shares that reconstruct it, at least 2.
    ///   - count: number of shares, at most 255.
    ///   - random: returns secret random bytes, as many as asked for.
    /// - Throws: `outOfBounds` for other sizes.
    public static func split(
        _ secret: SecureBytes, threshold: Int, count: Int, random: (Int) -> SecureBytes = SecureBytes.random
    ) throws(ShareFailure) -> [SecretShare] {
        guard (1...secretBytesMax).contains(secret.count), threshold >= 2, threshold <= count, count <= sharesMax else {
            throw .outOfBounds
        }
        let coefficients = random(secret.count * (threshold - 1))
        let payloads: [SecureBytes] = (1...count).map { index in
            .joined([random(blindBytes), value(at: UInt8(index), secret, coefficients, degree: threshold - 1)])
        }
        var tree = MerkleLog()
        for (place, payload) in payloads.enumerated() {
            tree.append(leaf(threshold, count, place + 1, payload))
        }
        guard let root = tree.root() else { throw .outOfBounds }
        return payloads.enumerated().map { place, payload in
            SecretShare(place + 1, threshold, count, payload, root, tree.inclusionProof(index: place) ?? [])
        }
    }

    /// Reconstructs the secret of the shares.
    ///
    /// - Parameters:
    ///   - shares: in any order; a repeated share counts once.
    ///   - setID: the id of the expected set; nil for the set of most of the shares.
    /// - Throws: `mixed` with the shares of other sets, or with those of a forged set that differ from the first in
    ///   form; `tooFew`.
    public static func combine(_ shares: [SecretShare], setID: Digest256? = nil) throws(ShareFailure) -> SecureBytes {
        let sizes = shares.reduce(into: [:]) { $0[$1.setID, default: 0] += 1 }
        // Of sets with equally many shares, that of the first share.
        let largest: Int = sizes.values.max() ?? 0
        let wanted = setID ?? shares.first { sizes[$0.setID] == largest }?.setID
        let others: [Int] = shares.indices.filter { shares[$0].setID != wanted }
        guard others.isEmpty else { throw .mixed(others) }
        var used = [SecretShare]()
        for share in shares where !used.contains(where: { $0.index == share.index }) { used.append(share) }
        guard let first = used.first, used.count >= first.threshold else {
            throw .tooFew(has: used.count, needs: used.first?.threshold ?? 2)
        }
        // Shares of one dealing have the same form. A forged set may not: shorter shares would lack bytes for the
        // computation.
        let odd: [Int] = shares.indices.filter { !shares[$0].isLike(first) }
        guard odd.isEmpty else { throw .mixed(odd) }
        return interpolate(Array(used.prefix(first.threshold)), first.payload.count - blindBytes)
    }

    private func isLike(_ other: SecretShare) -> Bool {
        payload.count == other.payload.count && threshold == other.threshold && count == other.count
    }

    /// The values of the polynomials of all bytes at one point (Horner's method).
    private static func value(
        at point: UInt8, _ secret: SecureBytes, _ coefficients: SecureBytes, degree: Int
    ) -> SecureBytes {
        SecureBytes(count: secret.count) { room in
            secret.withUnsafeBytes { secret in
                coefficients.withUnsafeBytes { coefficients in
                    for place in 0..<secret.count {
                        var value: UInt8 = 0
                        for power in (0..<degree).reversed() {
                            value = GF256.multiply(value ^ coefficients[power * secret.count + place], point)
                        }
                        room[place] = value ^ secret[place]
                    }
                }
            }
        }
    }

    private static func interpolate(_ shares: [SecretShare], _ count: Int) -> SecureBytes {
        let points = shares.map { UInt8($0.index) }
        return SecureBytes(count: count) { room in
            for share in shares {
                let weight = GF256.weight(of: UInt8(share.index), among: points)
                share.payload.withUnsafeBytes { payload in
                    for place in 0..<count { room[place] ^= GF256.multiply(payload[blindBytes + place], weight) }
                }
            }
        }
    }
}

extension SecretShare: CustomStringConvertible, CustomReflectable {
    /// The number of the share, without the secret.
    public var description: String { "piece \(index) of \(count), \(threshold) needed" }
    /// A mirror without the content.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
