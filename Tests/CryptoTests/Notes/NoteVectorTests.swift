import Testing
import ThicketCrypto
import ThicketProtocol
import ThicketTestSupport

@Suite("Encrypted notes against the published cases", .enabled(if: Vectors.has("onions"), "needs the onions vectors"))
struct NoteVectorTests {
    private static func secret(_ text: String) -> SecureBytes { SecureBytes(copying: Array(text.utf8)) }
    private static func text(_ secret: SecureBytes) -> [UInt8] { secret.withUnsafeBytes { Array($0) } }

    @Test("every pair of user name and password is stretched to the published values")
    func stretch() throws {
        let cases = try Vectors.json("onions/stretch.json").list("cases")
        #expect(cases.count == 13)
        for each in cases {
            let credentials = try StretchedCredentials(
                username: Self.secret(try each.text("username")), password: Self.secret(try each.text("password")))
            #expect(Self.text(credentials.username) == Array(try each.text("stretched_username").utf8))
            #expect(Self.text(credentials.password) == Array(try each.text("stretched_password").utf8))
        }
    }

    @Test("every single text is stretched to its published value, also without letters and with one round")
    func single() throws {
        let cases = try Vectors.json("onions/stretch.json").list("single")
        #expect(cases.count == 10)
        for each in cases {
            let stretched = StretchedCredentials.stretch(
                Self.secret(try each.text("input")), rounds: try each.int("iterations"))
            #expect(Self.text(stretched) == Array(try each.text("base64").utf8))
        }
    }

    @Test("every message opens: other rounds, SHA-512, and format 2 with its cut password")
    func messages() throws {
        let cases = try Vectors.json("onions/messages.json").list("cases")
        #expect(cases.count == 48)
        for each in cases {
            let stretching = try RNCryptor.Stretching(
                try #require(HashFunction(rawValue: try each.text("prf"))), rounds: try each.int("iterations"))
            let message = try each.hex("message_hex")
            #expect(Int(message[0]) == (try each.int("header_version")))
            let clear = try RNCryptor.open(
                message, password: Self.secret(try each.text("password")), stretching)
            #expect(Self.text(clear) == Array(try each.text("plaintext").utf8))
        }
    }

    @Test("T5: every message that must fail fails, with the one error")
    func mustFail() throws {
        let cases = try Vectors.json("onions/messages.json").list("must_fail")
        #expect(cases.count == 18)
        for each in cases {
            let stretching = try RNCryptor.Stretching(
                try #require(HashFunction(rawValue: try each.text("prf"))), rounds: try each.int("iterations"))
            expectFailure(try each.text("name")) {
                _ = try RNCryptor.open(
                    try each.hex("message_hex"), password: Self.secret(try each.text("password")), stretching)
            }
        }
    }

    @Test("every new note opens, and seals to the published text")
    func version3() throws {
        let cases = try #require(Vectors.json("onions/notes-v3.json").arrayValue)
        #expect(cases.count == 6)
        for each in cases {
            let seal = try NoteSeal(
                vaultSecret: SecureBytes(copying: try each.hex("vault_secret")),
                userID: Array(try each.text("user_id").utf8), noteID: Array(try each.text("note_id").utf8),
                field: Array(try each.text("field").utf8))
            let (text, stored) = (try each.text("text"), try each.text("stored"))
            #expect(Self.text(try seal.open(Array(stored.utf8))) == Array(text.utf8))
            #expect(try seal.seal(Self.secret(text), nonce: AEADNonce(each.hex("nonce"))) == stored)
        }
    }

    @Test("lengths in UTF-16 units, UTF-8 bytes and scalars are the published ones")
    func limits() throws {
        for each in try Vectors.json("onions/limits.json").list("cases") {
            let text = try each.text("text")
            #expect(text.utf16.count == (try each.int("utf16")))
            #expect(text.utf8.count == (try each.int("utf8")))
            #expect(text.unicodeScalars.count == (try each.int("scalars")))
        }
    }
}

@Suite("New notes")
struct NoteSealTests {
    private static let vault = SecureBytes.random(32)

    private static func seal(_ user: String = "u", _ note: String = "n", _ field: String = "onionTitle") throws
        -> NoteSeal
    {
        try NoteSeal(
            vaultSecret: vault, userID: Array(user.utf8), noteID: Array(note.utf8), field: Array(field.utf8))
    }

    @Test("T6: a field moved to another note, user or name does not open")
    func binding() throws {
        let stored: [UInt8] = Array(try Self.seal().seal(SecureBytes(copying: Array("secret".utf8))).utf8)
        #expect(try Self.seal().open(stored) == SecureBytes(copying: Array("secret".utf8)))
        expectFailure("other user") { _ = try Self.seal("v").open(stored) }
        expectFailure("other note") { _ = try Self.seal("u", "m").open(stored) }
        expectFailure("other field") { _ = try Self.seal("u", "n", "onionInfo").open(stored) }
        // Lengths come first, so moving a letter from one name to the next makes another place.
        expectFailure("moved letter") { _ = try Self.seal("u", "no", "nionTitle").open(stored) }
    }

    @Test("T5: every changed letter, every cut and an unknown suite is refused")
    func damage() throws {
        let stored: [UInt8] = Array(try Self.seal().seal(SecureBytes(copying: Array("x".utf8))).utf8)
        for place in stored.indices {
            var changed: [UInt8] = stored
            changed[place] = changed[place] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            expectFailure("letter \(place)") { _ = try Self.seal().open(changed) }
            expectFailure("cut to \(place)") { _ = try Self.seal().open(Array(stored.prefix(place))) }
        }
        expectFailure("padding") { _ = try Self.seal().open(stored + [UInt8(ascii: "=")]) }
    }

    @Test("texts of up to 62 bytes take one block of 64, and the size shows no more")
    func sizes() throws {
        let sizes = Set(
            try [0, 1, 62].map {
                try Self.seal().seal(SecureBytes(copying: .init(repeating: 0x61, count: $0))).utf8.count
            })
        #expect(sizes.count == 1)
        #expect(throws: CryptoError.outOfBounds(.count)) {
            try Self.seal().seal(SecureBytes(copying: .init(repeating: 0, count: 65_536)))
        }
        #expect(throws: CryptoError.outOfBounds(.key)) {
            try NoteSeal(vaultSecret: SecureBytes.random(31), userID: [], noteID: [], field: [])
        }
    }

    @Test("neither user name nor password may be empty")
    func empty() {
        #expect(throws: CryptoError.outOfBounds(.count)) {
            try StretchedCredentials(username: SecureBytes.random(0), password: SecureBytes.random(1))
        }
        #expect(throws: CryptoError.outOfBounds(.count)) {
            try StretchedCredentials(username: SecureBytes.random(1), password: SecureBytes.random(0))
        }
    }
}
