import ThicketAuth
import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// The payload that an attacker with a pairing's code may seal for the new device: the bytes are the clear text. Only a
/// whole key, a name and a token are accepted, and the words are shown before.
public func fuzzPairingPayload(_ bytes: [UInt8]) {
    let random = AccountRandom(
        secret: { SecureBytes(copying: .init(repeating: 7, count: $0)) }, bytes: { .init(repeating: 7, count: $0) })
    guard let begun = try? Pairing.begin(app: "a", device: "new", random: random),
        let answer = try? begun.pairing.seal(
            text: SecureBytes(copying: bytes), user: "u", from: "old", app: "a")
    else { preconditionFailure("anything can be sealed for who shows a key") }
    guard let received = try? begun.open(answer) else { return }
    let object = (try? JSONValue(parsing: bytes))?.objectValue
    precondition(received.accessKey.secret.count == AccessKey.bytesCount, "a whole key")
    precondition(received.words.split(separator: " ").count == 4, "and words to compare")
    // Names with escapes are not compared here.
    guard let object, !bytes.contains(0x5C) else { return }
    precondition(object["name"]?.stringValue.map { $0.utf8.elementsEqual(received.name.utf8) } == true, "the name")
    precondition(
        object["token"]?.stringValue.map { $0.utf8.elementsEqual(received.accessToken.utf8) } == true, "the token")
}

/// Recovery words and codes under a passcode, as they are typed, and the bytes of a code behind correct check letters.
/// No passcode is tried: its cost is checked before.
public func fuzzRecoveryCode(_ bytes: [UInt8]) {
    let typed = SecureBytes(copying: bytes)
    if let key = try? AccessKey(words: typed) {
        precondition((try? AccessKey(words: key.words)) == key, "words are read as they are written")
    }
    for code in [typed, WrittenCode.text(of: typed) ?? typed] {
        guard let read = try? RecoveryCode.Written(code, rules: .product) else { continue }
        precondition((17...20).contains(read.cost.log2N) && (1...4).contains(read.cost.p), "the work is bounded")
        precondition(read.salt.count == PasswordKeys.saltBytes, "a whole salt")
        guard let again = WrittenCode.text(of: SecureBytes(copying: read.octets)) else {
            preconditionFailure("a code is written")
        }
        precondition(
            (try? RecoveryCode.Written(again, rules: .product))?.octets == read.octets, "and read as it was written")
    }
}

/// Pieces of a key as they are typed, and pieces behind correct check letters: the bytes are pieces one after the
/// other, each with its length in front. They give a key or an error with its reason.
public func fuzzKeyPieces(_ bytes: [UInt8]) {
    var (texts, rest): ([SecureBytes], ArraySlice<UInt8>) = ([], bytes[...])
    while let length = rest.first, texts.count <= KeyPieces.piecesMax {
        let piece = rest.dropFirst().prefix(Int(length))
        rest = rest.dropFirst(1 + piece.count)
        if let text = WrittenCode.text(of: SecureBytes(copying: Array(piece))) {
            texts += [SecureBytes(copying: Array("# a piece\n".utf8)), text, SecureBytes(copying: [0x0A])]
        }
    }
    for text in [SecureBytes(copying: bytes), .joined(texts)] {
        guard let key = try? KeyPieces.join(text) else { continue }
        precondition(key.secret.count == AccessKey.bytesCount, "a whole key")
    }
}

/// The state that a device keeps of an account.
public func fuzzDeviceKeys(_ bytes: [UInt8]) {
    guard let keys = try? DeviceKeys(text: SecureBytes(copying: bytes)) else { return }
    guard let again = try? DeviceKeys(text: keys.text) else {
        preconditionFailure("what is written is read")
    }
    precondition(again == keys, "and is the same")
    precondition(keys.next.map { $0.secret.count == AccessKey.bytesCount } != false, "a whole key, or none")
    _ = try? keys.open()
}

/// The file with the key of local stores, open or locked.
public func fuzzStoreKeyFile(_ bytes: [UInt8]) {
    guard let written = StoreKeyFile.rewritten(SecureBytes(copying: bytes)) else { return }
    precondition(StoreKeyFile.rewritten(written) == written, "what is written is read")
}

/// Tokens of partners: the bytes as a token; and their first line as a header, the others as a payload, signed as the
/// partner would.
public func fuzzPartnerToken(_ bytes: [UInt8]) {
    let key = [UInt8](repeating: 0x61, count: Partner.authKeyBytesMin)
    let partner = Partner(id: "1", authKeys: [key])
    let verifier = TokenVerifier()
    for device in ["d", ""] {
        precondition(
            (try? verifier.read(bytes[...], of: partner, phase: .login(device: device), now: 1_000)) == nil,
            "nobody has signed this")
    }
    if let form = try? SignedToken(bytes[...]) {
        precondition(SignedToken.hasForm(String(decoding: bytes, as: UTF8.self)), "what is one looks like one")
        precondition(form.signature.count == 64, "a whole signature")
    }
    let cut: Int = bytes.firstIndex(of: 0x0A) ?? bytes.count
    let signed: [UInt8] = Array(
        (Base64.encodeURL(Array(bytes[..<cut])) + "." + Base64.encodeURL(Array(bytes.dropFirst(cut + 1)))).utf8)
    let token: [UInt8] = signed + [0x2E] + Base64.encodeURL(Hash.hmacSHA512(key: key, signed[...])).utf8
    for phase: TokenVerifier.Phase in [.registration, .login(device: "d")] {
        guard let claims: TokenClaims = try? verifier.read(token[...], of: partner, phase: phase, now: 1_000) else {
            continue
        }
        precondition(claims.expiry.isFinite, "it ends")
        precondition(claims.expiry <= 1_000 + verifier.rules.lifetimeMax + verifier.rules.lifetimeTolerance, "in time")
        for name in [claims.entity, claims.partnerEntity] + [claims.device].compactMap({ $0 }) {
            precondition((1...Limits.userIDBytesMax).contains(name.utf8.count), "names are bounded")
            precondition(name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }, "and hold no control characters")
        }
        precondition((claims.entity == TokenClaims.noEntity) || phase != .registration, "a registration names nobody")
        precondition(
            (try? verifier.read(
                token[...], of: Partner(id: "2", authKeys: [key.dropLast() + [0]]), phase: phase, now: 1_000))
                == nil, "another partner's key has not signed it")
    }
}
