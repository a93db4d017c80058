import ThicketClient
import ThicketCrypto
import ThicketOnions
import ThicketProtocol
import ThicketRelease

/// The clear text of an account's bundle.
public func fuzzAccountBundle(_ bytes: [UInt8]) {
    let text = SecureBytes(copying: bytes)
    if let read = SecretObject(text),
        let object = (try? JSONValue(parsing: bytes))?.objectValue,
        read.others(than: []).count == object.count
    {
        // Names with escapes are not compared here.
        for (name, value) in object.pairs where !bytes.contains(0x5C) {
            precondition(read.value(name) == value, "both readers find the same member")
        }
    }
    guard let bundle = try? AccountBundle(text: text) else { return }
    guard let again = try? AccountBundle(text: bundle.text()) else {
        preconditionFailure("what is written is read")
    }
    precondition(again == bundle, "and is the same")
    precondition(bundle.buckets.count <= AccountBundle.bucketsMax, "buckets are bounded")
}

/// An old device's answer to a new one: bytes of a sender that has not seen the new device's key never open.
public func fuzzPairingAnswer(_ bytes: [UInt8]) {
    let random = AccountRandom(
        secret: { SecureBytes(copying: .init(repeating: 7, count: $0)) }, bytes: { .init(repeating: 7, count: $0) })
    guard let begun = try? Pairing.begin(app: "a", device: "new", random: random) else {
        preconditionFailure("a pairing begins")
    }
    precondition((try? begun.open(bytes)) == nil, "nobody has sealed this")
    guard let shown = try? Pairing(hello: bytes) else { return }
    precondition(
        PairingCode.read(shown.code).map { $0.utf8.elementsEqual(PairingCode.text(of: bytes).utf8) } == true,
        "a code is read as it is shown")
    precondition((try? shown.words(bytes)) != nil, "there are words for every exchange")
}

/// Codes as they are typed: of a pairing, and a key written down.
public func fuzzTypedCodes(_ bytes: [UInt8]) {
    if let code = PairingCode.read(String(decoding: bytes, as: UTF8.self)) {
        precondition(PairingCode.read(code).map { $0.utf8.elementsEqual(code.utf8) } == true, "what was read is a code")
    }
    let text = SecureBytes(copying: bytes)
    if let read = try? WrittenCode.bytes(of: text), read.count > 0, read.count <= WrittenCode.bytesMax {
        guard let written = WrittenCode.text(of: read) else { preconditionFailure("bytes have a code") }
        precondition((try? WrittenCode.bytes(of: written)) == read, "and are read again")
    }
    guard let written = WrittenCode.text(of: text) else {
        precondition(bytes.isEmpty || bytes.count > WrittenCode.bytesMax, "all bytes within bounds have a code")
        return
    }
    precondition((try? WrittenCode.bytes(of: written)) == text, "what is written is read")
}

/// A proof of a release, or a log of releases: byte 0 chooses which, the rest is a file.
public func fuzzRelease(_ bytes: [UInt8]) {
    guard let choice = bytes.first else { return }
    let file = Array(bytes[1...])
    guard choice & 1 == 0 else {
        guard let log = try? ReleaseLog(file: file, key: nil) else { return }
        precondition(log.manifests.count == log.heads.count, "a head behind each release")
        for manifest in log.manifests.prefix(4) {
            guard let proof = log.proof(of: manifest.release) else { preconditionFailure("it is there") }
            precondition((try? ReleaseProof(file: proof.file)) == proof, "a proof is read as it was written")
        }
        return
    }
    guard let proof = try? ReleaseProof(file: file) else { return }
    precondition((try? ReleaseProof(file: proof.file)) == proof, "what is written is read")
}

/// A stored note's members besides its texts.
public func fuzzStoredNote(_ bytes: [UInt8]) {
    guard let object = (try? JSONValue(parsing: bytes))?.objectValue else { return }
    let note = StoredNote(id: "n", object: object)
    if let rounds = note.rounds { precondition((1...NoteRounds.most).contains(rounds), "rounds are bounded") }
    _ = (note.format, note.createdAt)
    precondition(note.isSame(as: note), "a note is the same as itself")
}

/// A text while it is typed: each pair of bytes is one action. Typing never exceeds the limit, and the cursor is always
/// at the beginning of a character.
public func fuzzTypedText(_ bytes: [UInt8]) {
    let pieces = ["a", "é", "e", "\u{301}", "🙂", "👨", "\u{200D}", "🇩", "🇪", "\r", "\n", "가", "ᄀ", "ᅡ"]
    var text = TypedText(unitsMax: 24)
    for (step, byte) in bytes.prefix(400).enumerated() {
        let before = text.units
        switch byte >> 5 {
        case 0, 1, 2: text.insert(pieces[Int(byte) % pieces.count])
        case 3: text.insert(pieces[Int(byte) % pieces.count] + pieces[step % pieces.count])
        case 4: text.deleteBackward()
        case 5: text.deleteForward()
        case 6: byte & 1 == 0 ? text.moveLeft(selects: byte & 2 == 0) : text.moveRight(selects: byte & 2 == 0)
        default: byte & 1 == 0 ? text.move(to: Int(byte & 15)) : text.selectAll()
        }
        precondition(text.units <= max(before, text.unitsMax), "typing stays under the limit")
        precondition((0...text.units).contains(text.cursor), "the cursor is inside")
        precondition(text.selection.lowerBound >= 0 && text.selection.upperBound <= text.units, "so is the selection")
        let head = text.part(0..<text.cursor)
        precondition(head.utf16.count == text.cursor, "the cursor stands between characters")
    }
}
