import ThicketCrypto

/// Sealed content: byte 0 chooses the suite, the next two the flipped bit; the rest is a stream, used as plain text and
/// as a foreign sealed stream.
public func fuzzSealedContent(_ bytes: [UInt8]) {
    guard bytes.count >= 3, let key = contentKey(bytes[0] & 1 == 0 ? .aes256GCM : .chaCha20Poly1305) else {
        return
    }
    let plain = Array(bytes[3...])
    for length in [plain.count, max(0, plain.count - 16)] {
        let opened = try? ContentOpener.open(plain, key, length: UInt64(length))
        precondition(opened == nil, "nobody seals without the key")
    }
    guard let sealed = try? ContentSealer.seal(plain, key) else { preconditionFailure("a short stream seals") }
    precondition((try? ContentOpener.open(sealed, key, length: UInt64(plain.count))) == plain, "what is sealed opens")
    let flipped = flipping(sealed, at: bytes[1], bytes[2])
    precondition(
        (try? ContentOpener.open(flipped, key, length: UInt64(plain.count))) == nil, "a flipped bit is noticed")
    precondition(streamed(plain, key, pieces: 1 + Int(bytes[1])) == sealed, "pieces change nothing")
    let start = UInt64(min(plain.count, Int(bytes[2])))
    precondition(
        read(start..<UInt64(plain.count), of: sealed, plain.count, key) == Array(plain[Int(start)...]), "ranges")
}

/// The layout of chunks: the first 8 bytes are a length, the next 16 a range.
public func fuzzContentLayout(_ bytes: [UInt8]) {
    guard bytes.count >= 24 else { return }
    let (length, from, to) = (
        number(bytes[..<8]), number(bytes[8..<16]), number(bytes[16..<24])
    )
    guard let layout = try? ContentLayout(length: length) else {
        precondition(length > ContentLayout.lengthMax, "every length up to the bound has a layout")
        return
    }
    precondition(layout.chunks >= 1 && layout.chunks <= ContentLayout.chunksMax, "chunks are bounded")
    let last = layout.chunks - 1
    precondition(layout.clearRange(of: last).upperBound == length, "the last chunk ends the stream")
    precondition(layout.sealedRange(of: last).upperBound == layout.sealedLength, "and the sealed stream")
    guard from <= to else { return }
    guard let chunks = layout.chunks(holding: from..<to) else {
        precondition(to > length, "a range inside has chunks")
        return
    }
    precondition(to <= length && chunks.upperBound <= layout.chunks, "chunks that are there")
    guard from < to else { return }
    precondition(layout.clearRange(of: chunks.lowerBound).contains(from), "the first chunk holds the start")
    precondition(layout.clearRange(of: chunks.upperBound - 1).contains(to - 1), "the last chunk holds the end")
    let sealed = layout.sealedRange(holding: from..<to)
    precondition(sealed?.upperBound == layout.sealedRange(of: chunks.upperBound - 1).upperBound, "one range")
}

/// Messages of old notes: byte 0 chooses the format, the next two the flipped bit; the rest is a message and a text.
public func fuzzRNCryptor(_ bytes: [UInt8]) {
    guard bytes.count >= 3, let once: RNCryptor.Stretching = try? .init(rounds: 1),
        let fresh: RNCryptor.Freshness = try? .init(
            encryptionSalt: .init(repeating: bytes[0], count: 8), codeSalt: .init(repeating: bytes[1], count: 8),
            vector: .init(repeating: bytes[2], count: 16))
    else { return }
    let (key, text) = (fixedKey, Array(bytes[3...]))
    precondition((try? RNCryptor.open(text, password: key, once)) == nil, "nobody seals without the password")
    precondition((try? RNCryptor.open(text, encryptionKey: key, codeKey: key)) == nil, "nor without the keys")
    let clear = SecureBytes(copying: text)
    let usesKeys = bytes[0] & 1 == 0
    let sealed =
        usesKeys
        ? try? RNCryptor.seal(clear, encryptionKey: key, codeKey: key, fresh)
        : try? RNCryptor.seal(clear, password: key, once, fresh)
    func open(_ message: [UInt8]) -> SecureBytes? {
        usesKeys
            ? try? RNCryptor.open(message, encryptionKey: key, codeKey: key)
            : try? RNCryptor.open(message, password: key, once)
    }
    guard let sealed else { preconditionFailure("a text seals") }
    precondition(open(sealed) == clear, "what is sealed opens")
    precondition(open(flipping(sealed, at: bytes[1], bytes[2])) == nil, "a flipped bit is noticed")
}

/// Sealed metadata and keys: suite, nonce, text, tag.
public func fuzzSealedMessage(_ bytes: [UInt8]) {
    precondition((try? SealedMessage.open(bytes, key: fixedKey, data: [1])) == nil, "nobody seals without the key")
    guard bytes.count >= 14, let nonce = try? AEADNonce(bytes[2..<14]) else { return }
    let (suite, text): (AEADSuite, [UInt8]) = (bytes[0] & 1 == 0 ? .aes256GCM : .chaCha20Poly1305, Array(bytes[14...]))
    guard let sealed = try? SealedMessage.seal(text, suite, key: fixedKey, data: [1], nonce: nonce) else {
        preconditionFailure("a text seals")
    }
    precondition((try? SealedMessage.open(sealed, key: fixedKey, data: [1])) == text, "what is sealed opens")
    precondition((try? SealedMessage.open(sealed, key: fixedKey, data: [2])) == nil, "other data do not")
    let flipped = flipping(sealed, at: bytes[0], bytes[1])
    precondition((try? SealedMessage.open(flipped, key: fixedKey, data: [1])) == nil, "a flipped bit is noticed")
}

/// A node's key wrapped for a receiver: bytes 0 and 1 choose the flipped bit, the next 64 are two secrets, and all
/// bytes are a wrap.
public func fuzzKeyWrap(_ bytes: [UInt8]) {
    let place = KeyWrap(owner: "a", app: "b", node: "c", epoch: 1, recipient: "d", recipientKey: "e")
    guard let receiver = try? X25519.PrivateKey(fixedKey) else { return }
    precondition((try? place.open(bytes, with: receiver)) == nil, "nobody wraps what nobody has wrapped")
    guard bytes.count >= 66, let ephemeral: X25519.PrivateKey = try? .init(SecureBytes(copying: Array(bytes[2..<34])))
    else { return }
    let key: SecureBytes = SecureBytes(copying: Array(bytes[34..<66]))
    guard let wrap: [UInt8] = try? place.seal(key, .aes256GCM, to: receiver.publicKey, ephemeral: ephemeral) else {
        preconditionFailure("a key is wrapped")
    }
    precondition((try? place.open(wrap, with: receiver)) == key, "what is wrapped opens")
    // X25519 ignores the highest bit of a key (RFC 7748, 5); here it counts, since the key's bytes are hashed.
    precondition((try? place.open(flipping(wrap, at: bytes[0], bytes[1]), with: receiver)) == nil, "a flipped bit")
}

/// A field of a new note, as it is stored.
public func fuzzNoteSeal(_ bytes: [UInt8]) {
    guard let seal = try? NoteSeal(vaultSecret: fixedKey, userID: [1], noteID: [2], field: [3]) else {
        return
    }
    precondition((try? seal.open(bytes)) == nil, "nobody seals without the secret")
    guard bytes.count >= 14, let nonce = try? AEADNonce(bytes[2..<14]) else { return }
    let text = SecureBytes(copying: Array(bytes[14...]))
    guard let stored = try? seal.seal(text, nonce: nonce) else { return }
    precondition((try? seal.open(Array(stored.utf8))) == text, "what is sealed opens")
    let flipped = flipping(Array(stored.utf8), at: bytes[0], bytes[1])
    precondition((try? seal.open(flipped)) == nil, "a flipped bit is noticed")
}

/// The key of all these targets, which have no state: the same bytes always have the same effect.
private let fixedKey = SecureBytes(copying: (0..<32).map { UInt8($0) })

private func contentKey(_ suite: AEADSuite) -> ContentKey? {
    try? ContentKey(suite, key: fixedKey, dataID: .init(repeating: 7, count: 16))
}

private func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

private func flipping(_ bytes: [UInt8], at high: UInt8, _ low: UInt8) -> [UInt8] {
    var changed = bytes
    let bit = (Int(high) << 8 | Int(low)) % (bytes.count * 8)
    changed[bit / 8] ^= 1 << UInt8(bit % 8)
    return changed
}

private func streamed(_ plain: [UInt8], _ key: ContentKey, pieces size: Int) -> [UInt8]? {
    do {
        var sealer: ContentSealer = try ContentSealer(key, length: UInt64(plain.count))
        var (sealed, rest): ([UInt8], ArraySlice<UInt8>) = ([], plain[...])
        while !rest.isEmpty {
            let piece: [UInt8] = Array(rest.prefix(size))
            rest = rest.dropFirst(size)
            try piece.withUnsafeBytes { try sealer.seal($0) { sealed += $0 } }
        }
        try sealer.finish { sealed += $0 }
        return sealed
    } catch { return nil }
}

private func read(_ range: Range<UInt64>, of sealed: [UInt8], _ length: Int, _ key: ContentKey) -> [UInt8]? {
    do {
        let opener = try ContentOpener(
            key, length: UInt64(length), storedLength: UInt64(sealed.count))
        var clear = [UInt8]()
        try opener.read(
            range,
            from: { offset, room in
                let part = sealed.dropFirst(Int(offset)).prefix(room.count)
                room.copyBytes(from: part)
                return part.count
            }
        ) { clear += $0 }
        return clear
    } catch { return nil }
}
