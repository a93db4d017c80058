import Testing
import ThicketCrypto
import ThicketProtocol

@testable import ThicketKeyLog

@Suite("Entries of the key log")
struct KeyLogEntryTests {
    /// First, rotation, reset, rotation.
    private static func chain() throws -> KeyLogPerson {
        var ann = try KeyLogPerson("ann", 1)
        try ann.change(.rotation, at: 2_000)
        try ann.change(.reset, at: 3_000)
        try ann.change(.rotation, at: 3_000)
        return ann
    }

    @Test("a chain of a first entry, rotations and resets is accepted and survives a round trip")
    func good() throws {
        let entries = try Self.chain().entries
        #expect(entries.map(\.kind) == [.first, .rotation, .reset, .rotation])
        #expect(entries.map(\.sequence) == [0, 1, 2, 3])
        var last: KeyLogEntry?
        for entry in entries {
            try entry.check(after: last)
            let read = try KeyLogEntry(entry.bytes)
            #expect(read == entry && read.bytes == entry.bytes && read.keys == entry.keys)
            #expect(read.previous == last?.hash && read.hash == MerkleTree.leafHash(entry.bytes))
            #expect(read.validFrom == entry.validFrom && read.app == "chat" && read.user == "ann")
            #expect((read.previousSignature != nil) == (read.kind == .rotation))
            last = entry
        }
    }

    @Test("an entry is accepted only behind the entry that it follows")
    func places() throws {
        let entries = try Self.chain().entries
        for (index, entry) in entries.enumerated() {
            for (place, last) in ([nil] + entries.map { $0 }).enumerated() {
                let refusal = keyLogRefusal { try entry.check(after: last) }
                #expect(refusal == (place == index ? nil : .sequence), "entry \(index) at \(place)")
            }
        }
    }

    @Test("an entry that is cut, longer, or has one bit flipped is malformed or refused")
    func flips() throws {
        let ann = try Self.chain()
        for index in [0, 1, 2] {
            let (bytes, last) = (
                ann.entries[index].bytes, index == 0 ? nil : ann.entries[index - 1]
            )
            for count in 0..<bytes.count {
                #expect(keyLogRefusal { _ = try KeyLogEntry(Array(bytes[..<count])) } == .malformed, "\(count)")
            }
            #expect(keyLogRefusal { _ = try KeyLogEntry(bytes + [0]) } == .malformed)
            for bit in 0..<bytes.count * 8 {
                var changed = bytes
                changed[bit / 8] ^= 1 << UInt8(bit % 8)
                #expect(keyLogRefusal { try KeyLogEntry(changed).check(after: last) } != nil, "bit \(bit) of \(index)")
            }
        }
    }

    @Test("an entry with a wrong signature, place, time, name or kind is refused, each with its own code")
    func wrong() throws {
        var ann = try KeyLogPerson("ann", 1)
        let (first, oldKey) = (ann.newest, ann.identity)
        let good = try ann.change(.rotation, at: 2_000)
        let (newKey, outsider): (Ed25519.SigningKey, Ed25519.SigningKey) = (ann.identity, .random())
        func refusal(
            _ new: Ed25519.SigningKey, _ old: Ed25519.SigningKey?, _ change: (inout KeyLogEntry.Fields) throws -> Void
        ) rethrows -> KeyLogError.Kind? {
            var fields = good.fields
            try change(&fields)
            return keyLogRefusal { try KeyLogEntry.made(fields, new, last: old).check(after: first) }
        }
        #expect(refusal(newKey, oldKey) { _ in } == nil)
        #expect(refusal(newKey, outsider) { _ in } == .signature)
        #expect(refusal(newKey, newKey) { _ in } == .signature)
        #expect(refusal(outsider, oldKey) { _ in } == .signature)
        #expect(refusal(oldKey, newKey) { _ in } == .signature)
        #expect(refusal(newKey, oldKey) { $0.sequence = 2 } == .sequence)
        #expect(refusal(newKey, oldKey) { $0.previous = .of([1]) } == .previous)
        #expect(refusal(newKey, oldKey) { $0.previous = .zero } == .previous)
        #expect(refusal(newKey, oldKey) { $0.validFrom = 999 } == .time)
        #expect(refusal(newKey, oldKey) { $0.app = "notes" } == .otherApp)
        let others = try PublicKeys(
            user: "ben", identity: newKey.verifyingKey, encryption: ann.encryption.publicKey)
        #expect(refusal(newKey, oldKey) { $0.keys = others } == .otherUser)
        #expect(refusal(oldKey, oldKey) { $0.keys = first.keys } == .sameKeys)
        // The parts that a kind must and must not have.
        #expect(refusal(newKey, nil) { _ in } == .malformed)
        #expect(refusal(newKey, oldKey) { $0.kind = .reset } == .malformed)
        #expect(refusal(newKey, oldKey) { $0.kind = .first } == .malformed)
        #expect(refusal(newKey, oldKey) { $0.previous = nil } == .malformed)
        #expect(refusal(newKey, oldKey) { $0.sequence = 0 } == .malformed)
        #expect(refusal(newKey, oldKey) { $0.sequence = KeyLogLimits.numberBound } == .malformed)
    }

    @Test("a rotation whose second signature was cut off does not pass as a reset, since its kind is signed")
    func cutSignature() throws {
        var ann = try KeyLogPerson("ann", 1)
        let first = ann.newest
        let good = try ann.change(.rotation, at: 2_000)
        var fields = good.fields
        fields.kind = .reset
        let cut = try KeyLogEntry(fields, signature: good.signature, previousSignature: nil)
        #expect(keyLogRefusal { try cut.check(after: first) } == .signature)
    }

    @Test("a signature of another user's entry or under another label is refused")
    func borrowed() throws {
        let (ann, ben): (KeyLogPerson, KeyLogPerson) = (try .init("ann", 1), try .init("ben", 1))
        let sent = try KeyLogEntry(
            ann.newest.fields, signature: ben.newest.signature, previousSignature: nil)
        #expect(keyLogRefusal { try sent.check(after: nil) } == .signature)
        for label in SignatureLabel.allCases {
            let signature: [UInt8] = try ann.identity.signature(for: label, ann.newest.fields.octets)
            let entry = try KeyLogEntry(ann.newest.fields, signature: signature, previousSignature: nil)
            #expect(keyLogRefusal { try entry.check(after: nil) } == (label == .key ? nil : .signature), "\(label)")
        }
    }

    @Test("the encryption key alone may change; the identity key signs for it twice")
    func encryptionAlone() throws {
        let ann = try KeyLogPerson("ann", 1)
        let next = try ann.newest.rotated(
            to: ann.identity, encryption: KeyLogPerson.opening("ann", 9).publicKey, signedBy: ann.identity,
            validFrom: 2_000)
        try next.check(after: ann.newest)
        #expect(next.keys != ann.keys && next.keys.identity == ann.keys.identity)
    }

    @Test("a clock that went back does not date an entry before the last one")
    func clocks() throws {
        var ann = try KeyLogPerson("ann", 1, at: 5_000)
        let first = ann.newest
        let second = try ann.change(.rotation, at: 10)
        #expect(second.validFrom == 5_000)
        try second.check(after: first)
    }

    @Test("the longest names fit; one byte more, an empty name or a bad character is refused")
    func names() throws {
        func bytes(_ app: String, _ user: String) throws -> Int {
            let key = try KeyLogPerson.signing("a", 1)
            let first: KeyLogEntry = try .first(
                app: app, user: user, identity: key, encryption: KeyLogPerson.opening("a", 1).publicKey, validFrom: 1)
            return try first.rotated(
                to: key, encryption: KeyLogPerson.opening("a", 2).publicKey, signedBy: key, validFrom: 1
            ).bytes.count
        }
        let (app, user): (String, String) = (.init(repeating: "a", count: 64), .init(repeating: "ü", count: 128))
        #expect(try bytes(app, user) == KeyLogLimits.entryBytesMax)
        for (app, user): (String, String) in [
            (app + "a", user), (app, user + "u"), ("", user), (app, ""), ("Chat", user), ("a b", user),
            (app, "a\u{0}"), (app, "a\n"),
        ] {
            #expect(keyLogRefusal { _ = try bytes(app, user) } != nil, "\(app.utf8.count), \(user.utf8.count)")
        }
    }

    @Test("a name that is not UTF-8 is malformed, and another spelling of a name is another user")
    func spellings() throws {
        let ann = try KeyLogPerson("\u{E9}", 1)
        var bytes = ann.newest.bytes
        let place: Int = try #require(bytes.indices.first { bytes[$0...].starts(with: [0xC3, 0xA9]) })
        bytes[place + 1] = 0xFF
        #expect(keyLogRefusal { _ = try KeyLogEntry(bytes) } == .malformed)
        #expect(KeyLogEntry.mapKey(of: "\u{E9}") != KeyLogEntry.mapKey(of: "e\u{301}"))
    }
}
