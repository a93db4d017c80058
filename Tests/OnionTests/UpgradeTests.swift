import Synchronization
import Testing
import ThicketAuth
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketServer
import ThicketTestServer

@testable import ThicketOnions

@Suite("Upgrade of an old notes app's account to keys", .serialized, .timeLimit(.minutes(15)))
struct UpgradeTests {
    private struct Stopped: Error {}
    private static let texts = [note("first", "of the first format"), note("second"), note("third", "é日😀")]

    /// An account with a note of the first format, one of the second with few rounds, and one in the current format.
    private struct House {
        let server: NotesServer
        let user: String
        let ids: [String]

        init() async throws {
            server = try NotesServer()
            let vault = try await server.vault("hello", "World")
            user = vault.user
            let keys = NoteKeys(user: user, password: secret("World"))
            for (index, format): (Int, NoteFormat) in [.first, .second].enumerated() {
                var object = try keys.seal(texts[index], id: "\(index)", format, rounds: 1_000)
                object["createdAt"] = .number(JSONNumber(Int64(index + 1)))
                object["attachments"] = ["kept": true]
                try await vault.notes.set("old-\(index)", to: object)
            }
            try await vault.notes.waitUntilSynced(timeout: .seconds(120))
            let third = try await vault.create(texts[2])
            ids = ["old-0", "old-1", third]
            await vault.end()
        }

        func account() throws -> OnionAccount {
            var account = try server.account()
            account.stretch = weak
            return account
        }

        func upgrade(
            to name: String = "ada@example.com", _ password: String = "sesame", unreadable: Bool = false,
            stop: @escaping OnionUpgrade.Stop = { _ in }
        ) async throws -> OnionUpgrade {
            try await account().upgrade(
                secret("hello"), secret("World"), to: name, secret(password),
                .init(slow: false, unreadable: unreadable), stop: stop)
        }

        /// The new login.
        func keyed(_ password: String = "sesame", _ name: String = "ada@example.com") async throws -> SignedIn {
            let result = try await account().app.accounts(stretch: weak).signIn(
                name: name, password: secret(password))
            guard case .open(let login) = result else { throw AccountError.locked }
            return login
        }

        func vault(_ login: SignedIn, password: String? = nil) async throws -> Vault {
            try await Vault(
                try await account().app.resume(login),
                keys: NoteKeys(
                    user: login.account.user, password: password.map { secret($0) },
                    vaultSecret: login.account.bundle.vaultSecret))
        }

        /// Expects that only the new login opens all notes, and that the old login is refused.
        func expectDone(_ password: String = "sesame", _ place: String = "") async throws {
            let login = try await keyed(password)
            #expect(login.account.user == user, "\(place)")
            let vault = try await vault(login)
            let list = try await vault.list()
            #expect(list.map(\.id) == ids && list.allSatisfy { $0.format == .sealed }, "\(place)")
            for (id, text) in zip(ids, texts) {
                #expect(try await vault.read(id) == text, "\(place)")
            }
            await vault.end()
            await #expect(throws: OnionError.wrongLogin) { _ = try await server.again("hello", "World") }
        }
    }

    private static let weak: AccountAPIClient.Stretch = { password, salt, _ throws(CryptoError) in
        try PasswordKeys(
            password: password, salt: salt, cost: try PasswordRules.tests.cost(kdf: 1, log2N: 14, r: 8, p: 1))
    }

    @Test("an upgrade keeps the user id and the notes' order, makes all notes version 3 and ends the old login")
    func run() async throws {
        let house = try await House()
        let done = try await house.upgrade()
        #expect(done.isFinished && done.notes == OnionResealing(resealed: 3) && done.name == "ada@example.com")
        #expect(done.user == house.user)
        try await house.expectDone()
        let login = try await house.keyed()
        #expect(login.account.needsBackup)
        let vault = try await house.vault(login)
        let object = try await vault.notes.get("old-0")
        #expect(object?["attachments"] == ["kept": true] && object?["createdAt"] == 1)
        // A new note is of version 3, and a save keeps it.
        let id = try await vault.create(note("new"))
        try await vault.save(note("newer"), in: id, over: note("new"))
        #expect(try await vault.list().last?.format == .sealed)
        await vault.end()
    }

    @Test("the server sees neither the old name and password, nor the new password, nor a text")
    func canaries() async throws {
        let server = try NotesServer()
        let words = (0..<5).map { "canary-\($0)-\(RandomBytes.hex(8))" }
        let vault = try await server.vault(words[0], words[1])
        _ = try await vault.create(note(words[2], words[3]))
        await vault.end()
        var account = try server.account()
        account.stretch = Self.weak
        let done = try await account.upgrade(
            username: secret(words[0]), password: secret(words[1]), to: "visible-name", newPassword: secret(words[4]))
        #expect(done.isFinished)
        let stored = server.stored()
        #expect(stored.holds(Array("visible-name".utf8)), "the search finds what is there")
        for word in words { #expect(!stored.holds(Array(word.utf8)), "\(word)") }
        #expect(!String(describing: done).contains("canary"))
    }

    @Test(
        "an upgrade stopped at any step leaves every note readable with a valid login, and a repeat completes it",
        arguments: [.loggedIn, .begun, .note(0), .note(1), .note(2), .resealed, .finished, .rest] as [OnionUpgrade.Step]
    )
    func stopped(_ step: OnionUpgrade.Step) async throws {
        let house = try await House()
        let error: (any Error)? = await #expect(throws: OnionError.changedMeanwhile) {
            _ = try await house.upgrade { reached throws(OnionError) in
                if reached == step { throw .changedMeanwhile }
            }
        }
        try #require(error != nil, "it came by there")
        let isOldGone = step == .finished || step == .rest
        do {
            // The old login reads the notes that are not resealed yet; the new login reads the rest.
            let old = isOldGone ? nil : try await house.server.again("hello", "World")
            let new = step == .loggedIn ? nil : try await house.vault(try await house.keyed())
            for (id, text) in zip(house.ids, Self.texts) {
                let byOld = try? await old?.read(id)
                let byNew = try? await new?.read(id)
                #expect((byOld ?? byNew) == text, "\(id)")
            }
            await old?.end()
            await new?.end()
        }
        let done = try await house.upgrade()
        #expect(done.isFinished && done.notes.left.isEmpty)
        try await house.expectDone("sesame", "\(step)")
    }

    @Test("a resumed upgrade may give another new password: the last one counts, the name and the keys stay")
    func otherPassword() async throws {
        let house = try await House()
        await #expect(throws: OnionError.ended) {
            _ = try await house.upgrade { step throws(OnionError) in if step == .note(1) { throw .ended } }
        }
        let first = try await house.keyed()
        let done = try await house.upgrade(to: "another-name", "barley")
        #expect(done.isFinished && done.name == "ada@example.com", "the name is the first one's, too")
        let login = try await house.keyed("barley")
        #expect(login.account.bundle == first.account.bundle && login.account.accessKey == first.account.accessKey)
        try await house.expectDone("barley")
        await #expect(throws: AccountError.wrongPassword(isChanged: false)) { _ = try await house.keyed("sesame") }
    }

    @Test("an upgrade with a wrong old password and the right new one finishes only once every note is resealed")
    func wrongOld() async throws {
        let house = try await House()
        for step: OnionUpgrade.Step in [.note(1), .resealed] {
            await #expect(throws: OnionError.ended) {
                _ = try await house.upgrade { reached throws(OnionError) in if reached == step { throw .ended } }
            }
            let done: OnionUpgrade = try await house.account().upgrade(
                username: secret("hello"), password: secret("wrong"), to: "ada@example.com",
                newPassword: secret("sesame"))
            // Until every note is resealed the old password is needed; then nothing needs the old login any more.
            #expect(done.isFinished == (step == .resealed))
            guard step != .resealed else { break }
            #expect(done.notes.left.count == 2 && done.notes.isDoneExceptUnreadable)
            await (try await house.server.again("hello", "World")).end()
        }
        try await house.expectDone()
    }

    @Test("a note that does not open stays byte for byte, and keeps the old login until its owner says otherwise")
    func unreadable() async throws {
        let house = try await House()
        let vault = try await house.server.again("hello", "World")
        let foreign = try NoteKeys(user: vault.user, password: secret("else")).seal(
            note("kept"), id: "x", .second, rounds: 1_000)
        try await vault.notes.set("foreign", to: foreign)
        try await vault.notes.waitUntilSynced(timeout: .seconds(120))
        await vault.end()
        let stopped = try await house.upgrade()
        #expect(!stopped.isFinished && stopped.notes == OnionResealing(resealed: 3, left: ["foreign": .unreadable]))
        await (try await house.server.again("hello", "World")).end()
        let done = try await house.upgrade(unreadable: true)
        #expect(done.isFinished)
        let after = try await house.vault(try await house.keyed(), password: "else")
        #expect(try await after.notes.get("foreign") == foreign)
        #expect(try await after.read("foreign") == note("kept"))
        await after.end()
    }

    @Test("a note of very many rounds is not opened without consent, and keeps the old login")
    func costly() async throws {
        let house = try await House()
        let vault = try await house.server.again("hello", "World")
        var bomb = try #require(try await vault.notes.get("old-1"))
        bomb["iterations"] = 9_000_000
        try await vault.notes.set("bomb", to: bomb)
        try await vault.notes.waitUntilSynced(timeout: .seconds(120))
        await vault.end()
        // The consent to leave unreadable notes does not cover this one.
        let done = try await house.upgrade(unreadable: true)
        #expect(!done.isFinished && done.notes.left == ["bomb": .needsConsent(rounds: 9_000_000)])
        await (try await house.server.again("hello", "World")).end()
    }

    @Test("a note that an old client creates just before the end is resealed, too")
    func latecomer() async throws {
        let house = try await House()
        let late = try NoteKeys(user: house.user, password: secret("World")).seal(
            note("late"), id: "late", .second, rounds: 1_000)
        let stretched = try StretchedCredentials(username: secret("hello"), password: secret("World"))
        func text(_ secret: SecureBytes) -> String { String(decoding: secret.bytes, as: UTF8.self) }
        let login = #"{"username":"\#(text(stretched.username))","password":"\#(text(stretched.password))"}"#
        let (port, key) = (house.server.server.port, house.server.apiKey)
        let done = try await house.upgrade { step throws(OnionError) in
            guard step == .resealed else { return }
            do {
                let answer = try HTTPPeer.ask(
                    port, "POST", "/1/onions/authorize/", ["X-Simperium-API-Key": key], body: login)
                let token =
                    try JSONValue(parsing: Array(answer.body.utf8))["access_token"]?.stringValue ?? ""
                let put = try HTTPPeer.ask(
                    port, "POST", "/1/onions/onions/i/late", ["X-Simperium-Token": token],
                    body: JSONValue.object(late).serializedText)
                guard put.status == 200 else { throw OnionError.refused("\(put.status)") }
            } catch {
                throw error as? OnionError ?? .refused("\(error)")
            }
        }
        #expect(done.isFinished && done.notes.resealed == 4)
        let vault = try await house.vault(try await house.keyed())
        #expect(try await vault.read("late") == note("late"))
        await vault.end()
    }

    @Test("a taken name and a wrong old password change nothing")
    func refused() async throws {
        let house = try await House()
        let bob = try house.account().app.accounts(stretch: Self.weak)
        _ = try await bob.signUp(name: "bob", password: secret("p"))
        await #expect(throws: OnionError.keys(.nameTaken)) { _ = try await house.upgrade(to: "Bob") }
        let account = try house.account()
        await #expect(throws: OnionError.wrongLogin) {
            _ = try await account.upgrade(
                username: secret("hello"), password: secret("world"), to: "x", newPassword: secret("y"))
        }
        let old = try await house.server.again("hello", "World")
        #expect(try await old.list().map(\.id) == house.ids)
        await old.end()
    }
}

extension OnionResealing {
    fileprivate init(resealed: Int, left: [String: OnionError] = [:]) {
        self.init()
        (self.resealed, self.left) = (resealed, left)
    }
}
