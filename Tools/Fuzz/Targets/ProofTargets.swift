import ThicketCrypto

/// Proofs of the log: byte 0 chooses a tree, bytes 1 and 2 a leaf or an older size, the next 16 are numbers of any
/// size, the rest is a proof. Only the true proof is valid.
public func fuzzMerkleProof(_ bytes: [UInt8]) {
    guard bytes.count >= 19 else { return }
    let rest = Array(bytes[19...])
    guard let proof = MerkleTree.proof(rest) else {
        precondition(rest.count % 32 != 0 || rest.count > 65 * 32, "whole hashes are a proof")
        return
    }
    precondition(MerkleTree.bytes(of: proof) == rest, "a proof is written as it was read")
    let (first, second) = (number(bytes[3..<11]), number(bytes[11..<19]))
    _ = MerkleTree.isIncluded(.zero, index: first, size: second, root: .zero, proof: proof)
    _ = MerkleTree.isConsistent(oldSize: first, oldRoot: .zero, newSize: second, newRoot: .zero, proof: proof)

    var log = MerkleLog()
    let size = 1 + Int(bytes[0]) % 40
    for leaf in 0..<size { log.append(MerkleTree.leafHash([UInt8(leaf)])) }
    let (index, older) = (Int(bytes[1]) % size, 1 + Int(bytes[2]) % size)
    guard let root = log.root(), let olderRoot = log.root(size: older),
        let included = log.inclusionProof(index: index),
        let consistent = log.consistencyProof(oldSize: older)
    else { preconditionFailure("the log proves its leaves and sizes") }
    for given in [proof, included] {
        let holds = MerkleTree.isIncluded(
            MerkleTree.leafHash([UInt8(index)]), index: UInt64(index), size: UInt64(size), root: root, proof: given)
        precondition(holds == (given == included), "the true proof and no other")
    }
    for given in [proof, consistent] {
        let holds = MerkleTree.isConsistent(
            oldSize: UInt64(older), oldRoot: olderRoot, newSize: UInt64(size), newRoot: root, proof: given)
        precondition(holds == (given == consistent), "the true proof and no other")
    }
}

/// Proofs of the map: bytes 0 and 1 choose keys, the rest is a proof. It never proves a false statement.
public func fuzzSparseProof(_ bytes: [UInt8]) {
    guard bytes.count >= 2 else { return }
    var map = SparseMerkleMap()
    for key in 0..<bytes[0] % 32 { map.set(.of([key]), to: .of([key, 1])) }
    let key = Digest256.of([bytes[1] % 64])
    let value = map[key]
    let rest = Array(bytes[2...])
    let genuine = map.proof(of: key)
    precondition(genuine.proves(key, value, root: map.root), "the true proof holds")
    precondition(SparseMerkleProof(genuine.bytes) == genuine, "and is read as it was written")
    guard let proof = SparseMerkleProof(rest) else { return }
    precondition(proof.bytes == rest, "one encoding of one proof")
    for wrong: Digest256? in [nil, .zero, .of([key.bytes[0], 1])] where wrong != value {
        precondition(!proof.proves(key, wrong, root: map.root), "no proof of what is not so")
    }
}

/// Recovery words as they are typed.
public func fuzzRecoveryWords(_ bytes: [UInt8]) {
    let text = SecureBytes(copying: bytes)
    guard let entropy = try? RecoveryWords.entropy(text) else { return }
    guard let words = try? RecoveryWords.words(entropy) else { preconditionFailure("entropy has words") }
    precondition((try? RecoveryWords.entropy(words)) == entropy, "words are read as they were written")
    let cut: [UInt8] = words.withUnsafeBytes { words in
        Array(words.split(separator: 0x20).map { $0.prefix(4) }.joined(separator: [0x09]))
    }
    precondition((try? RecoveryWords.entropy(SecureBytes(copying: cut))) == entropy, "four letters are enough")
}

/// Pieces of a secret: bytes 0 and 1 choose their number, bytes 2 and 3 the flipped bit; the rest is a piece and a
/// secret.
public func fuzzSecretShare(_ bytes: [UInt8]) {
    guard bytes.count >= 5 else { return }
    let rest = Array(bytes[4...])
    // As it is, and with a correct checksum, so that the code behind the check is tested too.
    for piece in [rest, rest + Hash.sha256([1] + rest).prefix(4)] {
        guard let share = try? SecretShare(SecureBytes(copying: piece)) else { continue }
        precondition(share.bytes == SecureBytes(copying: piece), "a piece is written as it was read")
    }
    let threshold = 2 + Int(bytes[0]) % 4
    let secret = SecureBytes(copying: Array(rest.prefix(64)))
    let shares = try? SecretShare.split(
        secret, threshold: threshold, count: threshold + Int(bytes[1]) % 4,
        random: { count in SecureBytes(copying: (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) ^ bytes[2] }) })
    guard let shares else { preconditionFailure("a secret is cut") }
    precondition((try? SecretShare.combine(shares.suffix(threshold))) == secret, "enough pieces give the secret")
    precondition(
        (try? SecretShare.combine(Array(shares.dropLast(shares.count - threshold + 1)))) == nil, "fewer do not")
    var changed: [UInt8] = shares[0].bytes.withUnsafeBytes { Array($0) }
    let bit = (Int(bytes[2]) << 8 | Int(bytes[3])) % (changed.count * 8)
    changed[bit / 8] ^= 1 << UInt8(bit % 8)
    precondition((try? SecretShare(SecureBytes(copying: changed))) == nil, "a flipped bit is noticed")
}

/// Padded texts: byte 0 chooses the rule.
public func fuzzPadding(_ bytes: [UInt8]) {
    guard let choice = bytes.first else { return }
    let rest = Array(bytes[1...])
    let rule: Padding = [.none, .padme, .multiple(of: 64), .multiple(of: 1 + Int(choice))][Int(choice) % 4]
    for lengthBytes in [2, 4] {
        if let text = rule.unpad(rest, lengthBytes: lengthBytes) {
            precondition(rule.pad(text, lengthBytes: lengthBytes) == rest, "one padded form of one text")
        }
        let padded = rule.pad(rest, lengthBytes: lengthBytes)
        precondition(padded.flatMap { rule.unpad($0, lengthBytes: lengthBytes) } == rest, "what is padded comes back")
    }
}

/// Names: folding, and base32.
public func fuzzNames(_ bytes: [UInt8]) {
    if let decoded = Base32.decode(bytes) {
        precondition(Array(Base32.encode(decoded).utf8) == bytes, "one text of one sequence of bytes")
    }
    precondition(Base32.decode(Base32.encode(bytes).utf8) == bytes, "what is written is read")
    guard let composed = try? UnicodeText.composed(bytes) else {
        precondition(String(validating: bytes, as: UTF8.self) == nil, "all UTF-8 has a composed form")
        return
    }
    precondition((try? UnicodeText.composed(composed)) == composed, "composing twice is composing once")
    precondition((try? UnicodeText.folded(bytes)) == (try? UnicodeText.folded(composed)), "spelling does not matter")
    precondition(String(decoding: composed, as: UTF8.self) == String(decoding: bytes, as: UTF8.self), "the same text")
}

private func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
