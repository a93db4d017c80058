import Synchronization
import Testing
import ThicketAuth
import ThicketClient
import ThicketCrypto
import ThicketProtocol
import ThicketServer
import ThicketTestServer
import ThicketTestSupport

@testable import ThicketOnions

@Suite("Encrypted notes at a real server")
struct VaultTests {
    @Test("a vault creates, lists by age, changes and removes notes across a login; the server stores no plaintext")
    func run() async throws {
        let server = try NotesServer()
        let name = "canary-user-\(RandomBytes.hex(8))"
        let (password, title, info) = ("canary-pass-9f2c", "canary-title", "canary-info é日😀")
        let vault = try await server.vault(name, password)
        let first = try await vault.create(note(title, info))
        let second = try await vault.create(note("second"))
        #expect(try await vault.list().map(\.id) == [first, second])
        #expect(try await vault.list().allSatisfy { $0.format == .second && $0.rounds == 10_000 })
        let read = try await vault.read(first)
        #expect(read == note(title, info))
        try await vault.save(note("canary-new", info), in: first, over: read)
        try await vault.remove(second)
        await vault.end()
        let again = try await server.again(name, password)
        #expect(try await again.list().map(\.id) == [first])
        #expect(try await again.read(first) == note("canary-new", info))
        await again.end()
        let stored = server.stored()
        let stretched = try StretchedCredentials(username: secret(name), password: secret(password))
        // The stretched name, which the server does store, is found: the search works.
        #expect(stored.holds(stretched.username.bytes))
        for canary in [name, password, title, "canary-new", "canary-info"] {
            #expect(!stored.holds(Array(canary.utf8)), "\(canary)")
            #expect(!stored.holds(canary.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }), "\(canary)")
        }
        #expect(!stored.holds(stretched.password.bytes))
    }

    @Test("a removal that the server refuses is reported as refused and undone: the note remains")
    func refusedRemoval() async throws {
        let server = try NotesServer()
        let vault = try await server.vault()
        let id = try await vault.create(note("t"))
        guard case .account(_, let user) = await vault.session.user else { throw OnionError.ended }
        let reading = try server.operators().createToken(
            TokenGrant(app: AppID(NotesServer.app), user: UserID(user), isReadOnly: true), now: 1)
        try await vault.session.sync.setToken(reading)
        await #expect(throws: OnionError.refused("the server refused the note")) { try await vault.remove(id) }
        #expect(try await vault.list().map(\.id) == [id])
        await vault.end()
    }

    @Test("after its end a vault reads and creates nothing, and its token is refused with 401")
    func end() async throws {
        let server = try NotesServer()
        let vault = try await server.vault()
        let id = try await vault.create(note("t"))
        let token = await vault.session.accessToken
        #expect(await vault.end())
        await #expect(throws: OnionError.ended) { try await vault.list() }
        await #expect(throws: OnionError.ended) { try await vault.read(id) }
        await #expect(throws: OnionError.ended) { try await vault.create(note("t")) }
        #expect(await vault.isEnded)
        let answer = try HTTPPeer.ask(
            server.server.port, "GET", "/1/onions/auth/notes", ["X-Simperium-Token": token])
        #expect(answer.status == 401)
    }

    @Test("a wrong password and an unknown name give the same error; a name of other bytes is another account")
    func logins() async throws {
        let server = try NotesServer()
        _ = try await server.vault("ann\u{E9}", "p")
        for (name, password) in [("ann\u{E9}", "q"), ("bob", "p"), ("anne\u{301}", "p"), ("", "p")] {
            await #expect(throws: OnionError.wrongLogin) { _ = try await server.again(name, password) }
        }
        await #expect(throws: OnionError.refused("the user name is taken")) {
            _ = try await server.vault("ann\u{E9}", "other")
        }
    }

    @Test("the eleventh note without Pro is refused by the client and by the server (413); Pro has no limit")
    func limit() async throws {
        let server = try NotesServer()
        let vault = try await server.vault()
        #expect(vault.standing == OnionStanding(isPro: false, receipt: nil, notesMax: 10))
        for number in 1...10 { _ = try await vault.create(note("\(number)")) }
        await #expect(throws: OnionError.full(notesMax: 10)) { _ = try await vault.create(note("11")) }
        #expect(try await Self.put("eleven", vault, server) == 413)
        // Existing notes may be changed, and a removal makes room.
        let id = try #require(try await vault.list().first?.id)
        try await vault.save(note("changed"), in: id, over: note("1"))
        try await vault.remove(id)
        #expect(try await Self.put("eleven", vault, server) == 200)
        #expect(try await Self.put("twelve", vault, server) == 413)
        // The operator grants Pro while the server runs.
        let user = try server.accounts().setPro(vault.user, in: NotesServer.app, receipt: "receipt-1", now: 1)
        #expect(user == vault.user)
        #expect(try await Self.put("twelve", vault, server) == 200)
        await vault.end()
        let pro = try await server.again()
        #expect(pro.standing == OnionStanding(isPro: true, receipt: "receipt-1", notesMax: nil))
        _ = try await pro.create(note("13"))
        #expect(try await pro.list().count == 12)
        // No longer Pro: notes are kept, new ones are refused.
        _ = try server.accounts().setPro(pro.user, in: NotesServer.app, receipt: nil, now: 1)
        #expect(try await Self.put("more", pro, server) == 413)
        try server.operators().setNotes(.pro, of: try AppID(NotesServer.app))
        #expect(try await Self.put("more", pro, server) == 200)
        try server.operators().setNotes(.off, of: try AppID(NotesServer.app))
        #expect(try await Self.put("other", pro, server) == 200)
        // Counted again, though the bucket has been in the server's memory all along.
        try server.operators().setNotes(.on, of: try AppID(NotesServer.app))
        #expect(try await Self.put("another", pro, server) == 413)
        await pro.end()
    }

    /// Writes an object as a foreign client does, with retries on 503; returns the answer's status.
    private static func put(
        _ key: String, _ vault: Vault, _ server: NotesServer, body: String = #"{"onionTitle":"x"}"#
    ) async throws -> Int {
        let token = await vault.session.accessToken
        for _ in 0..<20 {
            let answer = try HTTPPeer.ask(
                server.server.port, "POST", "/1/onions/onions/i/\(key)", ["X-Simperium-Token": token], body: body)
            if answer.status != 503 { return answer.status }
        }
        return 503
    }

    @Test("fields longer than any note's are refused with 413; those of the longest note are accepted")
    func sizes() async throws {
        let server = try NotesServer()
        let vault = try await server.vault()
        func body(_ field: String, _ count: Int) -> String {
            #"{"\#(field)":"\#(String(repeating: "x", count: count))"}"#
        }
        #expect(try await Self.put("a", vault, server, body: body("onionTitle", 223)) == 413)
        #expect(try await Self.put("a", vault, server, body: body("onionTitle", 222)) == 200)
        #expect(try await Self.put("a", vault, server, body: body("onionInfo", 10_411)) == 413)
        #expect(try await Self.put("a", vault, server, body: body("onionInfo", 10_410)) == 200)
        let longest = note(String(repeating: "日", count: 30), String(repeating: "日", count: 2_500))
        let id = try await vault.create(longest)
        #expect(try await vault.read(id) == longest)
        await vault.end()
    }

    @Test("a draft is sealed and opens after the next login, and with no other account")
    func draft() async throws {
        let server = try NotesServer()
        let vault = try await server.vault()
        let draft = try await vault.sealDraft(note("canary-draft", "canary-text"))
        #expect(!JSONValue.object(draft).serializedText.contains("canary"))
        await vault.end()
        await #expect(throws: OnionError.ended) { _ = try await vault.openDraft(draft) }
        let again = try await server.again()
        #expect(try await again.openDraft(draft) == note("canary-draft", "canary-text"))
        #expect(try await again.list().isEmpty, "it is no note")
        await again.end()
        let other = try await server.vault("somebody", "else")
        await #expect(throws: OnionError.unreadable) { _ = try await other.openDraft(draft) }
        await other.end()
    }

    @Test("a save over a changed note is refused; two concurrent saves leave one of the two texts, whole")
    func conflict() async throws {
        let server = try NotesServer()
        let one = try await server.vault()
        let id = try await one.create(note("base", "text"))
        let other = try await server.again()
        let base = try await other.read(id)
        try await one.save(note("of one", "text of one"), in: id, over: base)
        // Whether or not the change has arrived: a save over a replaced text must not win.
        try await other.notes.waitUntilSynced(timeout: .seconds(120))
        let deadline = ContinuousClock.Instant.now + .seconds(120)
        while try await other.read(id) == base, .now < deadline { await pauseBetweenLooks() }
        await #expect(throws: OnionError.changedMeanwhile) {
            try await other.save(note("of other", "text of other"), in: id, over: base)
        }
        // Now concurrently: both on the same version.
        let now = try await one.read(id)
        async let left = saved(note("left", "left text"), id, now, one)
        async let right = saved(note("right", "right text"), id, now, other)
        _ = await (left, right)
        let fresh = try await server.again()
        let text = try await fresh.read(id)
        #expect([note("left", "left text"), note("right", "right text")].contains(text))
        for vault in [one, other, fresh] { await vault.end() }
    }

    private func saved(_ text: NoteText, _ id: String, _ base: NoteText, _ vault: Vault) async -> Bool {
        do throws(OnionError) {
            try await vault.save(text, in: id, over: base)
            return true
        } catch {
            return false
        }
    }

    @Test("T8: with the wrong password neither a migration nor a save changes a stored note")
    func wrongPassword() async throws {
        let server = try NotesServer()
        let vault = try await server.vault()
        let id = try await vault.create(note("kept", "text"))
        let old = try NoteKeys(user: vault.user, password: secret("World")).seal(
            note("old", "old text"), id: "old", .first, rounds: 20_000)
        try await vault.notes.set("old", to: old)
        try await vault.notes.waitUntilSynced(timeout: .seconds(120))
        let before = [try await vault.notes.get(id), try await vault.notes.get("old")]
        // The same account with another password for its notes.
        let wrong = try await Vault(
            vault.session, keys: NoteKeys(user: vault.user, password: secret("world")))
        let outcome = try await wrong.migrate()
        #expect(outcome.unreadable == 1 && outcome.migrated == 0)
        for each in [id, "old"] {
            await #expect(throws: OnionError.unreadable) { _ = try await wrong.read(each) }
            await #expect(throws: OnionError.unreadable) {
                try await wrong.save(note("lost"), in: each, over: note(""))
            }
        }
        for await title in try await wrong.titles() { #expect(title.title == .failure(.unreadable)) }
        #expect(try await vault.notes.pendingCount == 0)
        let after = [try await vault.notes.get(id), try await vault.notes.get("old")]
        #expect(before == after)
        await vault.end()
    }

    @Test("a migration turns notes of the first format into the second, rounds and texts, and keeps attachments")
    func migration() async throws {
        let server = try NotesServer()
        let vault = try await server.vault()
        let keys = NoteKeys(user: vault.user, password: secret("World"))
        for (id, rounds) in [("few", 1), ("more", 12_345)] {
            var object = try keys.seal(note(id, "text of \(id)"), id: id, .first, rounds: rounds)
            object["attachments"] = .array([.string("later")])
            object["createdAt"] = .number(JSONNumber(rounds == 1 ? 2 : 1))
            try await vault.notes.set(id, to: object)
        }
        var bomb = try keys.seal(note("bomb"), id: "bomb", .first, rounds: 1)
        bomb["iterations"] = .number(JSONNumber(5_000_000))
        try await vault.notes.set("bomb", to: bomb)
        try await vault.notes.waitUntilSynced(timeout: .seconds(120))
        let outcome = try await vault.migrate()
        #expect(outcome.migrated == 2 && outcome.awaitingConsent == 1 && outcome.failed == 0)
        for (id, rounds): (String, Int64) in [("few", 10_000), ("more", 12_345)] {
            let object: JSONObject = try #require(try await vault.notes.get(id))
            #expect(object["iterations"]?.intValue == rounds && object["onionVersion"]?.intValue == 2)
            #expect(object["attachments"] == .array([.string("later")]))
            #expect(try await vault.read(id) == note(id, "text of \(id)"))
        }
        #expect(try await vault.notes.get("bomb") == bomb)
        #expect(try await vault.list().map(\.id) == ["bomb", "more", "few"])
        #expect(try await vault.migrate() == OnionMigration.waiting(1))
        await vault.end()
    }

    @Test("with a vault secret new notes are of version 3, and old ones stay readable and writable")
    func version3() async throws {
        let server = try NotesServer()
        let old = try await server.vault()
        let id = try await old.create(note("old"))
        let vault = try await Vault(
            old.session, keys: NoteKeys(user: old.user, password: secret("World"), vaultSecret: .random(32)))
        let new = try await vault.create(note("new", "sealed"))
        #expect(try await vault.list().map(\.format) == [.second, .sealed])
        #expect(try await vault.read(new) == note("new", "sealed"))
        try await vault.save(note("old, changed"), in: id, over: note("old"))
        try await vault.save(note("new, changed"), in: new, over: note("new", "sealed"))
        #expect(try await vault.list().map(\.format) == [.second, .sealed])
        #expect(try await vault.read(new) == note("new, changed"))
        // The password alone opens the old note, and the other is unreadable to it.
        #expect(try await old.read(id) == note("old, changed"))
        await #expect(throws: OnionError.unreadable) { _ = try await old.read(new) }
        await vault.end()
    }

    @Test("deleting an account removes its notes first; when they cannot be removed the account stays")
    func deletion() async throws {
        let server = try NotesServer()
        let vault = try await server.vault()
        for number in 1...3 { _ = try await vault.create(note("\(number)")) }
        let account = try server.account()
        // Another account's credentials delete nothing.
        _ = try await server.vault("other", "pass")
        await #expect(throws: OnionError.wrongLogin) {
            try await account.delete(vault, username: secret("other"), password: secret("pass"))
        }
        #expect(try await vault.list().count == 3)
        // The notes cannot be removed: this client is offline.
        let cut = try await Vault(
            vault.session, keys: NoteKeys(user: vault.user, password: secret("World")), patience: .milliseconds(300))
        await vault.session.sync.goOffline()
        await #expect(throws: OnionError.self) {
            try await account.delete(cut, username: secret("hello"), password: secret("World"))
        }
        let again = try await server.again()
        #expect(try await again.list().count == 3)
        try await account.delete(again, username: secret("hello"), password: secret("World"))
        #expect(await again.isEnded)
        await #expect(throws: OnionError.wrongLogin) { _ = try await server.again() }
        await vault.end()
    }

    @Test("a list opens no note, titles open no text, and a damaged note does not hold up the others")
    func lazily() async throws {
        let server = try NotesServer()
        let vault = try await server.vault()
        let keys = NoteKeys(user: vault.user, password: secret("World"))
        for number in 1...6 {
            var object = try keys.seal(note("t\(number)", "i"), id: "n\(number)", .second, rounds: 1)
            object["createdAt"] = .number(JSONNumber(Int64(number)))
            // The text of each is damaged, and of the third the title, too.
            object[NoteField.info.member] = "AAAA"
            if number == 3 { object[NoteField.title.member] = "AAAA" }
            try await vault.notes.set("n\(number)", to: object)
        }
        #expect(try await vault.list().map(\.id) == (1...6).map { "n\($0)" })
        var titles = [String: Result<SecureBytes, OnionError>]()
        for await each in try await vault.titles() { titles[each.onion.id] = each.title }
        for number in 1...6 {
            let expected: Result<SecureBytes, OnionError> =
                number == 3 ? .failure(.unreadable) : .success(secret("t\(number)"))
            #expect(titles["n\(number)"] == expected)
            await #expect(throws: OnionError.unreadable) { _ = try await vault.read("n\(number)") }
        }
        await vault.end()
    }

    /// Loses the first `count` answers.
    private final class Losses: Sendable {
        private let left: Mutex<Int>
        init(_ count: Int) { left = Mutex(count) }

        func takesOne() -> Bool {
            left.withLock { left in
                left -= 1
                return left >= 0
            }
        }
    }

    /// An account whose connection loses the first answers to one path.
    private static func account(_ server: NotesServer, losing path: String, of count: Int) throws -> OnionAccount {
        let losses = Losses(count)
        var account = try server.account()
        account.line = { asked, answer in
            guard asked.utf8.elementsEqual(path.utf8), losses.takesOne() else { return answer }
            return .failure(ClientError(.network, "the line went dead"))
        }
        return account
    }

    @Test("a deletion whose answer was lost succeeds; without any answer its outcome is reported as unknown")
    func lostDeletion() async throws {
        let server = try NotesServer()
        for lost in [1, 2] {
            let vault = try await server.vault("user\(lost)", "World")
            _ = try await vault.create(note("t"))
            let account = try Self.account(server, losing: "delete/", of: lost)
            var isKnown = true
            do throws(OnionError) {
                try await account.delete(vault, username: secret("user\(lost)"), password: secret("World"))
                #expect(await vault.isEnded)
            } catch {
                guard case .keys(.unknown) = error else { throw error }
                isKnown = false
                await vault.end()
            }
            #expect(isKnown == (lost == 1))
            await #expect(throws: OnionError.wrongLogin) { _ = try await server.again("user\(lost)", "World") }
        }
    }

    @Test(
        "a sign-up whose answer was lost gives the account, a taken name fails, and without any answer it is unknown"
    )
    func lostSignUp() async throws {
        let server = try NotesServer()
        var account = try Self.account(server, losing: "create/", of: 1)
        let vault = try await account.signUp(username: secret("ann"), password: secret("World"))
        _ = try await vault.create(note("t"))
        await vault.end()
        // Another user's name stays another user's.
        account = try Self.account(server, losing: "create/", of: 1)
        let dead = OnionError.client(ClientError(.network, "the line went dead"))
        await #expect(throws: dead) { _ = try await account.signUp(username: secret("ann"), password: secret("guess")) }
        account.line = { _, _ in .failure(ClientError(.network, "the line went dead")) }
        let error = await #expect(throws: OnionError.self) {
            _ = try await account.signUp(username: secret("bob"), password: secret("World"))
        }
        guard case .keys(.unknown)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        try await server.again("bob", "World").end()
    }

    @Test("a new version is reported when the server's text differs, and only for this platform")
    func newVersion() async throws {
        let server = try NotesServer(versions: "linux=0.2.0,ios=9")
        let account = try server.account()
        #expect(try await account.newerVersion(platform: "linux", than: "0.1.0") == "0.2.0")
        #expect(try await account.newerVersion(platform: "linux", than: "0.2.0") == nil)
        #expect(try await account.newerVersion(platform: "beos", than: "0.1.0") == nil)
        let silent = try NotesServer()
        #expect(try await silent.account().newerVersion(platform: "linux", than: "0.1.0") == nil)
        withExtendedLifetime((server, silent)) {}
    }
}

extension OnionMigration {
    static func waiting(_ count: Int) -> OnionMigration {
        var outcome = OnionMigration()
        outcome.awaitingConsent = count
        return outcome
    }
}
