import ThicketCrypto

/// Proofs of the log: byte 0 chooses a tree, bytes 1 and 2 a leaf or an older size, the next 16 are numbers of any size, the
/// rest is a proof. It holds if it is the true one, and else never.
public func fuzzMerkleProof(_ bytes: [UInt8]) {
    guard bytes.count >= 19 else { return }
    let rest: [UInt8] = Array(bytes[19...])
    guard let proof: [Digest256] = MerkleTree.proof(rest) else {
        precondition(rest.count % 32 != 0 || rest.count > 65 * 32, "whole hashes are a proof")
        return
    }
    precondition(MerkleTree.bytes(of: proof) == rest, "a proof is written as it was read")
    let (first, second): (UInt64, UInt64) = (number(bytes[3..<11]), number(bytes[11..<19]))
    _ = MerkleTree.isIncluded(.zero, index: first, size: second, root: .zero, proof: proof)
    _ = MerkleTree.isConsistent(oldSize: first, oldRoot: .zero, newSize: second, newRoot: .zero, proof: proof)

    var log: MerkleLog = .init()
    let size: Int = 1 + Int(bytes[0]) % 40
    for leaf: Int in 0..<size { log.append(MerkleTree.leafHash([UInt8(leaf)])) }
    let (index, older): (Int, Int) = (Int(bytes[1]) % size, 1 + Int(bytes[2]) % size)
    guard let root: Digest256 = log.root(), let olderRoot: Digest256 = log.root(size: older),
        let included: [Digest256] = log.inclusionProof(index: index),
        let consistent: [Digest256] = log.consistencyProof(oldSize: older)
    else { preconditionFailure("the log proves its leaves and sizes") }
    for given: [Digest256] in [proof, included] {
        let holds: Bool = MerkleTree.isIncluded(
            MerkleTree.leafHash([UInt8(index)]), index: UInt64(index), size: UInt64(size), root: root, proof: given)
        precondition(holds == (given == included), "the true proof and no other")
    }
    for given: [Digest256] in [proof, consistent] {
        let holds: Bool = MerkleTree.isConsistent(
            oldSize: UInt64(older), oldRoot: olderRoot, newSize: UInt64(size), newRoot: root, proof: given)
        precondition(holds == (given == consistent), "the true proof and no other")
    }
}

/// Proofs of the map: bytes 0 and 1 choose keys, the rest is a proof. It never proves what is not so.
public func fuzzSparseProof(_ bytes: [UInt8]) {
    guard bytes.count >= 2 else { return }
    var map: SparseMerkleMap = .init()
    for key: UInt8 in 0..<bytes[0] % 32 { map.set(.of([key]), to: .of([key, 1])) }
    let key: Digest256 = .of([bytes[1] % 64])
    let value: Digest256? = map[key]
    let rest: [UInt8] = Array(bytes[2...])
    let genuine: SparseMerkleProof = map.proof(of: key)
    precondition(genuine.proves(key, value, root: map.root), "the true proof holds")
    precondition(SparseMerkleProof(genuine.bytes) == genuine, "and is read as it was written")
    guard let proof: SparseMerkleProof = SparseMerkleProof(rest) else { return }
    precondition(proof.bytes == rest, "one encoding of one proof")
    for wrong: Digest256? in [nil, .zero, .of([key.bytes[0], 1])] where wrong != value {
        precondition(!proof.proves(key, wrong, root: map.root), "no proof of what is not so")
    }
}

/// Recovery words as they are typed.
public func fuzzRecoveryWords(_ bytes: [UInt8]) {
    let text: SecureBytes = SecureBytes(copying: bytes)
    guard let entropy: SecureBytes = try? RecoveryWords.entropy(text) else { return }
    guard let words: SecureBytes = try? RecoveryWords.words(entropy) else { preconditionFailure("entropy has words") }
    precondition((try? RecoveryWords.entropy(words)) == entropy, "words are read as they were written")
    let cut: [UInt8] = words.withUnsafeBytes { words in
        Array(words.split(separator: 0x20).map { $0.prefix(4) }.joined(separator: [0x09]))
    }
    precondition((try? RecoveryWords.entropy(SecureBytes(copying: cut))) == entropy, "four letters are enough")
}

/// Pieces of a secret: bytes 0 and 1 say how many, bytes 2 and 3 which bit is flipped, the rest is a piece and a secret.
public func fuzzSecretShare(_ bytes: [UInt8]) {
    guard bytes.count >= 5 else { return }
    let rest: [UInt8] = Array(bytes[4...])
    // As it is, and with a checksum that is right, so that what is behind it is tried too.
    for piece: [UInt8] in [rest, rest + Hash.sha256([1] + rest).prefix(4)] {
        guard let share: SecretShare = try? SecretShare(SecureBytes(copying: piece)) else { continue }
        precondition(share.bytes == SecureBytes(copying: piece), "a piece is written as it was read")
    }
    let threshold: Int = 2 + Int(bytes[0]) % 4
    let secret: SecureBytes = SecureBytes(copying: Array(rest.prefix(64)))
    let shares: [SecretShare]? = try? SecretShare.split(
        secret, threshold: threshold, count: threshold + Int(bytes[1]) % 4,
        random: { count in SecureBytes(copying: (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) ^ bytes[2] }) })
    guard let shares else { preconditionFailure("a secret is cut") }
    precondition((try? SecretShare.combine(shares.suffix(threshold))) == secret, "enough pieces give the secret")
    precondition(
        (try? SecretShare.combine(Array(shares.dropLast(shares.count - threshold + 1)))) == nil, "fewer do not")
    var changed: [UInt8] = shares[0].bytes.withUnsafeBytes { Array($0) }
    let bit: Int = (Int(bytes[2]) << 8 | Int(bytes[3])) % (changed.count * 8)
    changed[bit / 8] ^= 1 << UInt8(bit % 8)
    precondition((try? SecretShare(SecureBytes(copying: changed))) == nil, "a flipped bit is noticed")
}

/// Padded texts: byte 0 chooses the rule.
public func fuzzPadding(_ bytes: [UInt8]) {
    guard let choice: UInt8 = bytes.first else { return }
    let rest: [UInt8] = Array(bytes[1...])
    let rule: Padding = [.none, .padme, .multiple(of: 64), .multiple(of: 1 + Int(choice))][Int(choice) % 4]
    for lengthBytes: Int in [2, 4] {
        if let text: [UInt8] = rule.unpad(rest, lengthBytes: lengthBytes) {
            precondition(rule.pad(text, lengthBytes: lengthBytes) == rest, "one padded form of one text")
        }
        let padded: [UInt8]? = rule.pad(rest, lengthBytes: lengthBytes)
        precondition(padded.flatMap { rule.unpad($0, lengthBytes: lengthBytes) } == rest, "what is padded comes back")
    }
}

/// Names: folding, and base32.
public func fuzzNames(_ bytes: [UInt8]) {
    if let decoded: [UInt8] = Base32.decode(bytes) {
        precondition(Array(Base32.encode(decoded).utf8) == bytes, "one text of one sequence of bytes")
    }
    precondition(Base32.decode(Base32.encode(bytes).utf8) == bytes, "what is written is read")
    guard let composed: [UInt8] = try? UnicodeText.composed(bytes) else {
        precondition(String(validating: bytes, as: UTF8.self) == nil, "all UTF-8 has a composed form")
        return
    }
    precondition((try? UnicodeText.composed(composed)) == composed, "composing twice is composing once")
    precondition((try? UnicodeText.folded(bytes)) == (try? UnicodeText.folded(composed)), "spelling does not matter")
    precondition(String(decoding: composed, as: UTF8.self) == String(decoding: bytes, as: UTF8.self), "the same text")
}

private func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
